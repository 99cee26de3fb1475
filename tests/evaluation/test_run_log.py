"""What a run wrote is read whole or refused with the line that is wrong, token by token."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.evaluation.run_log import (
    TokenText,
    column,
    last_means,
    logged_steps,
    moving_average,
    read_metrics,
    read_rollouts,
    smoothing_window,
    spans,
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_with_gaps(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", '{"step": 1, "kl": null}\n\n{"step": 2, "kl": 0.5}\n')
    metrics = read_metrics(path)
    assert column(metrics, "step", path).tolist() == [1, 2]
    assert np.isnan(column(metrics, "kl", path)[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; train at least one step"),
        ("\n\n", "is empty"),
        ('{"step": 1}\n{"step": 2, "lo\n', r"Line 2 of .*metrics.jsonl is no JSON"),
        ('{"step": 1', "is empty"),
        ("[1, 2]\n", "Line 1 of .* is no JSON object"),
    ],
)
def test_empty_or_damaged_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_metrics(write(tmp_path / "metrics.jsonl", text))


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", '{"step": 1}\n{"step": 2, "lo')
    assert read_metrics(path) == [{"step": 1}]


def test_the_last_means_leave_out_what_was_not_measured() -> None:
    rows = [
        {"step": 1, "loss": 9.0},
        {"step": 2, "loss": 1.0, "kl": None, "rewards": {"f1": 0.25}},
        {"step": 3, "loss": 2.0, "kl": 0.5, "rewards": {"f1": None}},
    ]
    assert last_means(rows, 2) == {"loss": 1.5, "kl": 0.5, "rewards/f1": 0.25}
    assert last_means([], 2) == {}


def test_a_missing_file_and_a_binary_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("none.jsonl", "binary", "."):
        with pytest.raises(BadInput, match="Cannot read the metrics file"):
            read_metrics(tmp_path / name)


@pytest.mark.parametrize("line", ['{"step": 2}', '{"step": 2, "loss": "high"}'])
def test_a_missing_or_wrong_value_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "metrics.jsonl", '{"step": 1, "loss": 0.5}\n' + line)
    with pytest.raises(BadInput, match=r"Entry 2 of .* needs a number under `loss`"):
        column(read_metrics(path), "loss", path)


@given(st.lists(st.floats(-10, 10) | st.just(float("nan")), min_size=1), st.integers(1, 8))
def test_moving_average_is_the_mean_of_the_window(values: list[float], window: int) -> None:
    smooth = moving_average(values, window)
    assert len(smooth) == len(values)
    for index in range(len(values)):
        known = [v for v in values[max(0, index - window + 1) : index + 1] if not np.isnan(v)]
        expected = sum(known) / len(known) if known else float("nan")
        assert smooth[index] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_the_window_grows_with_the_run() -> None:
    assert [smoothing_window(n) for n in (1, 5, 6, 100, 1000)] == [1, 1, 3, 10, 25]


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
