"""What is lost when only the beginning of an assistant's message is read for memories.

    OMP_NUM_THREADS=1 python benchmarks/assistant_reading.py --data DATA_FOLDER --read 0 500

LongMemEval's questions about what the assistant said (single-session-assistant, 19 of the
development sample), each in a memory of its own sessions, told through `Memory.add`. For each limit
in characters (0: none), the share of questions whose evidence is among the first 1, 3, 5 and 10
items (an item shows the turns that it came from) and raw turns. Items are what `search` gives by
default. One JSON line a limit, with how many items there are and the CPU seconds of adding.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memograd.data import Conversation, load_longmemeval
from memograd.memory import Memory
from memograd.memory.reader import parts

KIND = "single-session-assistant"
KS = (1, 3, 5, 10)


def asked_of_assistant(data: Path) -> list[Conversation]:
    """The conversations whose question is of the kind."""
    told = load_longmemeval(data / "longmemeval" / "longmemeval_oracle_dev180.json.gz")
    return [one for one in told if any(asked.category == KIND for asked in one.questions)]


def places(conversation: Conversation, memory: Memory) -> dict[str, int | None]:
    """Where the evidence is found first among items and turns, 1 is first; None: not at all."""
    user = conversation.id
    by_session: dict[int, list[dict[str, Any]]] = {}
    for turn in conversation.turns:
        message = {
            "role": turn.said_as, "content": turn.text, "timestamp": turn.time.isoformat()
        }  # fmt: skip
        by_session.setdefault(turn.session, []).append(message)
    for messages in by_session.values():
        memory.add(messages, user_id=user)
    [question] = [asked for asked in conversation.questions if asked.category == KIND]
    evidence = {turn.text for turn in conversation.turns if turn.id in question.evidence}
    asked_at = None if question.asked_at is None else question.asked_at.isoformat()
    found = memory.search(question.text, user_id=user, top_k=10, turns=10, asked_at=asked_at)
    items = [memory.store.item(hit["id"]) for hit in found["results"]]
    shown = {
        "items": [_said(memory, user, item.sources) for item in items if item is not None],
        "turns": [{hit["text"]} for hit in found["turns"]],
    }
    return {
        name: next((n for n, one in enumerate(ranked, 1) if one & evidence), None)
        for name, ranked in shown.items()
    }


def _said(memory: Memory, user: str, ids: Sequence[str]) -> set[str]:
    found = [memory.store.turn(f"user:{user}", id) for id in ids]
    return {turn.text for turn in found if turn is not None}


def measure(told: list[Conversation], limit: int) -> dict[str, Any]:
    """The line of one limit."""
    parts.ASSISTANT_READ = limit or 10**9  # type: ignore[misc]
    found: dict[str, list[int | None]] = {"items": [], "turns": []}
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder)) as memory:
        begun = time.process_time()
        for one in told:
            for name, place in places(one, memory).items():
                found[name].append(place)
        seconds, kept = time.process_time() - begun, memory.stats()
    line: dict[str, Any] = {"bench": "assistant_reading", "read": limit, "questions": len(told)}
    for name, ranks in found.items():
        line[name] = [
            round(100 * sum(rank is not None and rank <= k for rank in ranks) / len(ranks), 1)
            for k in KS
        ]
    return line | {"stats": kept, "cpu_s": round(seconds, 1)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--read", type=int, nargs="+", default=[0, parts.ASSISTANT_READ])
    given = parser.parse_args()
    told = asked_of_assistant(given.data)
    for limit in given.read:
        print(json.dumps(measure(told, limit)), flush=True)


if __name__ == "__main__":
    main()
