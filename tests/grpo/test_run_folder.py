"""A run folder survives a kill at any instant, a full disk and damaged files."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput, MemogradError
from memograd.grpo.run_folder import RunFolder, checkpoint_step

CONFIG = '{"steps": 60}'


def writes(content: bytes) -> Callable[[Path], None]:
    def writer(folder: Path) -> None:
        (folder / "adapter").mkdir()
        (folder / "adapter" / "weights.bin").write_bytes(content)
        (folder / "state.json").write_text("{}", encoding="utf-8")

    return writer


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs" / "实验", CONFIG)


def names(run: RunFolder) -> set[str]:
    return {path.name for path in run.path.iterdir()}


# Creating and opening


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_task_is_said_and_not_taken_for_none(run: RunFolder, content: str) -> None:
    (run.path / "run.json").write_text(content)
    with pytest.raises(BadInput, match=r'run\.json is damaged; write {"task": NAME}'):
        _ = run.task


def test_a_folder_that_cannot_be_written_into_cannot_be_trained_in(run: RunFolder) -> None:
    (run.path / ".lock").mkdir()  # also for root, who may write everywhere
    with (
        pytest.raises(BadInput, match=r"cannot be written into \(.*\); go on"),
        run.lock(),
    ):
        raise AssertionError


def test_created_run_opens_with_its_config(run: RunFolder) -> None:
    assert RunFolder.open(run.path).config_json == CONFIG
    assert run.latest_checkpoint() is None
    assert run.read_metrics() == []


def test_create_takes_an_empty_folder_but_no_used_one(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    RunFolder.create(tmp_path / "empty", CONFIG)
    with pytest.raises(BadInput, match=r"is not empty.*resume=.*实验.*out="):
        RunFolder.create(run.path, "{}")
    assert run.config_json == CONFIG


def test_create_refuses_a_place_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(BadInput, match=r"cannot be made \(.*\); choose another with out="):
            RunFolder.create(path, CONFIG)


@pytest.mark.parametrize("place", ["file/run", "file/deep/run", "shut/run"])
def test_a_place_where_no_folder_can_be_is_known_beforehand(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "shut").mkdir(mode=0o555)
    if place.startswith("shut") and os.access(tmp_path / "shut", os.W_OK):
        pytest.skip("who is root may write anywhere")
    with pytest.raises(BadInput, match=r"cannot be made \(.*\); choose another with out="):
        RunFolder.check_free(tmp_path / place)
    RunFolder.check_free(tmp_path / "new" / "run")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("task", ['["text"]', "null", "3"])
def test_a_task_that_is_no_name_is_damage(run: RunFolder, task: str) -> None:
    (run.path / "run.json").write_text(f'{{"task": {task}}}')
    with pytest.raises(BadInput, match=r"run\.json is damaged"):
        _ = run.task


def test_open_refuses_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no run folder"):
        RunFolder.open(tmp_path / "missing")
    with pytest.raises(BadInput, match=r"not a run folder: it has no config\.json"):
        RunFolder.open(tmp_path)


# Metrics and rollouts


def test_metrics_are_on_disk_line_by_line(run: RunFolder) -> None:
    rows = [{"step": step, "reward": 0.1 * step, "note": "好"} for step in (1, 2, 3)]
    for number, row in enumerate(rows, start=1):
        run.append_metrics(row)
        assert len(run.metrics_path.read_text(encoding="utf-8").splitlines()) == number
    assert run.read_metrics() == rows


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [float("nan")]])
def test_metrics_that_are_not_finite_are_refused(run: RunFolder, value: object) -> None:
    with pytest.raises(MemogradError, match=r"Step 7 measured what is not a finite number: loss ="):
        run.append_metrics({"step": 7, "reward": 1.0, "loss": value})
    assert run.read_metrics() == []


def test_metrics_need_a_step(run: RunFolder) -> None:
    with pytest.raises(MemogradError, match="needs a whole-numbered step"):
        run.append_metrics({"reward": 1.0})
    with pytest.raises(MemogradError, match="of step 3 says nothing but its step"):
        run.append_metrics({"step": 3})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_while_writing_metrics_is_one_sentence(run: RunFolder) -> None:
    run.metrics_path.symlink_to("/dev/full")
    with pytest.raises(MemogradError, match=r"metrics\.jsonl could not be written.*resume="):
        run.append_metrics({"step": 1, "loss": 0.5})
    (run.path / "rollouts").mkdir()
    (run.path / "rollouts" / "step-0001.txt").symlink_to("/dev/full")
    with pytest.raises(MemogradError, match=r"step-0001\.txt could not be written"):
        run.write_rollouts(1, "text")


def test_torn_last_line_is_left_out_then_dropped(run: RunFolder) -> None:
    run.append_metrics({"step": 1, "loss": 0.5})
    with run.metrics_path.open("a", encoding="utf-8") as file:
        file.write('{"step": 2, "rew')
    assert run.read_metrics() == [{"step": 1, "loss": 0.5}]
    said = run.truncate_metrics(1)
    assert said is not None and said.startswith("line 2 of ") and "half written" in said
    run.append_metrics({"step": 2, "loss": 0.5})
    assert run.read_metrics() == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.5}]


ONE, TWO, THREE = (f'{{"step": {step}, "note": "好"}}\n' for step in (1, 2, 3))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, 1),
        ("", 1),
        ("[]\n", 1),
        (ONE, 2),
        (ONE + TWO[:9], 2),
        (ONE + "\n" + TWO, 2),
        (ONE + ONE + TWO, 2),
        (ONE + THREE, 2),
        (ONE + '{"st\n' + THREE, 2),
        (ONE + "[" * 100_000 + "\n" + THREE, 2),
        (ONE + '{"step": null}\n' + THREE, 2),
        (ONE + '{"step": 2}\n' + THREE, 2),
        (ONE.encode() + TWO.encode("utf-16") + THREE.encode(), 2),
    ],
)
def test_lines_that_do_not_reach_the_checkpoint_are_refused_and_left_as_they_are(
    run: RunFolder, content: str | bytes | None, line: int
) -> None:
    written = content.encode() if isinstance(content, str) else content
    if written is not None:
        run.metrics_path.write_bytes(written)
    for work in (run.check_metrics, run.truncate_metrics):
        with pytest.raises(BadInput, match=rf"in line {line} what step {line} measured.*step 2:"):
            work(2)
    assert (run.metrics_path.read_bytes() if run.metrics_path.exists() else None) == written


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        ("", False),
        (THREE, False),
        (THREE.rstrip(), False),
        (THREE[:9], True),
        ("{}\n" + ONE, True),
        (THREE + "no JSON\n", True),
    ],
)
def test_what_stands_behind_the_checkpoint_is_dropped_and_damage_is_said(
    run: RunFolder, behind: str, said: bool
) -> None:
    run.metrics_path.write_text(ONE + TWO + behind, encoding="utf-8")
    assert (run.truncate_metrics(2) is not None) == said
    assert run.metrics_path.read_text(encoding="utf-8") == ONE + TWO


def test_a_whole_last_line_gets_back_its_end(run: RunFolder) -> None:
    run.metrics_path.write_text(ONE + TWO.rstrip(), encoding="utf-8")
    assert run.truncate_metrics(2) is None
    assert run.metrics_path.read_text(encoding="utf-8") == ONE + TWO


def test_a_damaged_line_is_an_error_with_its_number_for_who_reads_all(run: RunFolder) -> None:
    run.metrics_path.write_text(ONE + '{"st\n' + ONE, encoding="utf-8")
    with pytest.raises(MemogradError, match="damaged in line 2"):
        run.read_metrics()


def test_metrics_that_cannot_be_read_are_refused(run: RunFolder) -> None:
    run.metrics_path.mkdir()
    for work in (run.read_metrics, lambda: run.check_metrics(0)):
        with pytest.raises(BadInput, match=r"metrics\.jsonl cannot be read \(.*\)\."):
            work()


@given(done=st.integers(0, 8), kept=st.integers(0, 8))
def test_truncating_and_going_on_gives_every_step_once(
    tmp_path_factory: pytest.TempPathFactory, done: int, kept: int
) -> None:
    run = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", CONFIG)
    for step in range(1, done + 1):
        run.append_metrics({"step": step, "loss": 0.5})
    run.truncate_metrics(min(done, kept))
    for step in range(min(done, kept) + 1, 10):
        run.append_metrics({"step": step, "loss": 0.5})
    assert [row["step"] for row in run.read_metrics()] == list(range(1, 10))
    assert not list(run.path.glob("*.new"))


def test_rollouts_are_named_by_step(run: RunFolder) -> None:
    run.write_rollouts(10, "first")
    path = run.write_rollouts(10, "问：什么时候？")
    assert path == run.path / "rollouts" / "step-0010.txt"
    assert path.read_text(encoding="utf-8") == "问：什么时候？"


# Checkpoints


def test_latest_checkpoint_is_the_highest_step(run: RunFolder) -> None:
    for step in (100, 20, 9):
        run.save_checkpoint(f"checkpoint-{step}", writes(b"x"))
    latest = run.path / "checkpoint-100"
    assert run.latest_checkpoint() == latest
    assert checkpoint_step(latest) == 100
    assert (latest / "adapter" / "weights.bin").read_bytes() == b"x"


def test_final_has_the_step_of_the_last_metrics_and_yields_to_its_equal(run: RunFolder) -> None:
    run.append_metrics({"step": 50, "loss": 0.5})
    run.save_checkpoint("checkpoint-40", writes(b"x"))
    final = run.save_checkpoint("final", writes(b"x"))
    assert checkpoint_step(final) == 50
    assert run.latest_checkpoint() == final
    run.save_checkpoint("checkpoint-50", writes(b"x"))
    assert run.latest_checkpoint() == run.path / "checkpoint-50"
    assert checkpoint_step(run.save_checkpoint("final", writes(b"y"), step=60)) == 60
    assert run.latest_checkpoint() == final


def test_checkpoint_is_replaced_whole(run: RunFolder) -> None:
    run.save_checkpoint("final", writes(b"old"), step=1)
    run.save_checkpoint("final", lambda folder: (folder / "new").touch(), step=2)
    assert {path.name for path in (run.path / "final").iterdir()} == {"new", "COMPLETE"}
    assert names(run) == {"config.json", "run.json", "final"}


def test_other_names_are_refused(run: RunFolder) -> None:
    for name in ("checkpoint-", "checkpoint-1.bak", "../final", "worst"):
        with pytest.raises(MemogradError, match="checkpoint-N, final or best"):
            run.save_checkpoint(name, writes(b"x"))
    assert names(run) == {"config.json", "run.json"}


def test_full_disk_keeps_the_last_good_checkpoint(run: RunFolder) -> None:
    good = run.save_checkpoint("checkpoint-20", writes(b"good"))

    def fills_the_disk(folder: Path) -> None:
        (folder / "weights.bin").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("checkpoint-40", "checkpoint-20"):
        with pytest.raises(MemogradError, match=rf"{name} could not be written \(No space left"):
            run.save_checkpoint(name, fills_the_disk)
        assert run.latest_checkpoint() == good
        assert (good / "adapter" / "weights.bin").read_bytes() == b"good"
        assert names(run) == {"config.json", "run.json", "checkpoint-20"}


def test_interrupted_writer_leaves_nothing_behind(run: RunFolder) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "weights.bin").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.save_checkpoint("checkpoint-40", interrupted)
    assert names(run) == {"config.json", "run.json"}


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [flip_a_byte, cut_short, Path.unlink])
@pytest.mark.parametrize("file", ["adapter/weights.bin", "state.json", "COMPLETE"])
def test_damaged_checkpoint_is_passed_over(
    run: RunFolder,
    file: str,
    damage: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    good = run.save_checkpoint("checkpoint-20", writes(b"good"))
    bad = run.save_checkpoint("checkpoint-40", writes(b"bad"))
    damage(bad / file)
    assert run.latest_checkpoint() == good
    assert run.latest_checkpoint() == good
    said = [record.message for record in caplog.records]
    assert said == [f"the checkpoint {bad} is damaged and passed over"]  # once
    with pytest.raises(BadInput, match="is not a complete checkpoint"):
        checkpoint_step(bad)
    run.save_checkpoint("checkpoint-40", writes(b"mended"))
    assert run.latest_checkpoint() == bad


# A real kill -9 in the middle

# Every line of standard input is one save, in a fork: Python and its imports start once.
KILLED_AT = """
import json, os, signal, sys
from pathlib import Path
from memograd.grpo.run_folder import RunFolder

calls = kill_at = 0

def stage():
    global calls
    if calls == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    calls += 1

def before(call):
    def staged(*arguments, **options):
        stage()
        return call(*arguments, **options)
    return staged

def writer(folder):
    stage()
    for name in ("a", "b"):
        with (folder / name).open("wb") as file:
            file.write(b"new" * 100_000)
            file.flush()
            stage()
            file.write(b"end")

os.fsync, os.rename = before(os.fsync), before(os.rename)
for line in sys.stdin:
    folder, kill_at, name = json.loads(line)
    child = os.fork()
    if child == 0:
        RunFolder.open(Path(folder)).save_checkpoint(name, writer)
        os._exit(100 + calls)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def save_and_kill() -> Iterator[Callable[[RunFolder, int, str], int]]:
    """Saves in a process that kills itself in that stage; its code, or 100 + how many stages a
    save that came through has."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_AT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as forks:
        assert forks.stdin is not None and forks.stdout is not None
        asked, told = forks.stdin, forks.stdout

        def save(run: RunFolder, stage: int, name: str) -> int:
            print(json.dumps([str(run.path), stage, name]), file=asked, flush=True)
            return int(told.readline())

        yield save


@pytest.mark.parametrize("name", ["checkpoint-40", "final"])
def test_kill_at_every_stage_leaves_a_complete_latest_checkpoint(
    tmp_path: Path, save_and_kill: Callable[[RunFolder, int, str], int], name: str
) -> None:
    """Kills before each flush and rename and amid each file, until one save comes through."""
    for stage in range(100):
        run = RunFolder.create(tmp_path / str(stage), CONFIG)
        run.append_metrics({"step": 10, "loss": 0.5})
        run.save_checkpoint("checkpoint-20", writes(b"good"))
        run.save_checkpoint("final", writes(b"good"), step=10)
        run.append_metrics({"step": 40, "loss": 0.5})
        code = save_and_kill(run, stage, name)

        latest = RunFolder.open(run.path).latest_checkpoint()
        assert latest is not None, stage
        if checkpoint_step(latest) == 40:
            assert latest.name == name
            assert (latest / "b").read_bytes() == b"new" * 100_000 + b"end"
        else:
            assert checkpoint_step(latest) == 20
            assert (latest / "adapter" / "weights.bin").read_bytes() == b"good"

        # Going on works, cleans up, and brings back a final checkpoint that was set aside.
        run.save_checkpoint("checkpoint-60", writes(b"more"))
        assert run.latest_checkpoint() == run.path / "checkpoint-60"
        assert names(run) <= {
            *("config.json", "run.json", "metrics.jsonl", "final"),
            *("checkpoint-20", "checkpoint-40", "checkpoint-60"),
        }
        assert checkpoint_step(run.path / "final") in (10, 40)
        if code >= 100:
            assert code - 100 == stage, "every stage before this one was killed"
            assert latest == run.path / name
            break
        assert code == -signal.SIGKILL, stage
    else:
        pytest.fail("no save came through")


def test_kill_while_metrics_are_written_loses_at_most_the_last_line(run: RunFolder) -> None:
    script = (
        "import sys; from pathlib import Path; from memograd.grpo.run_folder import RunFolder\n"
        "run = RunFolder.open(Path(sys.argv[1]))\n"
        "for step in range(1, 10**9):\n"
        "    run.append_metrics({'step': step, 'note': 'x' * 5000}); print(step, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(run.path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline()) for _ in range(30)]
        child.kill()
    rows = run.read_metrics()
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= acknowledged[-1]
    run.truncate_metrics(10)
    assert len(json.dumps(run.read_metrics())) > 10 * 5000
    assert len(run.read_metrics()) == 10


def test_a_checkpoint_for_which_there_is_no_room_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch says "unexpected pos 36288 vs 36176" of a disk that is full."""
    run = RunFolder.create(tmp_path / "run", "{}")

    def fails(folder: Path) -> None:
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 36288")

    with pytest.raises(MemogradError, match="unexpected pos"):
        run.save_checkpoint("checkpoint-1", fails)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=0))
    with pytest.raises(MemogradError, match=r"checkpoint-1 .* \(the disk is full: make room"):
        run.save_checkpoint("checkpoint-1", fails)
