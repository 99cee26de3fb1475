"""What a run wrote of itself, read back: metrics as columns, rollouts as spans of text.

`metrics.jsonl` has one JSON object a line, one line a training step. A file that is missing, empty
or damaged, or a line without the key asked for, is `BadInput` with the line's number, never an
empty curve; only a last line that is still being written, or that a kill cut off, is left out.

Invariants: the spans of a row of `rollouts/`, put together, are the row's text; a token is shown as
scored exactly where the log says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memograd.errors import BadInput

LIKELY, UNLIKELY = 0.5, 0.1
"""From which probability a token counts as likely, and below which as unlikely."""


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The file's JSON objects, one a line; `BadInput` if there are none or one is damaged."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"Cannot read the metrics file {path}: {error}.") from error
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):  # no line break after it: it was never finished
                break
            raise BadInput(f"Line {number} of {path} is no JSON ({error}).") from error
        if not isinstance(row, dict):
            raise BadInput(f"Line {number} of {path} is no JSON object.")
        rows.append(row)
    if not rows:
        raise BadInput(
            f"The metrics file {path} is empty; train at least one step before plotting."
        )
    return rows


def moving_average(values: Sequence[float] | np.ndarray, window: int) -> np.ndarray:
    """Mean of each value and up to `window - 1` before it [n]; NaN (not logged) is left out."""
    values_N = np.asarray(values, dtype=np.float64)
    known = np.isfinite(values_N)
    sums = np.cumsum(np.where(known, values_N, 0.0))
    counts = np.cumsum(known)
    sums[window:] -= sums[:-window].copy()
    counts[window:] -= counts[:-window].copy()
    means = np.full(len(sums), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def smoothing_window(n: int) -> int:
    """A tenth of the run, at least 3 and at most 25 steps; 1 (no smoothing) for under 6 steps."""
    return 1 if n < 6 else min(25, max(3, n // 10))


def column(metrics: Sequence[Mapping[str, Any]], key: str, path: Path) -> np.ndarray:
    """Values [n] of one key; null becomes NaN, a gap in the curve. `path` is for the error only."""
    values = []
    for number, row in enumerate(metrics, start=1):
        value = row.get(key, "missing")
        if value is not None and not isinstance(value, int | float):
            raise BadInput(
                f"Entry {number} of {path} needs a number under `{key}`; it is {value!r}."
            )
        values.append(np.nan if value is None else float(value))
    return np.asarray(values)


def last_means(metrics: Sequence[Mapping[str, Any]], last: int) -> dict[str, float]:
    """Mean of every number over the last `last` lines, by flat name (`rewards/locomo_f1`).

    Lines in which a number is null or missing are left out of its mean; `step` is left out.
    """
    values: dict[str, list[float]] = {}
    for row in metrics[-last:]:
        for name, value in flat(row, "/").items():
            if isinstance(value, int | float):
                values.setdefault(name, []).append(float(value))
    return {name: float(np.mean(found)) for name, found in values.items() if name != "step"}


def flat(values: Mapping[str, Any], separator: str, prefix: str = "") -> dict[str, Any]:
    """The values in mappings within mappings by one name each: `rewards/locomo_f1`, `lora.r`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, separator, f"{prefix}{name}{separator}")
        else:
            found[prefix + name] = value
    return found


@dataclass(frozen=True)
class TokenText:
    """The text of one token.

    `kind` is `"observation"` (not trained on), or how sure the model was of a token that it chose:
    `"likely"`, `"open"` or `"unlikely"`. `probability` is None of an observed token.
    """

    text: str
    kind: str
    probability: float | None


def read_rollouts(run: Path, step: int) -> list[dict[str, Any]]:
    """The groups that a run logged at `step`, as `memograd.grpo.rollout_files` describes them.

    Raises:
        BadInput: nothing was logged at this step, or the log is damaged.
    """
    file = run / "rollouts" / f"step-{step:04d}.jsonl"
    if not file.is_file():
        steps = logged_steps(run)
        there = f"there are {', '.join(map(str, steps))}" if steps else "there are none yet"
        raise BadInput(f"{run} has no rollouts of step {step}: {there}.")
    records = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            records.append(dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise BadInput(f"Line {number} of {file} is no JSON object ({error}).") from error
    return records


def logged_steps(run: Path) -> list[int]:
    """The steps whose rollouts a run logged with their tokens."""
    return sorted(
        int(file.stem.removeprefix("step-")) for file in (run / "rollouts").glob("step-*.jsonl")
    )


def spans(row: Mapping[str, Any]) -> Iterator[TokenText]:
    """The tokens of one row of a rollout, in order."""
    for text, scored, logprob in zip(row["texts"], row["scored"], row["logprobs"], strict=True):
        if not scored:
            yield TokenText(text, "observation", None)
            continue
        probability = math.exp(float(logprob))
        if probability >= LIKELY:
            kind = "likely"
        else:
            kind = "unlikely" if probability < UNLIKELY else "open"
        yield TokenText(text, kind, probability)
