"""Another value of the same thing, and what many items beside it must not lose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.memory.test_write_path import Answering, closing, opened, texts

from memograd.memory import Memory
from memograd.memory.manager.other_value import pointed_at
from memograd.memory.reader.fact import Heard
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations.model import SHIPPED
from memograd.memory.relations.rows import Span
from memograd.memory.relations.values import OtherValue


@pytest.fixture
def embedder(trigrams: Any) -> Any:
    return trigrams()


@pytest.mark.parametrize(
    ("first", "later", "replaced"),
    [
        (
            "I have done four laps of the lake path.",
            "I've done six laps of the lake path now.",
            True,
        ),
        (
            "I have done four laps of the lake path.",
            "I saw six herons on the lake path.",
            False,
        ),
        (
            "I have done four laps of the lake path.",
            "I've done many laps of the lake path.",
            False,
        ),
        ("我做完了四个木工项目。", "我木工项目做完六个了。", True),
        ("我做完了四个木工项目。", "我为木工项目买了六只灯。", False),
    ],
)
def test_another_value_of_the_same_thing_takes_its_place(
    tmp_path: Path, embedder: Any, first: str, later: str, replaced: bool
) -> None:
    """The model finds that both speak of the same thing, and words that the number is another."""
    model = Answering("same", sure=0.8)
    with opened(tmp_path, embedder, model) as memory:
        memory.add(first, user_id="u")
        memory.add(later, user_id="u")
        past = [text for text in texts(memory) if "formerly" in text or "此前" in text]
        assert len(past) == replaced
        model.relation = "beside"
        memory.add(first, user_id="v")
        memory.add(later, user_id="v")
        assert len(texts(memory, "v")) == 2


@pytest.mark.parametrize(("old", "new"), [("to", "them"), ("reads", "them"), ("to", "Vogue")])
def test_a_word_that_is_nobodys_value_takes_no_place_and_gives_none(old: str, new: str) -> None:
    text = "User's subscription to the New Yorker piles up, nobody reads it."
    place = text.index(f" {old} ") + 1
    model: Any = Answering()
    model.other_value = lambda *asked: OtherValue(Span(place, place + len(old)), new, 0.9)
    said = "I told them not to renew, Vogue is enough"
    heard = Heard(RawTurn("1", "user", said, None, 1), own=said)
    assert pointed_at(model, heard, text) is None


@pytest.mark.parametrize(("items", "rewritten"), [(2, True), (5, False)])
def test_beside_many_items_a_correction_needs_more_certainty(
    tmp_path: Path, embedder: Any, items: int, rewritten: bool
) -> None:
    """ "No wait" in a message about something else rewrote what stood near it."""
    model = Answering()
    told = ["I have a cat", "I play chess", "I like tea", "I live in Boston", "I drive a Golf"]
    with opened(tmp_path, embedder, model) as memory:
        memory.add(" ".join(f"{text}." for text in told[:items]), user_id="u")
        before = texts(memory)
        assert len(before) == items
        model.relation, model.sure = "correct", closing(0.5)
        memory.add("No wait, the Crowne Plaza has a pool.", user_id="u")
        assert (not set(before) <= set(texts(memory))) is rewritten


OTHERS = (
    "I'm planning a trip to Bergen with my aunt in May.",
    "I play the oboe in a small orchestra.",
    "I've been meaning to repaint the garden shed.",
    "I work as a surveyor for the county.",
    "My cousin is getting married in Leeds.",
)


@pytest.mark.skipif(not SHIPPED.is_file(), reason="the relation model's weights are not here")
@pytest.mark.parametrize(
    ("first", "later", "past"),
    [
        (
            "I've visited 6 lighthouses since I joined the heritage club, and I'm rather pleased.",
            "I'm looking for a sturdier tripod. By the way, I just visited my 9th lighthouse"
            " since I joined the heritage club, and I'm feeling rather proud!",
            True,
        ),
        (
            "I've visited 6 lighthouses since I joined the heritage club, and I'm rather pleased.",
            "I'm looking for a sturdier tripod. By the way, 9 of us from the heritage club had"
            " lunch at the lighthouses, and I'm feeling rather full!",
            False,
        ),
    ],
)
def test_another_number_in_a_long_message_among_much(
    tmp_path: Path, first: str, later: str, past: bool
) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for said in (*OTHERS[:2], first, *OTHERS[2:], later):
            memory.add(said, user_id="u")
        assert any("formerly" in text for text in texts(memory)) is past
