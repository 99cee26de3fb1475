"""Ranks other than 0 leave the run folder as it is, and any column in it is strict JSON."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo import RunFolder
from memograd.grpo.run_folder import FollowerFolder, plain_json


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_written_whatever_is_called(tmp_path: Path) -> None:
    """Every public method of `RunFolder` that writes, with the same answers as rank 0's."""
    leader = RunFolder.create(tmp_path / "run", "{}", task="text")
    leader.append_metrics({"step": 1, "loss": 0.5})
    before = contents(leader.path)
    follower = FollowerFolder(leader.path)
    with follower.lock():
        follower.append_metrics({"step": 2, "loss": 0.5})
        follower.truncate_metrics(0)
        follower.write_data({"sha256": "0"})
        follower.replace_config('{"steps": 2}')
        rollouts = follower.write_rollouts(3, "text", ["{}"], folder="failures")
        checkpoint = follower.save_checkpoint("checkpoint-1", lambda folder: None, step=1)
    assert contents(leader.path) == before
    assert follower.read_metrics() == leader.read_metrics() == [{"step": 1, "loss": 0.5}]
    assert rollouts == leader.write_rollouts(3, "text", ["{}"], folder="failures")
    assert checkpoint == leader.save_checkpoint("checkpoint-1", lambda folder: None, step=1)


def test_every_method_of_the_run_folder_that_writes_is_overridden() -> None:
    reading = {"check_free", "create", "open", "path", "config_json", "task", "metrics_path"}
    reading |= {"read_metrics", "check_metrics", "read_data", "latest_checkpoint"}
    reading |= {"trained_checkpoint"}
    public = {name for name in vars(RunFolder) if not name.startswith("_")}
    assert public - reading <= set(vars(FollowerFolder))


@dataclass
class Point:
    x: float
    tags: set[str]


class Opaque:
    pass


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_the_text_is_strict_json_and_comes_back_the_same(value: object) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = plain_json(value)
    assert plain_json(json.loads(text, parse_constant=refuse)) == text


@given(st.dictionaries(st.text(), st.integers()), st.randoms())
def test_the_order_of_a_mapping_does_not_matter(value: dict[str, int], random) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert plain_json(dict(items)) == plain_json(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), '"nan"'),
        (-float("inf"), '"-inf"'),
        (np.float32(0.5), "0.5"),
        (np.array([[1, 2]]), "[[1, 2]]"),
        ((1, "好"), '[1, "好"]'),
        ({3, 1, 2}, "[1, 2, 3]"),
        (Path("a/b"), '"a/b"'),
        (datetime.date(2024, 5, 7), '"2024-05-07"'),
        (b"\x00\xff", '"00ff"'),
        (Point(1.0, {"b", "a"}), '{"tags": ["a", "b"], "x": 1.0}'),
    ],
)
def test_what_columns_hold(value: object, text: str) -> None:
    assert plain_json(value) == text


def test_an_unknown_object_is_told_by_its_type_and_never_by_its_address() -> None:
    assert plain_json([Opaque()]) == plain_json([Opaque()])
    assert "Opaque" in plain_json(Opaque())
