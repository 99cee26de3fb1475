"""Can items be read alone by a stranger: a seeded draw of items, each with automatic checks.

    python benchmarks/item_wording.py                                        # the behaviour suites
    python benchmarks/item_wording.py --locomo locomo10.json --count 200     # and LoCoMo
    python benchmarks/item_wording.py --show 60                              # to be judged by hand

Items are what the default memory's reader makes of messages: of LoCoMo's conversations, turn by
turn, and of the first steps of the cases in `tests/behaviour`. A check is a word for what a
stranger stumbles over; a text that passes them all may still be bad, so some are read by people.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from memograd.data import load_locomo
from memograd.memory import RawTurn
from memograd.memory.language import is_chinese
from memograd.memory.messages import to_turns
from memograd.memory.reader import TrainedReader
from memograd.memory.relations import load_relation_model

SUITES: Final = Path(__file__).resolve().parents[1] / "tests" / "behaviour"
SAID: Final = datetime(2024, 5, 7, 18, 30, tzinfo=UTC)
_SAYS: Final = re.compile(
    r"^(?:[\w ]{1,30} (?:said|asked): |[\w ]{1,30}, asked \".+\", answered: "
    r"|[^，：“]{1,8}(?:说|问)：|[^，：“]{1,8}被问“.+”时回答：)",
    re.DOTALL,
)
_QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^”]*”|「[^」]*」")
CHECKS: Final[dict[str, re.Pattern[str]]] = {
    "no subject": re.compile(
        r"^(?:he|she|it|they|this|that|these|those|there)(?:'s|'re|\b)(?! (?:is|are) (?:no|an?))"
        r"|^[他她它这那](?!里|边)",
        re.IGNORECASE,
    ),
    "first person": re.compile(r"(?<![\w@.-])(?:I|I'm|I've|my|me|we|our|us)\b(?![.'-]\w)|我(?!国)"),
    "relative date": re.compile(
        r"\b(?:yesterday|today|tomorrow|tonight|(?:last|next|this) (?:week|month|year|night|weekend"
        r"|mon|tues|wednes|thurs|fri|satur|sun)|(?:days?|weeks?|months?|years?) ago)\b"
        r"|昨[天晚]|今[天晚早]|明[天晚早]|前天|后天|[上下]个?(?:周|星期|月)(?!旬)",
        re.IGNORECASE,
    ),
    "interjection": re.compile(
        r"(?:^|[.!?] )(?:wow|oh|hey|haha+|lol|omg|yay|ugh|hmm+|yeah|yep|well|ok|okay|thanks|cool"
        r"|btw|fyi)\b|\b(?:lol|lmao|omg|haha+)\b|(?:^|[，。！])(?:哈哈+|哇|嗯+|唉|诶|哎呀?|对了)"
        r"|[\U0001f300-\U0001faff]",
        re.IGNORECASE,
    ),
    "cut off": re.compile(
        r"\b(?:and|or|but|because|with|to|the|a|of|for|my|his|her|'s|their|said:|asked:)[.,!?]*$"
        r"|^(?:and|or|but|because|so|which|who)\b|[，、：:]$|(?:和|但是?|因为|的)[。]?$",
        re.IGNORECASE,
    ),
}


def checked(text: str) -> list[str]:
    """The names of the checks that a text does not pass."""
    said = _SAYS.sub("", text)
    bare = _QUOTED.sub("", said).strip()
    failed = [name for name, pattern in CHECKS.items() if pattern.search(bare)]
    if len(text) > (160 if is_chinese(text) else 320):
        failed.append("long")
    words = len(bare) if is_chinese(bare) else len(bare.split())
    if bare == text and words < (4 if is_chinese(bare) else 3):
        failed.append("short")
    return failed


def items_of_suites(reader: TrainedReader, chosen: random.Random, count: int) -> Iterator[str]:
    """Facts of the first steps of the cases, in an order of `chosen`."""
    for suite in sorted(SUITES.glob("*.jsonl")):
        cases = [json.loads(line) for line in suite.open(encoding="utf-8")]
        chosen.shuffle(cases)
        found: list[str] = []
        for case in cases:
            step: Any = case["steps"][0]
            said, at = step, SAID
            if isinstance(step, dict) and "messages" in step:
                said, at = (
                    step["messages"],
                    datetime.fromisoformat(step.get("timestamp", str(SAID))),
                )
            found += [fact.text for fact in reader.read(to_turns(said, heard_at=at))]
            if len(found) >= count:
                break
        yield from found[:count]


def items_of_locomo(
    reader: TrainedReader, file: Path, chosen: random.Random, count: int
) -> Iterator[str]:
    """Facts of stretches of ten turns; both people speak for themselves."""
    stretches: list[tuple[list[RawTurn], list[RawTurn]]] = []
    for conversation in load_locomo(file):
        turns = conversation.turns
        stretches += [
            (turns[n : n + 10], turns[max(0, n - 3) : n]) for n in range(0, len(turns), 10)
        ]
    chosen.shuffle(stretches)
    found: list[str] = []
    for turns, before in stretches:
        if len(found) >= count:
            break
        found += [fact.text for heard in reader.hear(turns, before) for fact in heard.facts]
    yield from found[:count]


def table(items: Sequence[str]) -> str:
    """How many items fail each check, and how many fail none."""
    failed = Counter(name for text in items for name in checked(text))
    clean = sum(not checked(text) for text in items)
    rows = [f"{name:16}{number:5}" for name, number in failed.most_common()]
    return "\n".join([*rows, f"{'none of these':16}{clean:5} of {len(items)}"])


def main() -> None:
    """Draw, check, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--count", type=int, default=200, help="items of LoCoMo")
    parser.add_argument("--suite-count", type=int, default=50, help="items of each suite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="how many items of each to print")
    given = parser.parse_args()
    reader, chosen = TrainedReader(load_relation_model()), random.Random(given.seed)
    drawn = {"behaviour": list(items_of_suites(reader, chosen, given.suite_count))}
    if given.locomo:
        drawn["LoCoMo"] = list(items_of_locomo(reader, given.locomo, chosen, given.count))
    for name, items in drawn.items():
        print(f"\n{name}\n{table(items)}")
        chosen.shuffle(items)
        for text in items[: given.show]:
            print(f"{', '.join(checked(text)) or '-':24} | {text}")


if __name__ == "__main__":
    main()
