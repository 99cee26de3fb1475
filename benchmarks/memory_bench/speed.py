"""Speed, memory and disk of our side against one peer, one JSON object a measure.

Calls alternate between the sides. Every object has `ours`, `peer`, `unit` and `ratio` = peer over
ours, so more than 1 means that ours needs less; on a busy machine trust `ratio_cpu`, the same of
the mean CPU time a call, more. `vectors` and `embedding` say what was embedded: see `stand_in`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_bench.peers import Series, SideFailed, Worker, alternate
from memory_bench.texts import asked, remembered

USER = "alice"
TOP_K = 10
ITEMS_A_USER = 100
LARGE = 50_000  # from here on fewer searches, because a peer may need seconds for one


@dataclass(frozen=True)
class Peer:
    """A side to compare with; python: the interpreter that has it."""

    side: str
    python: str
    searches: int
    adds: int


Line = dict[str, Any]


def measure(peer: Peer, n: int, folder: Path) -> Iterator[Line]:
    """All measures with one scope of n items."""
    ours, theirs = Worker("ours", folder / "ours"), Worker(peer.side, folder / "peer", peer.python)
    workers = [ours, theirs]
    try:
        name = theirs.call("versions")
        for line in _one_scope(workers, peer, n):
            yield {"bench": line.pop("bench"), "n": n, **line, "peer_name": name}
    finally:
        for worker in workers:
            worker.close()
    if n < LARGE:
        for line in _opening(peer, folder):
            yield {"bench": line.pop("bench"), "n": n, **line, "peer_name": name}


def many_users(peer: Peer, users: int, folder: Path) -> Iterator[Line]:
    """One user's search beside 9 others, and beside all others, with 100 items each."""
    ours, theirs = Worker("ours", folder / "ours"), Worker(peer.side, folder / "peer", peer.python)
    workers = [ours, theirs]
    try:
        name = theirs.call("versions")
        texts = remembered(users * ITEMS_A_USER)
        queries = asked(2 * peer.searches)
        for worker in workers:
            worker.call("open", folder=str(worker.folder))
            worker.call("prepare", texts=[*texts, *queries])
        medians = []
        filled = 0
        for number, count in enumerate((10, users)):
            names = [f"user-{user}" for user in range(filled, count)]
            part = texts[filled * ITEMS_A_USER : count * ITEMS_A_USER]
            for worker in workers:
                worker.call("fill", texts=part, users=names)
            filled = count
            chosen = queries[number * peer.searches :][: peer.searches]
            alternate(workers, [_search(query, "user-3") for query in chosen[:5]])
            series, _ = alternate(workers, [_search(query, "user-3") for query in chosen])
            medians.append([each.percentile(50) for each in series])
        few, many = medians
        yield {
            "bench": "one_user_among_many",
            "n": users * ITEMS_A_USER,
            **_compared("ms", many[0] * 1e3, many[1] * 1e3),
            "peer_name": name,
            "users": users,
            "items_a_user": ITEMS_A_USER,
            "ours_with_10_users": round(few[0] * 1e3, 4),
            "peer_with_10_users": round(few[1] * 1e3, 4),
            "ours_growth": round(many[0] / few[0], 2),
            "peer_growth": round(many[1] / few[1], 2),
        }
    finally:
        for worker in workers:
            worker.close()


def _one_scope(workers: list[Worker], peer: Peer, n: int) -> Iterator[Line]:
    ours, theirs = workers
    texts = remembered(n + 2 * peer.adds)
    queries = asked(2 * peer.searches)
    new_texts = texts[n:]
    for worker in workers:
        worker.call("open", folder=str(worker.folder))
        worker.call("prepare", texts=[*texts, *queries])
    rss = [worker.call("usage")["rss_mib"] for worker in workers]
    for worker in workers:
        worker.call("fill", texts=texts[:n], users=[USER])
    yield {
        "bench": "bulk_ingest",
        **_compared("us/item", ours.wall / n * 1e6, theirs.wall / n * 1e6),
        "embedding": "excluded",
        "ours_items_per_s": round(n / ours.wall),
        "peer_items_per_s": round(n / theirs.wall),
    }
    yield {
        "bench": "memory",
        **_compared("MiB resident", *(worker.call("usage")["rss_mib"] for worker in workers)),
        "ours_before_fill": round(rss[0], 1),
        "peer_before_fill": round(rss[1], 1),
    }
    for spend in (False, True):
        for worker in workers:
            worker.call("spend", on=spend)
        half = slice(peer.searches, None) if spend else slice(0, peer.searches)
        alternate(workers, [_search(texts[index], USER) for index in range(5)])
        series, found = alternate(workers, [_search(query, USER) for query in queries[half]])
        if not all(found[0]):
            raise SideFailed("ours found nothing for a query")
        for percent in (50, 95):
            yield {
                "bench": f"search_p{percent}",
                **_compared("ms", *(each.percentile(percent) * 1e3 for each in series)),
                **_details(series, spend),
                "peer_empty_answers": sum(not each for each in found[1]),
            }
        half = slice(peer.adds, None) if spend else slice(0, peer.adds)
        calls = [("add", {"text": text, "user": USER}) for text in new_texts[half]]
        series, _ = alternate(workers, calls)
        yield {
            "bench": "add_p50",
            **_compared("ms", *(each.percentile(50) * 1e3 for each in series)),
            **_details(series, spend),
            "ours_p95": round(series[0].percentile(95) * 1e3, 3),
            "peer_p95": round(series[1].percentile(95) * 1e3, 3),
        }
    for worker in workers:
        worker.call("spend", on=False)
    if peer.side == "mem0":
        scores = theirs.call("keyword_scores", query=texts[0], user=USER)
        yield {
            "bench": "peer_keyword_search",
            "peer_best_score": scores[0] if scores else None,
            "peer_uses_it": bool(scores) and scores[0] > 0,
        }
    else:
        times = [worker.call("fork", user=USER, times=50) for worker in workers]
        yield {
            "bench": "fork",
            **_compared("us", *(statistics.median(each) * 1e6 for each in times)),
        }


def _opening(peer: Peer, folder: Path) -> Iterator[Line]:
    """A started Python opens what is on disk and answers once; imports are counted."""
    seconds: list[float] = []
    by_hand = False
    disk = []
    for side, place, python in (("ours", "ours", None), (peer.side, "peer", peer.python)):
        worker = Worker(side, folder / place, *([python] if python else []))
        try:
            disk.append(worker.disk_mib())
            query = asked(1)[0]
            worker.call("prepare", texts=[query])
            worker.call("open", folder=str(worker.folder))
            opened = worker.wall
            name, call = _search(query, USER)
            worker.call(name, **call)
            seconds.append(opened + worker.wall)
            if side == "mem0":
                by_hand = worker.call("attribute", of="loaded_by_hand")
        finally:
            worker.close()
    yield {"bench": "open_to_first_search", **_compared("s", seconds[0], seconds[1])} | (
        {"peer_loaded_by_hand": by_hand} if peer.side == "mem0" else {}
    )
    yield {"bench": "disk", **_compared("MiB", disk[0], disk[1])}


def _search(query: str, user: str) -> tuple[str, dict[str, Any]]:
    return "search", {"query": query, "user": user, "top_k": TOP_K}


def _compared(unit: str, ours: float, peer: float) -> Line:
    return {
        "ours": round(ours, 4),
        "peer": round(peer, 4),
        "unit": unit,
        "ratio": round(peer / ours, 2) if ours else None,
    }


def _details(series: list[Series], spend: bool) -> Line:
    ours, theirs = (each.cpu_mean() * 1e3 for each in series)
    return {
        "ours_cpu": round(ours, 3),
        "peer_cpu": round(theirs, 3),
        "ratio_cpu": round(theirs / ours, 2),
        "calls": len(series[0].wall),
        "embedding": "e5, included" if spend else "excluded",
        "vectors": "hashed words",
    }
