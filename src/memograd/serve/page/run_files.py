"""Run folders as the page reads them: plain JSON, without torch.

Invariants: nothing is written, a run that is damaged is shown as damaged and hides no other, and a
name leads to a folder directly in the folder of runs or to nothing.
"""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

from memograd.errors import BadInput, MemogradError
from memograd.evaluation.run_log import flat, read_metrics
from memograd.serve.refusals import NotFound

CURVES: Final = ("reward_mean", "loss", "kl", "entropy", "eval_score", "zero_variance_fraction")
BEFORE, AFTER, TOTAL = "before", "after", "total"
ANSWERS_ON_A_PAGE: Final = 25


@dataclass(frozen=True)
class RunLine:
    """One run in the list; None where it does not say."""

    name: str
    task: str | None
    model: str | None
    done: int
    asked: int | None
    state: str
    reason: str
    reward: float | None
    changed_at: datetime


@dataclass(frozen=True)
class RunAnswer:
    """One question with what each policy or method said, by name."""

    question: str
    gold: str | None
    said: Mapping[str, str]
    rewards: Mapping[str, float | None]


@dataclass(frozen=True)
class ReportPart:
    """A heading, a text, or a table with its head as the first of its rows."""

    sort: str
    text: str
    rows: Sequence[Sequence[str]] = ()


def list_runs(folder: Path) -> list[RunLine]:
    """The runs in a folder, the one that was last at work first; none where there is no folder."""
    if not folder.is_dir():
        return []
    runs = [_line(path) for path in folder.iterdir() if (path / "config.json").is_file()]
    return sorted(runs, key=lambda run: (run.changed_at, run.name), reverse=True)


def run_path(folder: Path, name: str) -> Path:
    """The folder of a run. Raises `NotFound`."""
    if not folder.is_dir() or name not in {path.name for path in folder.iterdir()}:
        raise NotFound(f"There is no run {name[:80]!r}.")
    path = folder / name
    if not (path / "config.json").is_file():
        raise NotFound(f"There is no run {name[:80]!r}.")
    return path


def curves(path: Path) -> dict[str, list[float | None]]:
    """Step and every curve of `CURVES` that the run has; None where a step lacks a value."""
    try:
        rows = read_metrics(path / "metrics.jsonl")
    except MemogradError:
        return {"step": []}
    found = {name: [_number(row.get(name)) for row in rows] for name in ("step", *CURVES)}
    return {name: values for name, values in found.items() if any(v is not None for v in values)}


def settings(path: Path) -> dict[str, Any]:
    """What the run was told, dotted."""
    return flat(_object(path / "config.json"), ".")


def report(path: Path) -> list[ReportPart]:
    """The evaluation as the run wrote it down, in Markdown; empty where there is none."""
    file = path / "evaluation.md"
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    parts: list[ReportPart] = []
    for sort, several in groupby(lines, key=_sort_of_line):
        found = list(several)
        if sort == "table":
            cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in found]
            rows = [row for row in cells if not set("".join(row)) <= set("-: ")]
            parts.append(ReportPart(sort, "", rows))
        elif sort == "heading":
            parts += [ReportPart(sort, line.lstrip("# ")) for line in found]
        elif text := "\n".join(found).strip():
            parts.append(ReportPart(sort, text))
    return parts


def _sort_of_line(line: str) -> str:
    return "table" if line.startswith("|") else "heading" if line.startswith("#") else "text"


def answers(path: Path, first: int) -> tuple[list[RunAnswer], bool]:
    """Some of the questions that were asked before and after training, and whether more follow."""
    file = path / "answers.jsonl"
    if not file.is_file():
        return [], False
    try:
        with file.open(encoding="utf-8") as lines:
            some = [json.loads(one) for one in islice(lines, first, first + ANSWERS_ON_A_PAGE + 1)]
        found = [_answered(record) for record in some[:ANSWERS_ON_A_PAGE]]
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise BadInput(f"The answers of the run {path.name} cannot be read ({error!r}).") from error
    return found, len(some) > ANSWERS_ON_A_PAGE


def has_answers(path: Path) -> bool:
    """Whether there are answers that can be shown beside each other."""
    try:
        return bool(answers(path, 0)[0])
    except BadInput:
        return False


def _answered(record: Mapping[str, Any]) -> RunAnswer:
    """Both forms: a method's name to what it said, or one answer before and one after."""
    if "answers" in record:
        said = {str(name): _lines(text) for name, text in record["answers"].items()}
        return RunAnswer(str(record["question"]), str(record["gold"]), said, {})
    sides = {name: record[name] for name in (BEFORE, AFTER)}
    gold = record["columns"].get("answer")
    return RunAnswer(
        question=_prompt(record["prompt"]),
        gold=None if gold is None else str(gold),
        said={name: str(side["answer"]) for name, side in sides.items()},
        rewards={name: side["rewards"].get(TOTAL) for name, side in sides.items()},
    )


def _lines(said: Any) -> str:
    """What a method said; where it said several things (of several seeds), a line each."""
    return "\n".join(map(str, said)) if isinstance(said, list) else str(said)


def _prompt(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else str(prompt[-1]["content"])


def _line(path: Path) -> RunLine:
    metrics = path / "metrics.jsonl"
    told = _object(path / "config.json")
    changed = (metrics if metrics.is_file() else path / "config.json").stat().st_mtime
    rows: list[dict[str, Any]] = []
    state, reason = _state(path)
    if metrics.is_file():
        try:
            rows = read_metrics(metrics)
        except MemogradError as error:
            state, reason = "damaged", str(error)
    last = rows[-1] if rows else {}
    asked = told.get("steps")
    return RunLine(
        name=path.name,
        task=_object(path / "run.json").get("task"),
        model=told.get("model"),
        done=int(_number(last.get("step")) or 0),
        asked=asked if isinstance(asked, int) else None,
        state=state,
        reason=reason,
        reward=_number(last.get("reward_mean")),
        changed_at=datetime.fromtimestamp(changed, UTC),
    )


def _state(path: Path) -> tuple[str, str]:
    """What became of a run, as `memograd.grpo.run_state` tells it; that module needs torch."""
    if _is_locked(path):
        return "running", ""
    written = _object(path / "state.json")
    if written.get("state") == "finished":
        return "finished", ""
    return "stopped", str(written.get("reason", ""))


def _is_locked(path: Path) -> bool:
    try:
        with (path / ".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _object(file: Path) -> dict[str, Any]:
    """A file's JSON object; empty where it is missing or is none."""
    try:
        content = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _number(value: Any) -> float | None:
    usable = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if usable else None
