"""What an assistant said in the words of an item goes with the item, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.memory import Memory

ECHO = {
    "en": ("I live in Tromsoe.", "You live in Tromsoe, how nice! Shall I look for a hotel?"),
    "zh": ("我住在特罗姆瑟。", "好的，您住在特罗姆瑟，我记下了。"),
}
OTHER = "A hotel near the river is cheapest."


@pytest.fixture
def memory(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as opened:
        yield opened


def tell(memory: Memory, language: str) -> str:
    """The id of the item; the assistant's echo comes in a call of its own."""
    said, echo = ECHO[language]
    [item] = memory.add(said, user_id="alice")["results"]
    heard = [{"role": "assistant", "content": text} for text in (echo, OTHER)]
    memory.add(heard, user_id="alice")
    return str(item["id"])


def shown(memory: Memory) -> list[str]:
    found = memory.search("hotel", user_id="alice", turns=20, show_expired=True)
    return sorted(turn["text"] for turn in found["turns"])


@pytest.mark.parametrize("language", list(ECHO))
def test_deleting_an_item_hides_what_the_assistant_repeated(memory: Memory, language: str) -> None:
    item = tell(memory, language)
    assert len(shown(memory)) == 3
    memory.delete(item)
    assert shown(memory) == [OTHER]


def test_deleting_by_a_condition_hides_it_too(memory: Memory) -> None:
    item = tell(memory, "en")
    memory.delete_all(user_id="alice", filters={"id": item})
    assert shown(memory) == [OTHER]


def test_who_asks_to_forget_is_not_told_it_again(memory: Memory) -> None:
    tell(memory, "en")
    memory.add("Please forget that I live in Tromsoe.", user_id="alice")
    assert shown(memory) == [OTHER]


@pytest.mark.parametrize("deleted_before", [False, True])
@pytest.mark.parametrize("language", list(ECHO))
def test_a_purge_leaves_it_in_no_file(
    memory: Memory, tmp_path: Path, language: str, deleted_before: bool
) -> None:
    item = tell(memory, language)
    if deleted_before:
        memory.delete(item)
    memory.purge(item)
    word = {"en": "Tromsoe", "zh": "特罗姆瑟"}[language].encode()
    files = [file for file in (tmp_path / "m").rglob("*") if file.is_file()]
    assert files and not [file.name for file in files if word in file.read_bytes()]
    assert shown(memory) == [OTHER]


@pytest.mark.parametrize(
    ("said", "answer", "value"),
    [
        ("I live in Tromsoe.", "Tromsoe must be cold in winter!", "Tromsoe"),
        ("My phone number is 5550142.", "Thanks, I will call 5550142 then.", "5550142"),
        ("我住在特罗姆瑟。", "特罗姆瑟的冬天一定很冷吧。", "特罗姆瑟"),
    ],
)
def test_a_purge_takes_the_answer_that_speaks_of_it(
    memory: Memory, tmp_path: Path, said: str, answer: str, value: str
) -> None:
    [item] = memory.add(said, user_id="alice")["results"]
    heard = [{"role": "assistant", "content": text} for text in (answer, OTHER)]
    memory.add(heard, user_id="alice")
    memory.purge(item["id"])
    assert shown(memory) == [OTHER]
    memory.close()
    for file in (tmp_path / "m").rglob("*"):
        assert not file.is_file() or value.encode() not in file.read_bytes(), file


def test_a_purge_leaves_what_answers_something_else(memory: Memory) -> None:
    """Behind another message, or in another conversation, it is no answer to what is purged."""
    later, elsewhere = "Tromsoe has a fine hotel.", "Is Tromsoe dear?"
    [item] = memory.add("I live in Tromsoe.", user_id="alice", run_id="one")["results"]
    memory.add([{"role": "assistant", "content": elsewhere}], user_id="alice", run_id="two")
    memory.add("Which hotel is good for holidays?", user_id="alice", run_id="one")
    memory.add([{"role": "assistant", "content": later}], user_id="alice", run_id="one")
    memory.purge(item["id"])
    assert set(shown(memory)) >= {later, elsewhere}


def test_a_purge_knows_what_the_item_said_before(memory: Memory, tmp_path: Path) -> None:
    item = tell(memory, "en")
    memory.update(item, "User lives in Bergen.")
    memory.purge(item)
    assert b"Tromsoe" not in (tmp_path / "m" / "journal.db").read_bytes()


def test_a_change_leaves_what_the_assistant_said(memory: Memory) -> None:
    tell(memory, "en")
    memory.add("I live in Bergen now.", user_id="alice")
    assert ECHO["en"][1] in shown(memory)


SECRETS = {
    "in one call": ("Don't save this: my PIN is 4711.", "I will not save your PIN 4711."),
    "in groups": ("Off the record: my card is 4711 0815.", "Card 4711-0815 stays between us."),
    "Chinese": ("别记这个：我的密码是4711", "好的，密码４７１１我不会记。"),
}


@pytest.mark.parametrize("name", list(SECRETS))
@pytest.mark.parametrize("calls", [1, 2])
def test_the_figure_of_a_secret_is_hidden_in_the_answer(
    memory: Memory, name: str, calls: int
) -> None:
    secret, answer = SECRETS[name]
    said = [{"role": "user", "content": secret}, {"role": "assistant", "content": answer}]
    for part in [said] if calls == 1 else [said[:1], said[1:]]:
        memory.add(part, user_id="alice")
    memory.add([{"role": "assistant", "content": OTHER}], user_id="alice")
    assert shown(memory) == [OTHER]


def test_a_figure_that_may_be_remembered_stays_in_the_answer(memory: Memory) -> None:
    memory.add("The gate is 4711.", user_id="alice", infer=False)
    memory.add("I paid 1200 for the bike.", user_id="alice")
    for answer in ("Gate 4711, noted.", "1200 is a fair price."):
        memory.add([{"role": "assistant", "content": answer}], user_id="alice")
    assert {"Gate 4711, noted.", "1200 is a fair price."} <= set(shown(memory))
