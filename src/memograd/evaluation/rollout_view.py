"""A group of rollouts read back from a run folder, and its tokens as spans to be coloured.

Invariant: the spans of a row, put together, are the row's text; a token is shown as scored exactly
where the log says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memograd.errors import BadInput

LIKELY, UNLIKELY = 0.5, 0.1
"""From which probability a token counts as likely, and below which as unlikely."""


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
