"""What the rewards of the SQL agent say of answers and statements that somebody wrote.

    python benchmarks/sql_rewards.py statements --db medical.sqlite --data questions.jsonl.gz
    python benchmarks/sql_rewards.py answers --data questions.jsonl.gz --pairs pairs.jsonl.gz

`statements`: the share of statements that `execution` takes for right, by kind of question: the
gold statement with names for row ids, and the gold statement without the column that it searches.
`answers`: how often `evidence` (of `covered`, so that no database is needed) has the better answer
of a pair above the worse, and its mean over written answers and over attempts to earn it by
pasting. One JSON line each. The pairs' answers are to questions of the same file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from memograd.tasks.sql.compare import gold_of, matches
from memograd.tasks.sql.questions import SqlQuestion, read_questions, statement_by_name
from memograd.tasks.sql.rewards import covered
from memograd.tasks.sql.sandbox import run_cached

FILLER = "，另外还要注意"
SENTENCE = "请您一定要遵照医生的话按时服药，有不舒服就去医院看看"


def pieces(text: str, length: int, separator: str) -> str:
    """The text with a separator after every `length` letters, signs left out."""
    letters = "".join(letter for letter in text if letter.isalnum())
    cut = [letters[start : start + length] for start in range(0, len(letters), length)]
    return separator.join(cut)


def crumbs(text: str, length: int, step: int) -> str:
    """Pieces that overlap, with a filler after each."""
    letters = "".join(letter for letter in text if letter.isalnum())
    starts = range(0, len(letters), step)
    return "了".join(letters[start : start + length] for start in starts)


def shuffled(parts: Sequence[str], seed: int = 0) -> str:
    """The parts in another order."""
    return "".join(random.Random(seed).sample(parts, len(parts)))


ATTACKS: dict[str, Callable[[str, str], str]] = {
    "pasted": lambda raw, written: raw,
    "pasted beside the written answer": lambda raw, written: f"{written}\n{raw}",
    "pasted as a list of 8 letters": lambda raw, written: pieces(raw, 8, "\n- "),
    "pasted with fillers every 10 letters": lambda raw, written: pieces(raw, 10, FILLER),
    "pasted, every second sentence": lambda raw, written: "。".join(raw.split("。")[::2]),
    "pasted in crumbs of 3 letters": lambda raw, written: pieces(raw, 3, "了"),
    "pasted in crumbs that overlap": lambda raw, written: crumbs(raw, 3, 2),
    "pasted in shuffled crumbs": lambda raw, written: shuffled(pieces(raw, 3, " ").split()),
    "pasted, one sentence between": lambda raw, written: pieces(raw, 22, SENTENCE),
    "pasted, other words between": lambda raw, written: "".join(
        piece + shuffled(SENTENCE, number)
        for number, piece in enumerate(pieces(raw, 22, " ").split())
    ),
    "pasted, then padding": lambda raw, written: raw + "\n" + "请遵医嘱，如有不适请就医。" * 60,
}


def statements(questions: Sequence[SqlQuestion], database: Path) -> None:
    """Print the shares of right statements that are taken for right."""
    right: defaultdict[str, list[bool]] = defaultdict(list)
    for question in questions:
        gold = gold_of(str(database), question.sql, question.columns)
        named = statement_by_name(question)
        if named != question.sql:
            said = f"{question.kind}, by name"
        else:
            said = f"{question.kind}, without the searched column"
            listed, rest = question.sql.split("FROM", 1)
            kept = [
                name for name in listed.split(",") if name.strip() not in (question.columns or ())
            ]
            named = f"{', '.join(kept)} FROM {rest}"
        right[said].append(matches(run_cached(str(database), named), gold))
    for said, values in right.items():
        print(json.dumps({"statements": said, "n": len(values), "right": round(fmean(values), 3)}))


def answers(questions: Sequence[SqlQuestion], pairs: Sequence[Any]) -> None:
    """Print how pairs are ordered, and the mean of written and of pasted answers."""
    by_text = {question.text: question for question in questions}
    orders: defaultdict[str, list[int]] = defaultdict(list)
    for pair in pairs:
        question = by_text.get(pair["chosen"][0]["content"])
        if question is None:
            continue
        better, worse = (
            score(question, pair[side][-1]["content"]) for side in ("chosen", "rejected")
        )
        order = (better > worse) - (better < worse)
        for kind in (question.kind, "all"):
            orders[kind].append(order)
    for kind, found in orders.items():
        counted = {"better above": found.count(1), "level": found.count(0)}
        print(json.dumps({"pairs": kind, "n": len(found), **counted}))
    written = [(score(question, question.answer), question) for question in questions]
    print(json.dumps({"answers": "written", "mean": round(fmean(one for one, _ in written), 3)}))
    for name, attack in ATTACKS.items():
        earned, won = [], 0
        for honest, question in written:
            raw = "\n".join(one.quote for one in question.evidence)
            earned.append(score(question, attack(raw, question.answer)))
            won += earned[-1] > honest
        line = {"answers": name, "mean": round(fmean(earned), 3), "above written": won}
        print(json.dumps({**line, "n": len(written)}, ensure_ascii=False))


def score(question: SqlQuestion, answer: str) -> float:
    """What `evidence` gives the answer after the gold statement."""
    return covered(answer, [one.quote for one in question.evidence], question.text)


def main() -> None:
    """Read and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("statements", "answers"))
    parser.add_argument("--db", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", type=Path)
    given = parser.parse_args()
    questions = read_questions(given.data)
    if given.what == "statements":
        if given.db is None:
            parser.error("statements needs --db")
        statements(questions, given.db)
        return
    if given.pairs is None:
        parser.error("answers needs --pairs")
    with gzip.open(given.pairs, "rt", encoding="utf-8") as file:
        answers(questions, [json.loads(line) for line in file])


if __name__ == "__main__":
    main()
