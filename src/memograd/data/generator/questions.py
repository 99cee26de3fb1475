"""From what was told to questions with answers and evidence.

Invariants: evidence is the turns that told it; no question is asked twice; an adversarial question
about one person is one that only the other could answer. Pure but for the choice of adversarial
questions; may import the files beside it and `conversation`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memograd.data.conversation import NOT_MENTIONED, Question
from memograd.data.generator.plan import Telling
from memograd.data.generator.topics import COLLECTIONS, SHARED, STATES

ADVERSARIAL_EACH = 3
Told = tuple[Telling, str]


@dataclass(frozen=True)
class _Draft:
    """A question without its place in the file. about_other: the same of the other person."""

    text: str
    answer: str
    category: str
    evidence: tuple[str, ...]
    owner: int
    about_other: str | None = None


def ask_questions(
    rng: random.Random, identity: str, told: Sequence[Told]
) -> tuple[list[Question], list[Question]]:
    """Answerable and adversarial questions; `told` in the order of the conversation."""
    drafts = [*_single_tellings(told), *_states(told), *_collections(told), *_shared(told)]
    order = {turn_id: number for number, (_, turn_id) in enumerate(told)}
    drafts.sort(key=lambda draft: max(order[turn_id] for turn_id in draft.evidence))
    questions = [
        Question(f"{identity}/q{number}", draft.text, draft.answer, draft.category, draft.evidence)
        for number, draft in enumerate(drafts)
    ]
    traps = _traps(rng, drafts)
    adversarial = [
        Question(
            f"{identity}/q{number}",
            draft.about_other or "",
            NOT_MENTIONED,
            "adversarial",
            draft.evidence,
            adversarial=True,
            adversarial_answer=draft.answer,
        )
        for number, draft in enumerate(traps, start=len(questions))
    ]
    return questions, adversarial


def _single_tellings(told: Sequence[Told]) -> Iterator[_Draft]:
    for telling, turn_id in told:
        slots = telling.slots
        swapped = slots | {"name": slots["other"], "other": slots["name"]}
        for ask in telling.asks:
            yield _Draft(
                ask.text.format(**slots),
                ask.answer.format(**slots),
                ask.category,
                (turn_id,),
                telling.owner,
                ask.text.format(**swapped) if ask.only_owner else None,
            )


def _states(told: Sequence[Told]) -> Iterator[_Draft]:
    for owner in (0, 1):
        for kind, state in STATES.items():
            values = _of(told, owner, kind)
            if values:
                telling, turn_id = values[-1]
                text = state.current.format(**telling.slots)
                yield _Draft(text, telling.slots["value"], "single-hop", (turn_id,), owner)
            for (before, before_id), (after, after_id) in pairwise(values):
                text = state.previous.format(**after.slots)
                evidence = (before_id, after_id)
                yield _Draft(text, before.slots["value"], "multi-hop", evidence, owner)


def _collections(told: Sequence[Told]) -> Iterator[_Draft]:
    for owner in (0, 1):
        for kind, collection in COLLECTIONS.items():
            parts = _of(told, owner, kind)
            yield _Draft(
                collection.text.format(**parts[0][0].slots),
                ", ".join(telling.slots[collection.slot] for telling, _ in parts),
                "multi-hop",
                tuple(turn_id for _, turn_id in parts),
                owner,
            )


def _shared(told: Sequence[Told]) -> Iterator[_Draft]:
    for kind, collection in SHARED.items():
        for mine, my_id in _of(told, 0, kind):
            for theirs, their_id in _of(told, 1, kind):
                value = mine.slots[collection.slot]
                if theirs.slots[collection.slot] == value:
                    text = collection.text.format(**mine.slots)
                    yield _Draft(text, value, "multi-hop", (my_id, their_id), 0)


def _traps(rng: random.Random, drafts: Sequence[_Draft]) -> list[_Draft]:
    """Drafts whose question, asked of the other person, has no answer in the conversation."""
    answerable = {draft.text for draft in drafts}
    traps: list[_Draft] = []
    for owner in (0, 1):
        usable = [
            draft
            for draft in drafts
            if draft.owner == owner
            and draft.about_other is not None
            and draft.about_other not in answerable
        ]
        traps += rng.sample(usable, min(ADVERSARIAL_EACH, len(usable)))
    return traps


def _of(told: Sequence[Told], owner: int, kind: str) -> list[Told]:
    return [one for one in told if one[0].owner == owner and one[0].kind == kind]
