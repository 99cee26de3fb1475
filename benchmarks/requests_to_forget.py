"""What a request to forget takes from a memory in which much was told: what it means, or more?

    python benchmarks/requests_to_forget.py          # the batches that are kept for measuring
    python benchmarks/requests_to_forget.py --dialogues corpus/dialogues/en-h.jsonl --failures 10

Every dialogue with a request to forget (corpus/README.md) is told to a memory of its own user, turn
by turn. Of the facts that stood in an item before the request, those that it takes back must stand
in none after it, and all that it does not touch must stand in one: a fact stands where an item has
60% of the content words of its quotation. `exact`: requests after which both is so for every fact.
One JSON line a batch.

Invariant: the batches by default are none that the weights learnt from (corpus/split.json).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memograd import Memory
from memograd.memory.manager.past import stems

CORPUS: Final = Path(__file__).resolve().parents[1] / "corpus" / "dialogues"
KEPT: Final = [CORPUS / f"{language}-o.jsonl" for language in ("en", "zh")]
ROLES: Final = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}
SHARE: Final = 0.6  # of the content words of a quotation


@dataclass
class Found:
    """requests, exact: dialogues' turns. gone, stay: facts, each with how many there were."""

    requests: int = 0
    exact: int = 0
    gone: list[bool] = field(default_factory=list)
    stay: list[bool] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)


def stands(quote: str, items: list[str]) -> bool:
    """Whether an item tells the fact of this quotation."""
    words = stems(quote)
    return bool(words) and any(len(words & stems(item)) >= SHARE * len(words) for item in items)


def items_of(memory: Memory, user: str) -> list[str]:
    found = memory.get_all(user_id=user, limit=1_000)["results"]
    return [item["memory"] for item in found]


def look(memory: Memory, dialogues: Path) -> Found:
    """What the requests of one batch did."""
    found = Found()
    for number, line in enumerate(dialogues.read_text(encoding="utf-8").splitlines()):
        for turn, before, after, facts in told(memory, json.loads(line)["t"], f"u{number}"):
            acts = dict(turn[3])
            kept = {name for name, quote in facts.items() if stands(quote, before)}
            taken = {name for name in kept if acts.get(name) == "retract"}
            gone = [not stands(facts[name], after) for name in taken]
            stay = [stands(facts[name], after) for name in kept if name not in acts]
            found.requests += 1
            found.gone += gone
            found.stay += stay
            if gone and all(gone + stay):
                found.exact += 1
            else:
                wanted = [facts[name] for name in taken]
                changed = [item for item in before if item not in after]
                found.failures.append({"said": turn[1], "meant": wanted, "changed": changed})
    return found


def told(
    memory: Memory, turns: list[list[Any]], user: str
) -> Iterator[tuple[list[Any], list[str], list[str], dict[str, str]]]:
    """Every turn that takes something back, with the items before and after it and the quotations
    of the facts that were told before it."""
    if not any("retract" in dict(turn[3]).values() for turn in turns if len(turn) > 3):
        return
    facts: dict[str, str] = {}
    for turn in turns:
        asks = len(turn) > 3 and "retract" in dict(turn[3]).values()
        before = items_of(memory, user) if asks else []
        when = {"timestamp": turn[4]} if len(turn) > 4 else {}
        memory.add([{"role": ROLES[turn[0]], "content": turn[1]}], user_id=user, **when)
        if asks:
            yield turn, before, items_of(memory, user), dict(facts)
        facts |= {name: quote for name, quote, _ in (turn[2] if len(turn) > 2 else [])}


def main() -> None:
    """Tell and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dialogues", nargs="+", type=Path, default=KEPT)
    parser.add_argument("--relations", type=Path, help="file of another relation model")
    parser.add_argument("--failures", type=int, default=0, help="how many to print")
    given = parser.parse_args()
    if missing := [str(path) for path in given.dialogues if not path.is_file()]:
        parser.error(f"There is no file {', '.join(missing)}: give batches of corpus/dialogues.")
    settings = {"relations": given.relations} if given.relations else {}
    for path in given.dialogues:
        with (
            tempfile.TemporaryDirectory() as folder,
            Memory.open(folder, env_file=None, **settings) as memory,
        ):
            found = look(memory, path)
        print(
            json.dumps(
                {
                    "bench": "requests to forget",
                    "batch": path.stem,
                    "requests": found.requests,
                    "exact": round(100 * found.exact / max(found.requests, 1), 1),
                    "meant and gone": f"{sum(found.gone)}/{len(found.gone)}",
                    "not meant and there": f"{sum(found.stay)}/{len(found.stay)}",
                }
            ),
            flush=True,
        )
        for failure in found.failures[: given.failures]:
            print(json.dumps(failure, ensure_ascii=False))


if __name__ == "__main__":
    main()
