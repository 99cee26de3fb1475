"""What the memory's reader keeps of short chat and of talk about tasks. One JSON line a file.

    F=corpus/dialogues
    OMP_NUM_THREADS=1 python benchmarks/kept_of_chat.py --dialogues $F/en-as.jsonl $F/zh-as.jsonl

Most of what people type to an assistant tells nothing that lasts: "play some music", "too long",
"no way". The writer marks what does. `kept_of_facts`: of the user's messages that tell a fact, in
per cent, those that something is kept of; `kept_of_others`: the same of all others. By two ways in
the same run: `default`, and `head`, which believes the head of the weights alone, as before the
function that learnt from chat (`tasks/relations/gate.py`).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from memograd.memory.reader.trained import TrainedReader
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations.gate import gate_file, read_gate
from memograd.memory.relations.model import SHIPPED, RelationModel
from memograd.memory.relations.weights import read_weights
from memograd.tasks.relations.rows import WrittenTurn, read_dialogues

NOON: Final = datetime(2026, 5, 7, 12, tzinfo=UTC)


def readers(path: Path) -> dict[str, TrainedReader]:
    """By way."""
    weights = read_weights(path)
    gate = read_gate(gate_file(path), weights)
    plain = replace(gate, worth=None) if gate is not None else None
    return {
        way: TrainedReader(RelationModel(weights, one))
        for way, one in {"head": plain, "default": gate}.items()
    }


def keeps(reader: TrainedReader, said: WrittenTurn) -> bool:
    """Whether anything is kept of a user's message."""
    before = [turn_of(role, text) for role, text in said.before[-3:]]
    heard = reader.hear([turn_of("user", said.text)], before)
    return any(one.facts for one in heard)


def turn_of(role: str, text: str) -> RawTurn:
    """As `Memory.add` would hand it to the reader."""
    return RawTurn(f"{role}:{text}", role, text, NOON, 1, role=role)


def kept(reader: TrainedReader, turns: list[WrittenTurn]) -> dict[str, Any]:
    """The shares of one file."""
    told = [(bool(said.facts), keeps(reader, said)) for said in turns]
    of_facts = [one for fact, one in told if fact]
    of_others = [one for fact, one in told if not fact]
    return {
        "facts": len(of_facts),
        "others": len(of_others),
        "kept_of_facts": round(100 * sum(of_facts) / max(1, len(of_facts)), 1),
        "kept_of_others": round(100 * sum(of_others) / max(1, len(of_others)), 1),
    }


def main() -> None:
    """Read, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dialogues", type=Path, nargs="+", required=True)
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    arguments = parser.parse_args()
    ways = readers(arguments.weights)
    for file in arguments.dialogues:
        turns = [said for said in read_dialogues(file) if said.role == "user"]
        for way, reader in ways.items():
            print(json.dumps({"bench": "kept_of_chat", "file": file.stem, "way": way}
                             | kept(reader, turns)), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
