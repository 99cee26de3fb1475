"""How somebody wants to be answered is kept, and another wish takes its place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memograd import Memory

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("memory")
    with Memory.open(folder, reader="trained", manager="trained", env_file=None) as opened:
        yield opened


def told(memory: Memory, *messages: str) -> str:
    """All items of somebody who said these messages."""
    user = " ".join(messages)
    for message in messages:
        memory.add(message, user_id=user, timestamp=WHEN)
    return "\n".join(one["memory"] for one in memory.get_all(user_id=user)["results"])


@pytest.mark.parametrize(
    ("wish", "kept"),
    [
        ("Please call me Priyanka.", "Priyanka"),
        ("Use tables when you answer me please", "tables"),
        ("and for the recipes, nothing with nuts, they won't eat it", "nothing with nuts"),
        ("回答尽量短，一两句就够", "尽量短"),
        ("往后给我讲详细点，一步一步来", "详细"),
    ],
)
def test_a_wish_for_answers_is_kept(memory: Memory, wish: str, kept: str) -> None:
    assert kept in told(memory, wish)


@pytest.mark.parametrize(
    "asked", ["Please call me back tomorrow", "call me when you land", "回答一下这个问题"]
)
def test_what_is_asked_once_is_not(memory: Memory, asked: str) -> None:
    assert told(memory, asked) == ""


@pytest.mark.parametrize(
    ("wish", "other", "new"),
    [
        (
            "Please call me Priyanka.",
            "Could you stop with the Priyanka? Pri is fine.",
            "Pri is fine",
        ),
        ("Use tables when you answer me please", "stop with the tables, plain text", "plain text"),
        ("回答尽量短，一两句就够", "别老这么短，详细点", "详细点"),
    ],
)
def test_another_wish_takes_its_place(memory: Memory, wish: str, other: str, new: str) -> None:
    items = told(memory, wish, other)
    assert new in items
    assert "formerly" in items or "此前" in items


def test_what_a_wish_told_by_the_way_can_be_forgotten(memory: Memory) -> None:
    wish = "When you write to my doctor from now on, mention my epilepsy."
    assert "epilepsy" in told(memory, wish)
    assert "epilepsy" not in told(memory, wish, "please drop the epilepsy thing")


def test_a_wish_that_somebody_asks_to_forget_is_gone(memory: Memory) -> None:
    assert told(memory, "Use tables when you answer me please", "forget the tables thing") == ""
