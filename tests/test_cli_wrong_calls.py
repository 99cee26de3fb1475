"""Calls that cannot work: exit code 2, one sentence, and nothing is made on the way to it."""

from __future__ import annotations

import json
import resource
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memograd.cli import main
from memograd.data.lifelog.generate import generate_lifelogs
from memograd.data.lifelog.types import write_lifelogs
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.memory.search.ranker.files import save_ranker, shipped_ranker
from memograd.tasks.sql.sample.build import write_sample

LONG = "x" * 300

WRONG = [
    ("learn --path memory --user a --ranker-dir file", "There is no memory in memory"),
    ("learn --path memory --user a --ranker-dir new --background", "There is no memory in memory"),
    ("memory reindex --path memory", "There is no memory in memory"),
    ("memory add hello --path memory", "A memory needs an owner"),
    ("memory add hello --path memory --user ''", "user_id must not be empty"),
    ("memory add '' --user a --path memory", "What was sent to be remembered is empty"),
    ("memory add ' \u3000' --user a --path memory --json", "remembered is empty: send a text"),
    ("memory add --file silent.json --user a --path memory", "remembered is empty: send a text"),
    ("memory add '\udcff' --user a --path memory", "message 1 is not valid Unicode"),
    ("memory add hello --user '\udcff' --path memory", "user_id is not valid Unicode"),
    (r"""memory add a --user a --metadata '{"a": "\ud800"}' --path memory""", "in metadata is not"),
    ("memory add hello --user a --at soon --path memory", "timestamp is 'soon'"),
    ("memory add hello --user a --until soon --path memory", "soon"),
    ("memory add hello --user a --kind odd --path memory", "There is no kind 'odd'"),
    ("memory add hello --user a --request-id '' --path memory", "request_id must not be empty"),
    ("memory add hello --user a --category ' ' --path memory", "a list of names"),
    ("memory add hello --user a --policy none --path memory", "none"),
    ("memory import cut.jsonl --path memory", "Line 3 of cut.jsonl is not an event"),
    ("memory import none.jsonl --path memory", "none.jsonl cannot be read"),
    ("memory import folder --path memory", "folder cannot be read: Is a directory"),
    ("memory import file --path memory", "was not made by memograd's export"),
    ("chat --user '' --path memory", "user_id must not be empty"),
    ("gateway --model folder", "folder has no config.json"),
    ("gateway --model none/none/none", "does not exist"),
    ("gateway --model smollm2-135m-instruct --adapter folder", "folder holds no adapter"),
    ("gateway --model smollm2-135m-instruct --chat-template file", "tool"),
    ("gateway --model a --upstream nothing", "'nothing' is no URL"),
    ("gateway --model a --upstream http://a:1 --embedder nothing", "There is no embedder"),
    ("gateway --model a --upstream http://a:1 --embedder st:./none", "does not exist"),
    ("data construct-rows --out file/rows.jsonl", "file is a file); choose another"),
    ("data memory-ops-rows --out file/deep/rows.jsonl", "file is a file); choose another"),
    ("sql warm-start-rows --out file", "file is there already"),
    ("train text --data rows.jsonl --rewards exact_match out=file/run", "cannot be made"),
    ("train retrieval turns_only=none.jsonl", "not in data: none.jsonl.\n"),
    ("train text --data rows.jsonl --rewards exact_match sampler=vllm sampler.url=a", "is no URL"),
    ("train text --data rows.jsonl --rewards exact_match sampler=vllm sampler.url=http://a:b", "b"),
    (f"train text --data {LONG} --rewards exact_match", "File name too long"),
    (f"train text --data rows.jsonl --rewards exact_match out={LONG}", "File name too long"),
    (f"train text resume={LONG}", "File name too long"),
    (f"evaluate --policy {LONG}", "File name too long"),
    (f"runs show {LONG}/run", "File name too long"),
    (f"memory stats --path {LONG}", "File name too long"),
]


@pytest.fixture(autouse=True)
def here(bare_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a file, a folder and rows."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("folder").mkdir()
    Path("file").write_text("nothing of ours\n")
    Path("silent.json").write_text('[{"role": "user", "content": " "}]')
    added = {
        **{"uid": "u1", "recorded_at": "2024-05-07T10:00:00+00:00", "kind": "NONE", "before": None},
        **{"user_id": "a", "subject": "s1", "actor": "user", "reason": "", "erased": False},
        "after": {"text": "tea"},
    }
    head = {"format": "memograd-journal", "version": 1}
    Path("cut.jsonl").write_text("\n".join([json.dumps(head), json.dumps(added), "{"]))
    rows = [{"prompt": f"count: {number}", "answer": str(number)} for number in range(6)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize(("line", "sentence"), WRONG)
def test_it_is_one_sentence_and_nothing_is_made(
    here: Path, capsys: pytest.CaptureFixture[str], line: str, sentence: str
) -> None:
    before = sorted(here.rglob("*"))
    with pytest.raises(SystemExit) as exit_:
        main(shlex.split(line))
    error = capsys.readouterr().err
    assert exit_.value.code == 2, error
    assert sentence in error and error.startswith("memograd: ") and len(error.splitlines()) == 1
    assert sorted(here.rglob("*")) == before


def test_rankers_are_not_kept_in_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_ranker(shipped_ranker(), here / "mine" / "ranker.json")
    with pytest.raises(SystemExit) as exit_:
        main(["ranker", "adopt", "mine", "--dir", "file"])
    assert exit_.value.code == 2
    assert "The folder file cannot be made (File exists)" in capsys.readouterr().err


def test_folders_above_new_rows_are_made(here: Path) -> None:
    out = here / "new" / "deep" / "rows.jsonl"
    with pytest.raises(SystemExit) as exit_:
        main(["sql", "warm-start-rows", "--out", str(out)])
    assert exit_.value.code == 0 and out.read_text().count("\n") > 10


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may have more than one byte."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    old = folder / "old.jsonl"
    old.touch()
    logs = generate_lifelogs(1, 0)
    for write in (
        lambda: write_lifelogs(logs, old),
        lambda: write_lifelogs(logs, folder / "new.jsonl"),
        lambda: write_sample(folder / "medical.sqlite"),
        lambda: RunFolder.create(folder / "run", "{}", task="text"),
    ):
        with full_disk(), pytest.raises(BadInput, match=r"cannot be (written|made)"):
            write()
    assert list(folder.iterdir()) == [old]
