"""Messages that change one of the facts that a memory knows, beside messages that only sound so.

    OMP_NUM_THREADS=1 python benchmarks/twins.py
    OMP_NUM_THREADS=1 python benchmarks/twins.py --ways default --dialogues FILES

A memory is told two or three facts, a few days later a message. Somebody who reads only these knows
whether it changes one of them ("binned the bins. retired friday") or none ("sold my old amp at
last"). One JSON line a file and way. Of the calm messages: after how many a fact is gone, changed
or ended (`harmed`), and after how many one is only in doubt. Of the changing ones: after how many
the fact that is meant no longer stands as it was (`changed`), how many leave it in doubt, and how
many hit another fact (`hit_another`). A store of every message harms none and changes none.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from memograd import Memory
from memograd.data.record_files import json_lines
from memograd.memory.manager.past import present
from memograd.memory.records.notes import is_doubted
from memograd.memory.relations.weights import CLOSING
from memograd.tasks.relations.rows import ROLES, part_of

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "dialogues"
WAYS = {"default": "trained", "rules": "rules"}
TOLD, SAID = "2024-05-03T10:00:00+00:00", "2024-05-07T18:30:00+00:00"


def known(memory: Memory, user: str) -> list[str]:
    """The texts of what the memory knows of a user."""
    return [item["memory"] for item in memory.get_all(user_id=user)["results"]]


def after(memory: Memory, case: dict[str, Any], user: str) -> tuple[str, Counter[str]]:
    """(calm or changing, what became of the facts) of a dialogue."""
    *before, last = case["t"]
    behind: dict[str, list[str]] = {}
    for turn in before:
        if turn[0] == "u":
            old = known(memory, user)
            memory.add(turn[1], user_id=user, timestamp=TOLD)
            new = [text for text in known(memory, user) if text not in old]
            behind |= {name: new for name, _, _ in part_of(turn, 2)}
    asked = [{"role": ROLES[turn[0]], "content": turn[1]} for turn in before[-1:] if turn[0] == "a"]
    old = known(memory, user)
    memory.add([*asked, {"role": "user", "content": last[1]}], user_id=user, timestamp=SAID)
    new = known(memory, user)
    doubts = {present(text) for text in new if is_doubted(text)}
    lost = [text for text in old if text not in new]
    doubted, gone = ([x for x in lost if (x in doubts) is one] for one in (True, False))
    meant = [x for name, done in part_of(last, 3) if done in CLOSING for x in behind[name]]
    if not part_of(last, 3):
        return "calm", Counter(harmed=bool(gone), doubted=bool(doubted and not gone))
    right = any(text in meant for text in gone)
    return "changing", Counter(
        changed=right,
        doubted=not right and any(text in meant for text in doubted),
        hit_another=any(text not in meant for text in gone),
    )


def main() -> None:
    """Tell, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dialogues",
        nargs="+",
        type=Path,
        default=[CORPUS / f"{language}-bb.jsonl" for language in ("en", "zh")],
    )
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS])
    arguments = parser.parse_args()
    for path in arguments.dialogues:
        for way in arguments.ways:
            counts: dict[str, Counter[str]] = {}
            with (
                tempfile.TemporaryDirectory() as folder,
                Memory.open(folder, reader=WAYS[way], manager=WAYS[way], env_file=None) as memory,
            ):
                for number, case in json_lines(path, "dialogues"):
                    kind, found = after(memory, case, f"{number}")
                    counts.setdefault(kind, Counter())["messages"] += 1
                    counts[kind].update(found)
            line: dict[str, Any] = {"bench": "twins", "batch": path.stem, "way": way, **counts}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
