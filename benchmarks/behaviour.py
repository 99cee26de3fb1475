"""How a memory behaves on written cases: what it keeps, changes, forgets, and what it must not say.

    python benchmarks/behaviour.py                     # the default, the rules, keep every message
    python benchmarks/behaviour.py --ways default --authors s10 --failures 20
    python benchmarks/behaviour.py --suites ../shared/behaviour/en.jsonl

A case (`tests/behaviour/{en,zh}.jsonl`) has `steps` (a text, chat messages, or `{"messages",
"timestamp"}`), then what a memory that understood them must and must not say: `ask` (search, with
regular expressions on the joined texts of the first `top` results) and `all_has` / `all_not` (on
all items). One table a language, by kind; milliseconds are the median of a call of `add`.

Thresholds and words were chosen by looking at s1 to s10, and s13 was written to see how far they
carry (corrections, requests to forget, small talk, jobs, secrets): only an author that nobody read
reports.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memograd import Memory
from memograd.memory.manager import RelationManager

SUITES = Path(__file__).resolve().parents[1] / "tests" / "behaviour"
DEFAULT_TIME = "2024-05-07T18:30:00+00:00"


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


def why_wrong(memory: Memory, case: dict[str, Any], *, infer: bool, score: Score) -> str | None:
    """What is wrong after the steps of a case, None where nothing is."""
    user = case["id"]
    for step in case["steps"]:
        said, at = step, DEFAULT_TIME
        if isinstance(step, dict) and "messages" in step:
            said, at = step["messages"], step.get("timestamp", at)
        began = time.perf_counter()
        memory.add(said, user_id=user, timestamp=at, infer=infer)
        score.milliseconds.append(1_000 * (time.perf_counter() - began))
    items = "\n".join(one["memory"] for one in memory.get_all(user_id=user)["results"])
    for ask in case.get("ask", []):
        hits = memory.search(ask["q"], user_id=user, top_k=ask.get("top", 3))["results"]
        found = "\n".join(hit["memory"] for hit in hits)
        if ask.get("has") and not re.search(ask["has"], found, re.I):
            return f"asked {ask['q']!r}: no {ask['has'][-60:]!r} in {found!r} of {items!r}"
        if ask.get("not") and re.search(ask["not"], found, re.I):
            return f"asked {ask['q']!r}: {ask['not'][-60:]!r} in {found!r}"
    for want in case.get("all_has", []):
        if not re.search(want, items, re.I):
            return f"no {want!r} in {items!r}"
    for bad in case.get("all_not", []):
        if found := re.search(bad, items, re.I):
            return f"{found[0]!r} in {items!r}"
    return None


def run(
    cases: Iterable[dict[str, Any]], way: str, *, close_above: float | None = None, **given: Any
) -> Score:
    """The score of one memory on all cases, each of a user of its own."""
    score = Score()
    with (
        tempfile.TemporaryDirectory() as folder,
        open_memory(way, folder, env_file=None, **given) as memory,
    ):
        if close_above is not None and isinstance(memory.manager, RelationManager):
            memory.manager.close_above = close_above
        for case in cases:
            try:
                why = why_wrong(memory, case, infer=way != "every", score=score)
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


def main() -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suites", nargs="+", type=Path, default=sorted(SUITES.glob("*.jsonl")))
    parser.add_argument("--ways", nargs="+", default=["default", "rules", "every"])
    parser.add_argument("--authors", help="such as s2 or s9,s10")
    parser.add_argument("--kinds", nargs="+")
    parser.add_argument("--relations", type=Path, help="file of another relation model")
    parser.add_argument("--embedder", default="e5")
    parser.add_argument("--close-above", type=float, help="another threshold of the manager")
    parser.add_argument("--failures", type=int, default=0, help="how many to print")
    given = parser.parse_args()
    authors = given.authors.split(",") if given.authors else []
    for suite in given.suites:
        cases = [json.loads(line) for line in suite.open(encoding="utf-8")]
        cases = [
            case
            for case in cases
            if (not authors or any(f"-{author}-" in case["id"] for author in authors))
            and (not given.kinds or case["kind"] in given.kinds)
        ]
        settings = {"embedder": given.embedder}
        if given.relations:
            settings["relations"] = given.relations
        scores = {
            way: run(cases, way, close_above=given.close_above, **settings) for way in given.ways
        }
        print(f"\n{suite.name}\n{table(scores)}", flush=True)
        for way, score in scores.items():
            for name, kind, steps, why in score.failures[: given.failures]:
                print(way, name, kind, json.dumps(steps, ensure_ascii=False), why, sep=" | ")


if __name__ == "__main__":
    main()
