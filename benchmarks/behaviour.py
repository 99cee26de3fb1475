"""How a memory behaves on written cases: what it keeps, changes, forgets, and what it must not say.

    python benchmarks/behaviour.py                     # the default, the rules, keep every message
    python benchmarks/behaviour.py --ways default --authors s10 --failures 20
    python benchmarks/behaviour.py --suites tests/behaviour/unread/*.jsonl

Cases are described in `memograd.tasks.relations.cases`. One table a language, by kind; milliseconds
are the median of a call of `add`.

Thresholds and words were chosen by looking at s1 to s10, and s13 was written to see how far they
carry (corrections, requests to forget, small talk, jobs, secrets). Only an author that nobody read
reports: s12 and s16 (not read) stand apart in `tests/behaviour/unread`, with s11 and s17 to s43, of
which the failures were read after their first score.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memograd import Memory
from memograd.errors import BadInput
from memograd.memory.manager import RelationManager
from memograd.memory.reader import TrainedReader
from memograd.memory.relations.thresholds import Thresholds, changed
from memograd.tasks.relations.cases import Case, language_of, play, read_cases, what_is_wrong

SUITES = Path(__file__).resolve().parents[1] / "tests" / "behaviour"


@dataclass
class Score:
    """right, total: by kind. failures: id, kind, steps, why."""

    right: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str, Any, str]] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)


def open_memory(way: str, folder: str, **given: Any) -> Memory:
    """default (trained), rules, every (each message word for word), chat (the model of the
    environment)."""
    if way == "default":
        return Memory.open(folder, **given)
    way = "rules" if way == "every" else way
    return Memory.open(folder, reader=way, manager=way, **given)


def run(
    cases: Iterable[Case], way: str, *, thresholds: Mapping[str, float] | None = None, **given: Any
) -> Score:
    """The score of one memory on all cases, each of a user of its own.

    thresholds: some that take the place of the model's.
    """
    score = Score()
    with (
        tempfile.TemporaryDirectory() as folder,
        open_memory(way, folder, env_file=None, **given) as memory,
    ):
        for part in (memory.reader, memory.manager):
            if isinstance(part, TrainedReader | RelationManager):
                part.thresholds = changed(part.thresholds, thresholds or {})
        for case in cases:
            try:
                took = play(memory, case, case["id"], infer=way != "every")
                score.milliseconds.extend(took)
                wrong = what_is_wrong(memory, case, case["id"])
                why = wrong.why if wrong is not None else None
            except Exception as error:  # a crash is a failure of the case
                why = f"{type(error).__name__}: {error}"
            score.total[case["kind"]] += 1
            if why is None:
                score.right[case["kind"]] += 1
            else:
                score.failures.append((case["id"], case["kind"], case["steps"], why))
    return score


def table(scores: dict[str, Score]) -> str:
    """One row a kind, one column a memory, in percent."""
    kinds = sorted(next(iter(scores.values())).total)
    head = f"{'':22}{'n':>5}" + "".join(f"{way:>10}" for way in scores)
    rows = [head]
    for kind in [*kinds, "all"]:
        every = kind == "all"
        total = [s.total.total() if every else s.total[kind] for s in scores.values()]
        right = [s.right.total() if every else s.right[kind] for s in scores.values()]
        shares = "".join(f"{100 * a / b:10.1f}" for a, b in zip(right, total, strict=True))
        rows.append(f"{kind:22}{total[0]:5}{shares}")
    medians = "".join(f"{statistics.median(s.milliseconds):10.0f}" for s in scores.values())
    rows.append(f"{'ms a call of add':27}{medians}")
    return "\n".join(rows)


def thresholds_given(pairs: Sequence[str]) -> dict[str, float]:
    """The numbers of NAME=NUMBER, by name."""
    try:
        found = {name: float(number) for name, number in (pair.split("=") for pair in pairs)}
    except ValueError:
        raise BadInput(f"Thresholds are given as NAME=NUMBER, not {' '.join(pairs)!r}.") from None
    changed(Thresholds(), found)
    return found


def main() -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suites", nargs="+", type=Path, default=sorted(SUITES.glob("*.jsonl")))
    parser.add_argument("--ways", nargs="+", default=["default", "rules", "every"])
    parser.add_argument("--authors", help="such as s2 or s9,s10")
    parser.add_argument("--kinds", nargs="+")
    parser.add_argument("--relations", type=Path, help="file of another relation model")
    parser.add_argument("--embedder", default="e5")
    parser.add_argument("--thresholds", nargs="+", default=[], help="NAME=NUMBER, of the memory")
    parser.add_argument("--failures", type=int, default=0, help="how many to print")
    given = parser.parse_args()
    try:
        thresholds = thresholds_given(given.thresholds)
        every = read_cases(given.suites, given.authors.split(",") if given.authors else [])
    except BadInput as error:
        parser.error(str(error))
    every = [case for case in every if not given.kinds or case["kind"] in given.kinds]
    for language in sorted({language_of(case) for case in every}):
        cases = [case for case in every if language_of(case) == language]
        settings = {"embedder": given.embedder}
        if given.relations:
            settings["relations"] = given.relations
        scores = {way: run(cases, way, thresholds=thresholds, **settings) for way in given.ways}
        print(f"\n{language}\n{table(scores)}", flush=True)
        for way, score in scores.items():
            for name, kind, steps, why in score.failures[: given.failures]:
                print(way, name, kind, json.dumps(steps, ensure_ascii=False), why, sep=" | ")


if __name__ == "__main__":
    main()
