"""What only asks for help is left off an English sentence, and nothing that tells something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory import Memory
from memograd.memory.reader.asking_english import without_asking

LEFT = [
    (
        "I'm secretary of our association in Durban, minutes template please",
        "I'm secretary of our association in Durban.",
    ),
    ("I weigh 92 kg, am I overweight?", "I weigh 92 kg."),
    ("I drive a Mazda, how often should i change the oil", "I drive a Mazda."),
    ("doc bumped it up to 40, is it normal to feel dizzy?", "doc bumped it up to 40."),
    ("Rent went up to 1450, help me write a polite email to the landlord", "Rent went up to 1450."),
    ("I start at Deloitte on Thursday, any tips for day one?", "I start at Deloitte on Thursday."),
    ("me and Isaac made it official 😭❤️ what do u do now", "me and Isaac made it official."),
    ("Remember that I never eat pork, please", "Remember that I never eat pork."),
    ("I'm allergic to penicillin, which antibiotics are safe", "I'm allergic to penicillin."),
    ("We're moving to Porto in May, what paperwork do we need", "We're moving to Porto in May."),
    (
        "Can you suggest lunches again please, I'm at the vet's now, and we've got an oven",
        "I'm at the vet's now, and we've got an oven",
    ),
]  # fmt: skip
WHOLE = [
    "Can you suggest dinner for my wife Anna who's vegan and our two kids?",
    "I moved to Leeds, and my sister lives there too",
    "I get dizzy, when I stand up too fast",
    "we lost the match, which is a shame",
    "I work nights, what I like about it is the quiet",
    "my sister's in Leeds, where it's always raining",
    "my sister, who is a doctor, moved to Leeds",
    "What helps with psoriasis, I've had it since my teens",
    "I'm pregnant, is it ok that I smoke?",
    "We fly on Friday, what can I bring if I use an inhaler?",
    "How do I wrap a bike?",
    "pasta, what can I add to it?",
    "I'm allergic, any nut at all and my throat closes",
    "I need a hand, and a new knee",
]


@pytest.mark.parametrize(("text", "left"), LEFT)
def test_what_only_asks_is_left_off(text: str, left: str) -> None:
    assert without_asking(text).rstrip(".") == left.rstrip(".")


@pytest.mark.parametrize("text", WHOLE)
def test_what_tells_something_stays(text: str) -> None:
    assert without_asking(text) == text


_CLAUSES = st.sampled_from([*(part for text, _ in LEFT for part in text.split(", ")), *WHOLE])


@given(st.lists(_CLAUSES, min_size=1, max_size=5).map(", ".join))
def test_what_is_left_stands_in_the_text_and_asks_nothing_more(text: str) -> None:
    left = without_asking(text)
    words = iter(text.split())
    assert all(any(word.strip(" ,.").lower() == one.strip(" ,.").lower() for one in words)
               for word in left.split())  # fmt: skip
    assert without_asking(left) == left


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as opened:
        yield opened


def test_a_memory_keeps_the_fact_and_not_the_task(memory: Memory) -> None:
    said = "I'm doing a Spanish course on Tuesdays, can you quiz me on the past tense?"
    memory.add(said, user_id="a")
    [item] = memory.get_all(user_id="a")["results"]
    assert item["memory"] == "User is doing a Spanish course on Tuesdays."


def test_a_played_part_is_nobody(memory: Memory) -> None:
    part = "Let's do a roleplay, you're a tavern keeper and I'm Sir Grimbald"
    memory.add(part, user_id="c", timestamp="2024-05-07T10:00:00Z")
    said = "I have ridden nine days from Mosswater and my horse is lame!"
    memory.add(said, user_id="c", timestamp="2024-05-07T10:01:00Z")
    assert memory.get_all(user_id="c")["results"] == []
    memory.add("My horse is lame.", user_id="c", timestamp="2024-05-09T10:00:00Z")
    assert [one["memory"] for one in memory.get_all(user_id="c")["results"]]


def test_what_is_told_behind_the_text_of_a_task_is_kept(memory: Memory) -> None:
    said = (
        "Translate to polite English: 'my shift finish 10 pm, can I go 15 min early'."
        " I clean offices at Canary Wharf."
    )
    memory.add(said, user_id="b")
    [item] = memory.get_all(user_id="b")["results"]
    assert item["memory"] == "User cleans offices at Canary Wharf."
