"""Trackers hear numbers under flat names, and are finished however the run ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from memograd.grpo import RunFolder
from memograd.grpo.tracking import flat_metrics, tracked
from memograd.grpo.trainer import Stage, Trainer
from memograd.rewards import WeightedReward


class Recorder:
    """A tracker that keeps what it hears; `fails`: on starting."""

    def __init__(self, heard: list[Any], fails: bool = False) -> None:
        self.heard = heard
        self.fails = fails

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        if self.fails:
            raise ConnectionError("no such server")
        self.heard.append(("start", name, config))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self.heard.append(("log", step, metrics))

    def finish(self) -> None:
        self.heard.append("finish")


def test_numbers_are_flat_and_nulls_are_left_out() -> None:
    row = {"step": 2, "kl": None, "rewards": {"f1": 0.5, "none": None}, "note": "x", "a": {"b": {}}}
    assert flat_metrics(row) == {"step": 2.0, "rewards/f1": 0.5}


def test_trackers_are_started_and_finished_even_after_a_failure() -> None:
    heard: list[Any] = []
    with pytest.raises(ZeroDivisionError), tracked([Recorder(heard)] * 2, "run", {"seed": 1}):
        raise ZeroDivisionError
    assert heard == [("start", "run", {"seed": 1})] * 2 + ["finish"] * 2


def test_a_tracker_that_cannot_start_leaves_none_open() -> None:
    heard: list[Any] = []
    trackers = [Recorder(heard), Recorder(heard, fails=True), Recorder(heard)]
    with pytest.raises(ConnectionError), tracked(trackers, "run", {}):
        raise AssertionError("the run must not begin")
    assert heard == [("start", "run", {}), "finish"]


def test_a_run_tells_its_tracker_what_it_writes_down(
    tmp_path, tiny_policy, tiny_config, scenarios
) -> None:
    heard: list[Any] = []
    folder = RunFolder.create(tmp_path / "my-run", tiny_config.model_dump_json())
    rewards = [WeightedReward("rank", lambda completions: list(range(len(completions))))]
    trackers = [Recorder(heard)]
    Trainer(tiny_policy, scenarios, rewards, tiny_config, Stage(folder, trackers=trackers)).train()
    rows = folder.read_metrics()
    assert heard[0] == ("start", "my-run", tiny_config.model_dump(mode="json"))
    assert heard[1:-1] == [("log", row["step"], flat_metrics(row)) for row in rows]
    assert len(rows) == tiny_config.steps and "rewards/rank" in heard[1][2]
    assert heard[-1] == "finish"
