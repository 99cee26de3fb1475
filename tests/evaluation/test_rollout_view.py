"""Logged groups are read back, and each token says whether it was trained on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.evaluation.rollout_view import TokenText, logged_steps, read_rollouts, spans

ROW = {
    "texts": ["yes", " tool", "", "é", "?"],
    "scored": [True, False, True, True, True],
    "logprobs": [math.log(0.5), None, math.log(0.09), math.log(0.1), 0.0],
}


def test_tokens_are_marked_by_who_chose_them_and_how_surely() -> None:
    shown = list(spans(ROW))
    assert "".join(span.text for span in shown) == "yes toolé?"
    assert [span.kind for span in shown] == ["likely", "observation", "unlikely", "open", "likely"]
    assert shown[1] == TokenText(" tool", "observation", None)
    assert shown[0].probability == pytest.approx(0.5)


def test_a_log_probability_that_is_not_finite_can_be_looked_at() -> None:
    row = {"texts": ["a", "b"], "scored": [True, True], "logprobs": ["nan", "-inf"]}
    assert [span.kind for span in spans(row)] == ["open", "unlikely"]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no rollouts of step 3: there are none yet"):
        read_rollouts(tmp_path, 3)
    folder = tmp_path / "rollouts"
    folder.mkdir()
    for step in (10, 1):
        (folder / f"step-{step:04d}.jsonl").write_text(json.dumps({"step": step}) + "\n")
    (folder / "step-0007.txt").write_text("only to read")
    assert logged_steps(tmp_path) == [1, 10]
    assert read_rollouts(tmp_path, 10) == [{"step": 10}]
    with pytest.raises(BadInput, match="no rollouts of step 7: there are 1, 10"):
        read_rollouts(tmp_path, 7)
    (folder / "step-0001.jsonl").write_text('{"step": 1}\n{"st')
    with pytest.raises(BadInput, match=r"Line 2 of .*step-0001\.jsonl is no JSON"):
        read_rollouts(tmp_path, 1)
