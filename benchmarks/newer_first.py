"""Does the newer of two items that answer the same stand first? JSON lines, with 95% bootstraps.

    python benchmarks/newer_first.py
    python benchmarks/newer_first.py --data DATA_FOLDER

Dialogues of authors that no ranker learnt from, beside sittings of conversations of batch g; half
of them leave the old value as it is (`memograd.tasks.retrieval.dialogues`). Each question is asked
by the ranker that ships, as it is and without what it learnt of newer items:

    newer first   of those with both among the ten best, the answer stands before every old value
    @1, @3, @5    the share of questions whose answer is among the first k items

With --data, the same for items as rules read them, by share of the evidence: LoCoMo, LongMemEval's
development sample, MemDaily, and the written conversations of batch g.

Invariant: both sides rank the same candidates of the same memory.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from retrieval import load_memories

from memograd.data import load_any
from memograd.evaluation import bootstrap_interval, paired_bootstrap_difference
from memograd.memory.analysis import analyse
from memograd.memory.embedders import Embedder
from memograd.memory.embedders.load import open_embedder
from memograd.memory.search import Query
from memograd.memory.search.ranker.files import shipped_ranker
from memograd.memory.search.ranker.newer import Newer
from memograd.memory.search.ranker.trained import asked, candidates_of, judge_items
from memograd.memory.state import MemoryState
from memograd.tasks.retrieval.dialogues import memories_of_dialogues, read_dialogues, sittings_of
from memograd.tasks.retrieval.material import Asking, MemoryMaterial, state_of

CORPUS: Final = Path(__file__).resolve().parents[1] / "corpus"
AUTHORS: Final = ("e", "h", "j", "o", "u", "v", "w", "x", "y")
STEERED: Final = ("v", "w", "x", "y")
"""By these it was decided what a pair is seen by; the others report."""
KS: Final = (1, 3, 5, 10)


def told_dialogues(
    author: str, language: str, embedder: Embedder
) -> tuple[list[MemoryMaterial], set[str]]:
    """The memories, and the ids of the old values that were left as they are."""
    path = CORPUS / "dialogues" / f"{language}-{author}.jsonl"
    if not path.exists():
        return [], set()
    opened, closed = read_dialogues(path, left_open=True), read_dialogues(path)
    old: set[str] = set()
    for one, other in zip(opened, closed, strict=True):
        held = {item.id for item in other.items}
        wanted = {id for _, answers in one.asked for id in answers}
        old |= {item.id for item in one.items if item.id not in held | wanted}
    talks = load_any(CORPUS / "conversations" / f"{language}-g.jsonl")
    sittings = [part for talk in talks for part in sittings_of(talk)]
    return memories_of_dialogues([opened], sittings, embedder, cut=True), old


def found(
    state: MemoryState, asking: Asking, vector: np.ndarray, newer: Newer | None
) -> list[tuple[str, frozenset[str]]]:
    """The ten best items with their sources."""
    ranker, query = shipped_ranker(), Query(asking.text, vector, analyse(asking.text))
    seen = asked(
        state,
        query,
        asked_at=asking.asked_at,
        item_eligible=None,
        turn_eligible=None,
        with_turns=False,
    )
    hits = candidates_of(
        judge_items(seen, ranker.items),
        state.items,
        query,
        ranker.items,
        ranker.item_probability,
        most=max(KS),
        threshold=None,
        explain=False,
        newer=newer,
    )
    return [(hit.record.id, frozenset(hit.record.sources)) for hit in hits]


def measured(
    memories: Sequence[MemoryMaterial], old: set[str], embedder: Embedder
) -> dict[str, list[tuple[float, float]]]:
    """Per measure a pair for each question that it applies to: without, with what was learnt."""
    ways = (None, shipped_ranker().newer)
    values: dict[str, list[tuple[float, float]]] = {}
    for told in memories:
        state = state_of(told, embedder)
        asking = [one for one in told.asked if one.evidence]
        vectors = embedder.embed_queries([one.text for one in asking])
        for one, vector in zip(asking, vectors, strict=True):
            pair = [_of(one, found(state, one, vector, way), old, told) for way in ways]
            for name in pair[0]:
                values.setdefault(name, []).append((pair[0][name], pair[1][name]))
    return values


def _of(
    asking: Asking, hits: list[tuple[str, frozenset[str]]], old: set[str], told: MemoryMaterial
) -> dict[str, float]:
    by_id = told.items is not None
    shown = [{id} & asking.evidence if by_id else sources & asking.evidence for id, sources in hits]
    values = {}
    for k in KS:
        there = set[str]().union(*shown[:k])
        share = float(bool(there)) if by_id else len(there) / len(asking.evidence)
        values[f"@{k}"] = 100 * share
    right = [at for at, some in enumerate(shown) if some]
    wrong = [at for at, (id, _) in enumerate(hits) if id in old]
    if right and wrong and by_id:
        values["newer first"] = 100.0 * (right[0] < wrong[0])
    return values


def lines(data: Path | None) -> Iterator[dict[str, Any]]:
    """One line a set and measure."""
    embedder = open_embedder("e5")
    sets: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for author in AUTHORS:
        for language in ("en", "zh"):
            told, old = told_dialogues(author, language, embedder)
            part = "steered by" if author in STEERED else "reported"
            for name, pairs in measured(told, old, embedder).items():
                sets.setdefault(f"dialogues {language}, {part}", {}).setdefault(name, []).extend(
                    pairs
                )
    if data is not None:
        memories = load_memories(data, CORPUS / "conversations", quick=False)
        written = memories.pop("written conversations")
        memories["written, g"] = [one for one in written if one.group.endswith("-g")]
        for name, told in memories.items():
            sets[name] = measured(told, set(), embedder)
    for name, values in sets.items():
        for measure, pairs in values.items():
            before, after = ([pair[way] for pair in pairs] for way in (0, 1))
            line: dict[str, Any] = {"bench": "newer_first", "set": name, "measure": measure}
            line |= {"questions": len(pairs), "without": _rounded(before), "with": _rounded(after)}
            gain = paired_bootstrap_difference(before, after)
            yield line | {"gain": [round(one, 1) for one in gain]}


def _rounded(values: Sequence[float]) -> list[float]:
    low, high = bootstrap_interval(list(values))
    return [round(float(one), 1) for one in (np.mean(values), low, high)]


def main() -> None:
    """Tell, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the public sets")
    for line in lines(parser.parse_args().data):
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
