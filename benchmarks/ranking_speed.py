"""What the trained ranking takes beyond rank fusion, on one state. One JSON line.

    OMP_NUM_THREADS=1 python benchmarks/ranking_speed.py
    OMP_NUM_THREADS=1 python benchmarks/ranking_speed.py --turns 1000 --searches 20

One owner with as many items as turns, texts of generated lives, vectors at random around
those of their words; both sides answer the same questions in the same process, alternating, each
with its query vector and terms at hand. CPU milliseconds of the thread: medians, and the median of
the differences.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from memory_bench.stand_in import StandInEmbedder
from memory_bench.texts import asked as questions_of
from memory_bench.texts import remembered

from memograd.memory.analysis import analyse
from memograd.memory.filters import scope_filter
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.search.hits import Query, SearchRequest
from memograd.memory.search.ranker.files import shipped_ranker
from memograd.memory.search.ranker.trained import Ranking
from memograd.memory.search.reach import Reached
from memograd.memory.search.recall import fused, trained
from memograd.memory.state import MemoryState

START = datetime(2024, 1, 1, 9, tzinfo=UTC)
SITTING = 20  # turns


def filled(n: int) -> MemoryState:
    """n turns in sittings of twenty, and an item from each."""
    embedder = StandInEmbedder()
    texts = remembered(n)
    vectors, terms = embedder.embed(texts), [analyse(text) for text in texts]
    state = MemoryState(embedder.dimension)
    turns = [
        RawTurn(
            f"t{at}",
            ("Ann", "Ben")[at % 2],
            text,
            START + timedelta(days=at // SITTING, minutes=at % SITTING),
            at // SITTING,
        )
        for at, text in enumerate(texts)
    ]
    items = [
        MemoryItem(
            f"i{at}",
            f"{text} It was said so.",
            Scope("u"),
            START,
            START,
            sources=(f"t{at}",),
            valid_from=turns[at].time,
        )
        for at, text in enumerate(texts)
    ]
    state.turns.add_many(turns, vectors, terms)
    state.items.add_many(items, vectors, terms)
    return state


def measure(n: int, searches: int) -> dict[str, Any]:
    """The line."""
    state, embedder, ranker = filled(n), StandInEmbedder(), shipped_ranker()
    reached = Reached(state, scope_filter("u", None, None, None), None, whole=True)
    line: dict[str, Any] = {"bench": "ranking_speed", "turns": n, "items": n}
    for wanted in (0, 20):
        times: dict[str, list[float]] = {"fusion": [], "trained": []}
        for text in questions_of(searches + 3):
            query = Query(text, embedder.embed_queries([text])[0], analyse(text))
            request = SearchRequest(
                text, reached.wanted, top_k=10, turns=wanted, asked_at=START + timedelta(days=600)
            )
            begun = time.thread_time()
            fused(request, query, reached, Ranking(None, ""), None)
            between = time.thread_time()
            trained(request, query, reached, ranker, None)
            times["fusion"].append(between - begun)
            times["trained"].append(time.thread_time() - between)
        kept = {side: np.array(values[3:]) * 1000 for side, values in times.items()}
        line[f"{wanted} turns"] = {
            **{side: round(statistics.median(values), 2) for side, values in kept.items()},
            "beyond": round(statistics.median(kept["trained"] - kept["fusion"]), 2),
        }
    return line


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=60)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.turns, arguments.searches)), flush=True)


if __name__ == "__main__":
    main()
