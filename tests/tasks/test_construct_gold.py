"""Gold answers: always possible, and the best memory that this way of writing makes."""

from __future__ import annotations

import pytest
from construct_cases import LetterEmbedder, small_case

from memograd.data.lifelog import LifelogSettings, generate_lifelogs
from memograd.errors import BadInput
from memograd.tasks.memory_construct.answer_format import Format
from memograd.tasks.memory_construct.case import BuildCase, Chunk, case_of_log
from memograd.tasks.memory_construct.measure import gold_answers
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.walk import BookWalk, Rules, ViewLimits

TEXTS = Texts(LetterEmbedder(64))
WIDE = ViewLimits(top_k=1000, token_budget=100_000)


@pytest.mark.parametrize("form", ["lines", "tools"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_all_gold_calls_are_carried_out_and_keep_what_is_true(language: str, form: Format) -> None:
    """With everything in view, the book holds exactly the statements that are true in the end."""
    (log,) = generate_lifelogs(1, 5, LifelogSettings(language=language))
    case = case_of_log(log, turns_per_chunk=4).first_chunks(18)
    walk = BookWalk(case, TEXTS, Rules(form, WIDE))
    gold_answers(walk)
    assert all(outcome.failure is None for tried in walk.taken for outcome in tried.outcomes)
    true: dict[str, str] = {}
    for statement in (one for chunk in case.chunks for one in chunk.statements):
        gold = statement.gold
        assert gold is not None
        if gold.kind in ("UPDATE", "DELETE"):
            true.pop(str(gold.target), None)
        if gold.kind in ("ADD", "UPDATE"):
            true[statement.id] = statement.text
    assert {item.text for item in walk.book.items} == set(true.values())


def test_gold_answers_more_than_keeping_the_turns_and_nothing() -> None:
    logs = generate_lifelogs(4, 5, LifelogSettings(split="test"))
    scores = {"gold": [], "turns": [], "nothing": []}
    for case in (case_of_log(log, turns_per_chunk=4).first_chunks(6) for log in logs):
        for name, found in scores.items():
            walk = BookWalk(case, TEXTS, Rules())
            if name == "gold":
                gold_answers(walk)
            while not walk.over:
                lines = walk.chunk.text.splitlines() if name == "turns" else []
                walk.take(walk.attempt("\n".join(f"+ {line}" for line in lines)))
            found += [one.score for one in walk.answered]
    mean = {name: sum(found) / len(found) for name, found in scores.items()}
    assert mean["gold"] > 0.85 and mean["gold"] > mean["turns"] + 0.1 > mean["nothing"] + 0.2


def test_data_without_gold_operations_are_refused() -> None:
    (log,) = generate_lifelogs(1, 5)
    chunk = case_of_log(log, turns_per_chunk=4).chunks[0]
    from dataclasses import replace

    bare = tuple(replace(statement, gold=None) for statement in chunk.statements)
    case = BuildCase("bare", "en", (Chunk(chunk.text, bare),), small_case().asked[:0])
    with pytest.raises(BadInput, match="bare has no gold operations"):
        gold_answers(BookWalk(case, TEXTS, Rules()))
