from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.data import Conversation, generate_conversations, generate_file, load_locomo
from memograd.data.generator.plan import future_spans, past_spans, recent_days
from memograd.data.generator.topics import STATES
from memograd.errors import BadInput

seeds = st.integers(0, 10**6)
CONVERSATIONS = generate_conversations(20, seed=1)


def _one(seed: int) -> Conversation:
    return generate_conversations(1, seed)[0]


def _told_value(wordings: Sequence[str], text: str) -> str | None:
    """The value in a telling, read back with the wordings as patterns; None for other turns."""
    for wording in wordings:
        pattern = re.escape(wording).replace(r"\{a_value\}", r"an? \{value\}")
        pattern = pattern.replace(r"\{value\}", "(?P<value>.+)")
        pattern = pattern.replace(r"\{when\}", r"(yesterday|(two|three) days ago|last \w+day)")
        if match := re.fullmatch(rf"(.*[.!?] )?{pattern}", text):
            return match["value"]
    return None


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_every_answer_is_derivable_from_its_evidence(seed: int) -> None:
    conversation = _one(seed)
    turns = {turn.id: turn for turn in conversation.turns}
    for question in conversation.questions:
        texts = [turns[turn_id].text for turn_id in question.evidence]
        assert texts
        if question.category == "single-hop":
            assert question.answer in texts[0]
        elif question.category == "multi-hop":
            for part in question.answer.split(", "):
                assert any(part in text for text in texts)
        elif question.category == "temporal":
            time = turns[question.evidence[0]].time
            assert time is not None
            day = time.date()
            pointers = [*recent_days(day), *past_spans(day), *future_spans(day)]
            said = {when.answer for when in pointers if when.phrase in texts[0]}
            assert question.answer in said
        else:
            assert question.answer in {"Likely yes", "Likely no"}
        assert 1 <= len(question.answer.split()) <= 8


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_the_latest_value_is_the_current_one(seed: int) -> None:
    conversation = _one(seed)
    changes = 0
    for name in conversation.speakers:
        for state in STATES.values():
            wordings = [*state.first.tells, *state.change.tells]
            said = [turn.text for turn in conversation.turns if turn.speaker == name]
            values = [_told_value(wordings, text) for text in said]
            told = [value for value in values if value is not None]
            asked = state.current.format(name=name)
            answers = [q.answer for q in conversation.questions if q.text == asked]
            assert answers == told[-1:]
            changes += max(0, len(told) - 1)
            for before, after in pairwise(told):
                texts = {q.text: q.answer for q in conversation.questions}
                article = "an" if after[0].lower() in "aeio" else "a"
                previous = state.previous.format(
                    name=name, value=after, a_value=f"{article} {after}"
                )
                assert texts[previous] == before
    assert changes >= 1


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_nothing_is_said_or_asked_twice(seed: int) -> None:
    conversation = _one(seed)
    assert len({turn.text for turn in conversation.turns}) == len(conversation.turns)
    assert len({turn.id for turn in conversation.turns}) == len(conversation.turns)
    questions = [*conversation.questions, *conversation.adversarial_questions]
    assert len({question.text for question in questions}) == len(questions)
    assert [int(q.id.split("/q")[1]) for q in questions] == list(range(len(questions)))


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_people_take_turns_and_sessions_are_weeks_apart(seed: int) -> None:
    conversation = _one(seed)
    for before, after in pairwise(conversation.turns):
        if before.session == after.session:
            assert before.speaker != after.speaker
            assert before.time == after.time
        else:
            assert after.session == before.session + 1
            assert before.time is not None and after.time is not None
            assert 13 <= (after.time - before.time).days <= 36


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_adversarial_questions_ask_the_wrong_person(seed: int) -> None:
    conversation = _one(seed)
    first, second = conversation.speakers
    by_text = {question.text: question for question in conversation.questions}

    def swapped(text: str) -> str:
        swap = {first: second, second: first}
        return re.sub(rf"\b({first}|{second})\b", lambda match: swap[match[0]], text)

    assert len(conversation.adversarial_questions) == 6
    for trap in conversation.adversarial_questions:
        assert (trap.adversarial, trap.category, trap.answer) == (
            True,
            "adversarial",
            "Not mentioned",
        )
        right = swapped(trap.text)
        assert by_text[right].answer == trap.adversarial_answer
        assert by_text[right].evidence == trap.evidence
        assert trap.text not in by_text


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(3, 20), st.integers(4, 40))
def test_other_sizes(seed: int, sessions: int, turns_per_session: int) -> None:
    [conversation] = generate_conversations(
        1, seed, sessions=sessions, turns_per_session=turns_per_session
    )
    assert [*dict.fromkeys(turn.session for turn in conversation.turns)] == [
        *range(1, sessions + 1)
    ]
    assert len({turn.text for turn in conversation.turns}) == len(conversation.turns)


def test_the_usual_size() -> None:
    for conversation in CONVERSATIONS:
        assert 100 <= len(conversation.turns) <= 160
        assert 40 <= len(conversation.questions) <= 65


def test_the_same_seed_gives_the_same_conversations_in_any_process() -> None:
    assert generate_conversations(3, seed=7)[:2] == generate_conversations(2, seed=7)
    assert generate_conversations(1, seed=7)[0].turns != generate_conversations(1, seed=8)[0].turns
    code = (
        "import hashlib; from memograd.data import generate_conversations;"
        "print(hashlib.sha256(repr(generate_conversations(2, 7)).encode()).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = hashlib.sha256(repr(generate_conversations(2, 7)).encode()).hexdigest()
    assert done.stdout.strip() == here


def test_two_conversations_share_few_facts() -> None:
    facts = [{(q.text, q.answer) for q in conversation.questions} for conversation in CONVERSATIONS]
    values = [
        {q.answer for q in conversation.questions if q.category in {"single-hop", "multi-hop"}}
        for conversation in CONVERSATIONS
    ]
    for number, other in combinations(range(len(CONVERSATIONS)), 2):
        assert len(facts[number] & facts[other]) <= 2
        assert len(values[number] & values[other]) <= len(values[number]) / 3


def test_generate_file_is_a_locomo_file(tmp_path: Path) -> None:
    generate_file(tmp_path / "f.json", 3, seed=5)
    assert load_locomo(tmp_path / "f.json") == generate_conversations(3, seed=5)


def test_sizes_that_make_no_sense() -> None:
    with pytest.raises(BadInput, match="0 conversations of 8 sessions"):
        generate_conversations(0, 1)
    with pytest.raises(BadInput, match="1 conversations of 2 sessions"):
        generate_conversations(1, 1, sessions=2)
