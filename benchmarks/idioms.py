"""How many ways to tell a change the relation model sees, with and without plain words for idioms.

    OMP_NUM_THREADS=1 python benchmarks/idioms.py
    OMP_NUM_THREADS=1 python benchmarks/idioms.py --missed

`corpus/idioms.jsonl` has facts, each with the ways in which people tell that it has changed
("knocked the fags on the head"). A change is seen where the model closes the item with at least the
probability from which a memory doubts it. One JSON line a language. The plain words were chosen
with these sentences in sight, so the second number says what they mend, and nothing of others.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from memograd.memory.relations import CLOSING, RELATIONS, load_relation_model
from memograd.memory.relations import model as read

IDIOMS = Path(__file__).resolve().parents[1] / "corpus" / "idioms.jsonl"


def missed(facts: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The ways that the model does not see, by language."""
    model = load_relation_model()
    model.drop_texts()
    closing = [RELATIONS.index(name) for name in CLOSING]
    found: dict[str, list[str]] = {"en": [], "zh": []}
    for fact in facts:
        for told in fact["changes"]:
            [row] = model.relate(told, [("user", fact["said"])], [fact["item"]])
            if float(row[closing].sum()) < model.about.thresholds.doubt_above:
                found[fact["language"]].append(told)
    return found


def main() -> None:
    """Prints the counts, and what is missed where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--missed", action="store_true", help="print what is not seen")
    given = parser.parse_args()
    facts = [json.loads(line) for line in IDIOMS.read_text(encoding="utf-8").splitlines()]
    ways = Counter(fact["language"] for fact in facts for _ in fact["changes"])
    as_said: Callable[[str], str] = str
    with patch.object(read, "plainly", as_said):
        before = missed(facts)
    after = missed(facts)
    for language, number in ways.items():
        seen = {
            "as said": number - len(before[language]),
            "in plain words": number - len(after[language]),
        }
        print(json.dumps({"language": language, "ways": number, **seen}))
        for told in after[language] if given.missed else []:
            print(told)


if __name__ == "__main__":
    main()
