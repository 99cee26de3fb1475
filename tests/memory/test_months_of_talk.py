"""In a memory that holds much, a message changes what it speaks of, and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memograd import Memory
from memograd.memory.manager.cues import CORRECTS
from memograd.memory.manager.substitution import corrected
from memograd.memory.reader.forget import MAY_ASK

HEARD = (
    "Heavy clay soil, and I work full time so weekends only.",
    "Can you write a short note to my landlord please? The boiler is old.",
    "My daughter Orla wants pumpkins for her birthday.",
    "We had three days of rain and the car failed its MOT.",
    "我妈五月来住,想给她在附近找点事做",
    "我想开始跑步,体重81公斤,平时基本不动",
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for text in HEARD:
            memory.add(text, user_id="u")
        yield memory


def texts(memory: Memory) -> list[str]:
    return [item["memory"] for item in memory.get_all(user_id="u")["results"]]


@pytest.mark.parametrize(
    ("told", "asked", "private"),
    [
        (
            "My neighbour Mrs. Hallam is behind on her rent.",
            "That was told to me in confidence. Remove it from your notes, please.",
            "Hallam",
        ),
        ("I dye my hair.", "Erase that, would you? Only my hairdresser knows.", "dye"),
        ("我婆婆做饭特别咸", "这句收回,传出去要出大事", "婆婆"),
        ("我喜欢我们班的课代表,叫江晚", "别记别记,让人知道我就社死了", "江晚"),
    ],
)
def test_a_request_that_points_takes_what_was_just_said(
    memory: Memory, told: str, asked: str, private: str
) -> None:
    before = texts(memory)
    memory.add(told, user_id="u")
    memory.add(asked, user_id="u")
    after = texts(memory)
    assert not any(private in text for text in after)
    assert set(before) <= set(after)  # what else is remembered stays as it was


def test_people_speak_for_themselves(tmp_path: Path) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        said = [
            {"role": "user", "name": "Ann", "content": "I drive a red Golf."},
            {"role": "user", "name": "Ben", "content": "I sold my car, I take the bus now."},
        ]
        memory.add(said, user_id="u")
        assert "Ann drives a red Golf." in texts(memory)


@pytest.mark.parametrize(
    "said",
    [
        "Thanks, Gina! That means a lot.",
        "Woah, cool!",
        "Yeah, totally!",
        "Hey Jon! How's it going?",
    ],
)
def test_a_reaction_is_no_name(said: str) -> None:
    assert corrected("The book got Jon thinking.", said) is None
    assert corrected("The dog is called Jon.", "Wick. Sorry") == "The dog is called Wick."


def test_no_word_of_forgetting_forgets_nothing(memory: Memory) -> None:
    before = texts(memory)
    for said in (
        "It's not for the eggs, you daft man",
        "我就知道不该问你。按作者",
        "Glad to cheer you on. Keep going and never give up!",
    ):
        memory.add(said, user_id="u")
    assert all(any(text[:20] in now for now in texts(memory)) for text in before)


@pytest.mark.parametrize(
    ("old", "said", "new"),
    [
        # The old value is said again, and nothing takes it back.
        ("By summer Ada wants 20 lengths.", "THIRTY ONE. I said 20 by summer, you did it", None),
        ("By summer Ada wants 20 lengths.", "I said 20 but it's 31", "By summer Ada wants 31"),
        ("Ada teaches on Mondays and Thursdays.", "Thursday it is then", None),
    ],
)
def test_a_value_that_is_said_again_is_not_corrected(old: str, said: str, new: str | None) -> None:
    found = corrected(old, said)
    assert found == (None if new is None else f"{new} lengths.")


def test_to_be_sorry_for_somebody_corrects_nothing() -> None:
    assert CORRECTS.search("Sorry to hear about your uncle. Thursday at 6 then.") is None
    assert CORRECTS.search("Sorry about your boat!") is None
    assert CORRECTS.search("sorry about that, it's the 12th") is not None
    assert CORRECTS.search("sorry, to the left") is not None


@pytest.mark.parametrize(
    ("said", "may"),
    [
        ("Thanks! I love it and that'll keep my spirits up.", False),
        ("Keep it up, you two!", False),
        ("Please do not keep my address.", True),
    ],
)
def test_to_keep_something_up_asks_for_nothing(said: str, may: bool) -> None:
    assert (MAY_ASK.search(said) is not None) is may
