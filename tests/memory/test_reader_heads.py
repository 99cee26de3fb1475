"""What a fragment belongs to, and what is kept beside it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import numpy as np
import pytest

from memograd.memory.reader import TrainedReader
from memograd.memory.reader.heads import is_fragment, is_standing, is_telling
from memograd.memory.reader.parts import asks_openly
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations import Thresholds


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("Right knee.", True),
        ("94 F150, 260 thousand miles.", True),
        ("Mr Chips, he was only two.", True),
        ("She come through fine.", False),
        ("Lavonne wants pie", False),
        ("oat milk stays", False),
        ("Keeping Britbox for the Poirots.", False),
        ("Surgeon was a Dr Pallister.", False),
        ("Two days?", False),
        ("me 6.8 cgpa", False),
        ("三周。", False),
    ],
)
def test_what_is_a_fragment(text: str, fragment: bool) -> None:
    assert is_fragment(text) is fragment


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("I tie flies.", True),
        ("Truck died in the yard at their place.", True),
        ("咖啡我喝了心慌。", True),
        ("She let me.", False),
        ("I am keeping.", False),
        ("I was looking at the wrong date.", False),
        ("Long bed", False),
        ("She just corrected me and laughed.", False),
        ("What was that?", False),
        ("Draft me an ad.", False),
    ],
)
def test_what_tells_something(text: str, tells: bool) -> None:
    assert is_telling(text) is tells


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        ("And please do not use bullet points, I find them abrupt.", True),
        ("no more emojis pls", True),
        ("Please call me Priya.", True),
        ("use tables whenever you explain something", True),
        ("for the recipes, nothing with nuts", True),
        ("回答尽量短，一两句就够", True),
        ("往后给我讲详细点", True),
        ("请以后都用中文回答", True),
        ("call me Monday", False),
        ("call me back later", False),
        ("以后再说吧", False),
        ("回答得很好", False),
        ("我以后都不去了", False),
        ("don't use lunges", False),
        ("I do not use bullet points", False),
    ],
)
def test_what_holds_for_every_answer(text: str, standing: bool) -> None:
    assert is_standing(text) is standing


class OfWords:
    """Gives a sentence its worth by a word in it; some words are seen only alone."""

    def __init__(self, seen: str, alone: str = "") -> None:
        self.seen, self.alone = seen.split(), alone.split()

    def worth(self, message: str, before: Any, segments: Sequence[str], role: str = "user") -> Any:
        words = [*self.seen, *(self.alone if list(segments) == [message] else [])]
        fact = [0.9 if any(word in one for word in words) else 0.1 for one in segments]
        return np.array([[one, 1 - one, 0.0] for one in fact], np.float32)

    def holds_secret(self, message: str, before: Any, segments: Sequence[str]) -> Any:
        return np.zeros(len(segments), bool)

    def may_close(self, message: str, before: Any, segments: Sequence[str]) -> bool:
        return True


def read(text: str, model: OfWords) -> list[str]:
    turn = RawTurn("t", "user", text, datetime(2025, 10, 12, tzinfo=UTC), 1, role="user")
    reader = TrainedReader(cast(Any, model), thresholds=Thresholds())
    [heard] = reader.hear([turn], ())
    assert all(quote in text for quote in heard.quotes)
    return [fact.text for fact in heard.facts]


def test_a_fragment_is_kept_with_the_sentence_that_it_belongs_to() -> None:
    text = "Truck died in the yard. 94 F150, 260 thousand miles. Arvid hauled it off."
    assert read(text, OfWords("F150 Arvid")) == [
        "User said: Truck died in the yard. 94 F150, 260 thousand miles.",
        "User said: Arvid hauled it off.",
    ]
    assert read("Draft me an ad. 3 bedrooms, a cat.", OfWords("cat")) == [
        "User said: 3 bedrooms, a cat."
    ]
    # What is no fragment stays by itself.
    assert read("I moved. I quit.", OfWords("moved quit")) == ["User moved.", "User quit."]


def test_what_the_message_hides_is_also_read_alone() -> None:
    text = "I eat fish again. I do it for the iron. My toast burnt."
    model = OfWords("iron", "fish toast")
    assert read(text, model) == ["User eats fish again.", "User does it for the iron."]
    # Only beside something that is kept.
    assert read("I eat fish again. My toast burnt.", model) == []


def test_whom_a_pronoun_means_was_said_in_the_same_sitting() -> None:
    reader = TrainedReader(cast(Any, OfWords("sheet mum")), thresholds=Thresholds())

    def about(hours: int) -> str:
        first = datetime(2025, 10, 12, tzinfo=UTC)
        turns = [
            RawTurn("a", "user", "My mum is old", first, 1, role="user"),
            RawTurn(
                "b", "user", "She left a sheet", first + timedelta(hours=hours), 2, role="user"
            ),
        ]
        return reader.hear(turns[1:], turns[:1])[0].facts[0].text

    assert about(1) == "About User's mum: she left a sheet."
    assert about(96) == "User said: She left a sheet."


def test_a_standing_instruction_is_kept() -> None:
    text = "How do I lift tubers? And please do not use bullet points."
    assert read(text, OfWords("none")) == ["User said: please do not use bullet points."]
    assert read("Write me a letter. No bullet points.", OfWords("none")) == []


def test_a_question_answers_none_and_tells_nothing_of_who_only_asks() -> None:
    reader = TrainedReader(cast(Any, OfWords("plastic Tuesday")), thresholds=Thresholds())

    def answered(text: str) -> str:
        asked = RawTurn("a", "assistant", "Which day?", None, 1, role="assistant")
        turn = RawTurn("b", "user", text, None, 2, role="user")
        return reader.hear([turn], [asked])[0].facts[0].text

    assert answered("How do I wrap plastic?") == "User asked: How does User wrap plastic?"
    assert answered("how do i wrap plastic") == "User asked: how does User wrap plastic."
    assert answered("Tuesday?") == 'User, asked "Which day?", answered: Tuesday?'


@pytest.mark.parametrize(
    ("text", "openly"),
    [
        ("How do I wrap nine feet of it?", True),
        ("Should we go electric?", True),
        ("我该买哪个？", True),
        ("How do I tell my boss?", False),
        ("Any ideas for my son?", False),
        ("我血压高能喝咖啡吗？", False),
        ("I wrapped it.", False),
    ],
)
def test_what_tells_nothing_of_who_asks(text: str, openly: bool) -> None:
    assert asks_openly(text) is openly


def test_a_time_goes_with_what_it_is_the_time_of() -> None:
    assert read("at 4pm.", OfWords("4pm")) == ["User said: at 4pm."]
    assert read("Fox got in. at 4pm.", OfWords("4pm Fox")) == ["User said: Fox got in. at 4pm."]
