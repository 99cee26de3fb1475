"""Services get a run's settings and numbers, nothing leaves the machine unasked, no run is lost."""

from __future__ import annotations

import json
import logging
import os
import socket
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memograd.config import TrainConfig, load_settings
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.grpo import trackers as trackers_module
from memograd.grpo.trackers import Expendable, check_trackers, open_trackers
from memograd.grpo.tracking import flat_metrics
from memograd.grpo.trainer import Stage, Trainer
from memograd.rewards import WeightedReward
from memograd.tasks.registry import train
from memograd.tasks.text.settings import TextTrainConfig

# Services keep state by process, so each is tried in one of its own: start, some steps, finish.
JOB = """
import signal, sys
from pathlib import Path
from memograd.config import TrainConfig
from memograd.grpo import RunFolder
from memograd.grpo.tracking import tracked
from memograd.grpo.trackers import open_trackers

name, folder, *steps = sys.argv[1:]
run = RunFolder.open(Path(folder))
config = TrainConfig.model_validate_json(run.config_json)
trackers = open_trackers([name, name], run)
handler = signal.getsignal(signal.SIGINT)
with tracked(trackers, run.path.name, config.model_dump(mode="json")):
    assert signal.getsignal(signal.SIGINT) is handler, "the service took over Ctrl-C"
    for step in map(int, steps):
        for tracker in trackers:
            tracker.log(step, {"step": float(step), "reward_mean": step / 4, "rewards/f1": 1.5})
"""
METRICS = {step: {"reward_mean": step / 4, "rewards/f1": 1.5} for step in range(1, 5)}
OURS = ("WANDB", "SWANLAB", "TRACKIO", "HF_", "http", "HTTP", "no_proxy", "NO_PROXY")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs" / "my-run", TrainConfig(seed=7).model_dump_json())


class Network:
    """Where everything that asks for the network arrives, as its proxy; nothing is answered."""

    def __init__(self, tmp_path: Path) -> None:
        self._home = tmp_path / "home"
        self._home.mkdir()
        self._door = socket.create_server(("127.0.0.1", 0))
        self._door.setblocking(False)

    def environment(self, **variables: str) -> dict[str, str]:
        """That of somebody who has logged in to the Hugging Face Hub, and to nothing else."""
        bare = {key: text for key, text in os.environ.items() if not key.startswith(OURS)}
        proxy = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
        home = {"HOME": str(self._home), "HF_TOKEN": "hf_" + "a" * 34}
        return {**bare, **proxies, **home, "OMP_NUM_THREADS": "1", **variables}

    def job(self, name: str, run: RunFolder, *steps: int, **variables: str) -> str:
        """Do the job, offline; returns what it printed."""
        done = self.attempt(name, run, *steps, **variables)
        assert done.returncode == 0, done.stderr
        assert not self.asked(), done.stderr
        return done.stdout + done.stderr

    def attempt(
        self, name: str, run: RunFolder, *steps: int, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Try the job, with nobody at the keyboard."""
        return subprocess.run(
            [sys.executable, "-c", JOB, name, str(run.path), *map(str, steps)],
            env=self.environment(**variables),
            cwd=self._home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def asked(self) -> bool:
        """Whether somebody has tried to reach the network."""
        try:
            self._door.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._door.close()


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    network = Network(tmp_path)
    yield network
    network.close()


def test_the_network_that_nobody_may_use_notices_who_does(network: Network) -> None:
    script = "import urllib.request as r; r.urlopen('http://example.invalid', timeout=0.2)"
    command = [sys.executable, "-c", script]
    assert not network.asked()
    subprocess.run(command, env=network.environment(), capture_output=True)
    assert network.asked()


# TensorBoard


def tensorboard_events(run: RunFolder) -> Any:
    module = "tensorboard.backend.event_processing.event_accumulator"
    accumulator = pytest.importorskip(module, reason="needs the extra `trackers`")
    found = accumulator.EventAccumulator(str(run.path / "tensorboard"))
    found.Reload()
    return found


def tensorboard_scalars(run: RunFolder) -> dict[str, dict[int, float]]:
    events = tensorboard_events(run)
    scalars = {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}
    for points in scalars.values():
        assert len({point.step for point in points}) == len(points), "a step is there twice"
    return {tag: {point.step: point.value for point in scalars[tag]} for tag in scalars}


def test_tensorboard_shows_every_step_once(run: RunFolder, network: Network) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra `trackers`")
    network.job("tensorboard", run, 1, 2, 3)
    network.job("tensorboard", run, 2, 3, 4)  # killed after step 3, resumed at checkpoint 1
    assert tensorboard_scalars(run) == {
        tag: {step: METRICS[step][tag] for step in METRICS} for tag in METRICS[1]
    }
    settings = tensorboard_events(run).Tensors("settings/text_summary")[0]
    assert b'"seed": 7' in settings.tensor_proto.string_val[0]


def test_tensorboard_hears_the_metrics_of_a_run(
    tmp_path, tiny_policy, tiny_config, scenarios
) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra `trackers`")
    config = tiny_config.model_copy(update={"steps": 3, "track": ["tensorboard"]})
    folder = RunFolder.create(tmp_path / "run", config.model_dump_json())
    rewards = [WeightedReward("rank", lambda completions: list(range(len(completions))))]
    trackers = open_trackers(config.track, folder)
    Trainer(tiny_policy, scenarios, rewards, config, Stage(folder, trackers=trackers)).train()
    scalars = tensorboard_scalars(folder)
    assert scalars["rewards/rank"] and "step" not in scalars
    for row in folder.read_metrics():
        for key, value in flat_metrics(row).items():
            if key != "step":
                assert scalars[key][row["step"]] == pytest.approx(value, rel=1e-6)


# wandb


def wandb_records(folder: Path) -> list[Any]:
    """The records of an offline run: protocol buffers in a log of LevelDB's format."""
    messages = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    (file,) = folder.glob("*.wandb")
    data, place, parts, records = file.read_bytes(), 7, b"", []
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            records.append(messages.Record.FromString(parts))
            parts = b""
    return records


def items(entries: Any) -> dict[str, Any]:
    return {"/".join(one.nested_key) or one.key: json.loads(one.value_json) for one in entries}


def test_wandb_without_a_key_is_offline_and_asks_nobody(run: RunFolder, network: Network) -> None:
    pytest.importorskip("wandb", reason="needs the extra `trackers`")
    network.job("wandb", run, 1, 2)
    network.job("wandb", run, 3, 4)
    folders = sorted((run.path / "wandb").glob("offline-run-*"))
    seen: dict[int, dict[str, Any]] = {}
    identities = set()
    for folder in folders:
        for record in wandb_records(folder):
            if record.HasField("run"):
                identities.add((record.run.run_id, record.run.project, record.run.display_name))
                assert items(record.run.config.update)["seed"] == 7
            elif record.HasField("history"):
                row = items(record.history.item)
                seen[row.pop("_step")] = {k: v for k, v in row.items() if not k.startswith("_")}
            assert not record.HasField("output") and not record.HasField("stats")
    assert seen == METRICS
    assert len(folders) == 2 and len(identities) == 1  # a resumed run is the same run
    assert {(project, name) for _, project, name in identities} == {("memograd", "my-run")}
    assert not list(run.path.rglob("requirements.txt"))


def test_wandb_told_to_go_online_without_a_key_is_bad_input(
    run: RunFolder, network: Network
) -> None:
    pytest.importorskip("wandb", reason="needs the extra `trackers`")
    done = network.attempt("wandb", run, 1, WANDB_MODE="online")
    assert "BadInput: WANDB_MODE=online needs an API key, and there is none" in done.stderr


# SwanLab


def test_swanlab_without_a_key_is_offline_and_asks_nobody(run: RunFolder, network: Network) -> None:
    pytest.importorskip("swanlab", reason="needs the extra `trackers`")
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record
    from swanlab.sdk.internal.core_python.store import DataStoreReader

    network.job("swanlab", run, 1, 2, 3, 4)
    (file,) = (run.path / "swanlab").glob("run-*/run-*.swanlab")
    reader = DataStoreReader()
    reader.open(file)
    seen: dict[int, dict[str, float]] = {}
    begun = []
    while (data := reader.scan()) is not None:
        record = Record.FromString(data)
        if record.HasField("start"):
            begun.append((record.start.project, record.start.name))
        elif record.HasField("scalar"):
            scalar = record.scalar
            seen.setdefault(scalar.step, {})[scalar.key] = scalar.value.number
        assert not record.HasField("log")
    reader.close()
    assert (seen, begun) == (METRICS, [("memograd", "my-run")])
    assert "seed:" in (file.parent / "files" / "config.yaml").read_text(encoding="utf-8")


def test_swanlab_local_writes_for_its_dashboard(run: RunFolder, network: Network) -> None:
    pytest.importorskip("swanlab", reason="needs the extra `trackers`")
    pytest.importorskip("swanboard", reason="needs swanlab[dashboard]")
    printed = network.job("swanlab", run, 1, 2, 3, 4, SWANLAB_MODE="local")
    assert "ERROR" not in printed
    (database,) = (run.path / "swanlab").glob("*.swanlab")
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT name FROM experiment").fetchall() == [("my-run",)]
    lines = [
        json.loads(line)
        for file in (run.path / "swanlab").glob("run-*/logs/*/[0-9]*.log")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    logged = sorted((line["index"], line["data"]) for line in lines)
    assert logged == sorted((step, value) for step in METRICS for value in METRICS[step].values())


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [("online", "needs an API key, and there is none"), ("local", "needs SwanLab's dashboard")],
)
def test_swanlab_told_what_it_cannot_do_is_bad_input(
    run: RunFolder, network: Network, mode: str, sentence: str
) -> None:
    pytest.importorskip("swanlab", reason="needs the extra `trackers`")
    if mode == "local" and find_spec("swanboard") is not None:
        pytest.skip("SwanLab's dashboard is installed")
    done = network.attempt("swanlab", run, 1, SWANLAB_MODE=mode)
    assert f"BadInput: SWANLAB_MODE={mode} {sentence}" in done.stderr


# trackio


def trackio_rows(folder: Path) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    with sqlite3.connect(folder / "memograd.db") as connection:
        found = connection.execute("SELECT run_name, step, metrics FROM metrics ORDER BY id")
        rows: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for name, step, metrics in found:
            rows.setdefault(name, []).append((step, json.loads(metrics)))
    return rows


def test_trackio_keeps_every_step_once(run: RunFolder, network: Network) -> None:
    pytest.importorskip("trackio", reason="needs the extra `trackers`")
    network.job("trackio", run, 1, 2, 3)
    network.job("trackio", run, 2, 3, 4)
    ((name, rows),) = trackio_rows(run.path / "trackio").items()
    assert name.startswith("my-run-") and rows == list(METRICS.items())
    with sqlite3.connect(run.path / "trackio" / "memograd.db") as connection:
        ((config,),) = connection.execute("SELECT config FROM configs").fetchall()
    assert json.loads(config)["seed"] == 7


def test_runs_of_one_name_in_one_trackio_folder_are_two_runs(
    run: RunFolder, network: Network, tmp_path: Path
) -> None:
    pytest.importorskip("trackio", reason="needs the extra `trackers`")
    other = RunFolder.create(tmp_path / "other" / "my-run", run.config_json)
    shared = tmp_path / "shared"
    for one in (run, other):
        network.job("trackio", one, 1, TRACKIO_DIR=str(shared))
    assert [len(rows) for rows in trackio_rows(shared).values()] == [1, 1]


# Missing packages


def test_a_name_without_its_package_is_one_sentence(monkeypatch, tmp_path) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(trackers_module, "version", version)
    check_trackers([])
    data = tmp_path / "prompts.jsonl"
    data.write_text('{"prompt": "say x"}\n')
    config = TextTrainConfig(track=["wandb"], data=data, out=tmp_path / "run", rewards="length")
    sentence = "track=wandb needs the package wandb; run pip install 'memograd\\[trackers\\]'"
    with pytest.raises(BadInput, match=sentence):
        train(config)
    assert not (tmp_path / "run").exists()
    folder = RunFolder.create(tmp_path / "other", config.model_dump_json())
    with pytest.raises(BadInput, match=sentence):
        open_trackers(config.track, folder)


def test_the_setting_is_a_list_of_known_names() -> None:
    assert load_settings(TrainConfig, None, ["track=tensorboard,wandb"]).track == [
        "tensorboard",
        "wandb",
    ]
    assert load_settings(TrainConfig, None, []).track == []
    with pytest.raises(BadInput) as error:
        load_settings(TrainConfig, None, ["track=tensorbord"])
    assert "track must be a list of tensorboard, wandb, swanlab, trackio" in str(error.value)


@pytest.mark.slow
def test_importing_trackers_loads_no_service() -> None:
    script = "import sys, memograd.grpo.trackers; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert not set(trackers_module.TRACKERS) & set(shown.stdout.split()), shown.stderr


# Failures


class Fragile:
    """A tracker that fails in the named calls, and counts the others."""

    def __init__(self, *fails: str, error: Exception | None = None) -> None:
        self.fails = fails
        self.error = error or ConnectionError("no route\nto host")
        self.heard: list[Any] = []

    def _hear(self, call: str, heard: Any) -> None:
        if call in self.fails:
            raise self.error
        self.heard.append(heard)

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        self._hear("start", name)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._hear(f"log {step}", dict(metrics))

    def finish(self) -> None:
        self._hear("finish", "finish")


def test_what_cannot_start_is_one_sentence() -> None:
    with pytest.raises(MemogradError) as error:
        Expendable("wandb", Fragile("start")).start("run", {})
    assert str(error.value) == (
        "track=wandb could not start (ConnectionError: no route); mend it, or leave wandb out of "
        "track."
    )
    bad = BadInput("set it up")
    with pytest.raises(BadInput, match="set it up"):
        Expendable("wandb", Fragile("start", error=bad)).start("run", {})


def test_a_service_that_fails_is_warned_of_once_and_left_alone(caplog) -> None:
    service = Fragile("log 2", "finish")
    tracker = Expendable("wandb", service)
    with caplog.at_level(logging.WARNING):
        tracker.start("run", {})
        for step in (1, 2, 3):
            tracker.log(step, {"step": step, "loss": step / 2})
        tracker.finish()
    assert service.heard == ["run", {"loss": 0.5}]
    first, last = (record.getMessage() for record in caplog.records)
    assert (
        "track=wandb failed (ConnectionError: no route) and misses everything from step 2" in first
    )
    assert "track=wandb failed at the end" in last and "metrics.jsonl has every step" in last


def test_a_run_ends_well_without_its_service(
    tmp_path, tiny_policy, tiny_config, scenarios, caplog
) -> None:
    folder = RunFolder.create(tmp_path / "run", tiny_config.model_dump_json())
    rewards = [WeightedReward("rank", lambda completions: list(range(len(completions))))]
    trackers = [Expendable("wandb", Fragile("log 2"))]
    Trainer(tiny_policy, scenarios, rewards, tiny_config, Stage(folder, trackers=trackers)).train()
    assert len(folder.read_metrics()) == tiny_config.steps
    assert len(caplog.records) == 1


def test_the_identity_of_a_run_stays(tmp_path: Path, run: RunFolder) -> None:
    other = RunFolder.create(tmp_path / "other", run.config_json)
    before = trackers_module._identity(run)
    assert before != trackers_module._identity(other)
    run.replace_config("{}")
    moved = run.path.rename(tmp_path / "moved")
    assert trackers_module._identity(RunFolder.open(moved)) == before
