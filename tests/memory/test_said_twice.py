"""What is said twice is forgotten twice: every turn that said it goes where its item goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_chat import servers

from memograd.memory import Memory
from memograd.memory.records.events import EventKind

PARTS = ["rules", "trained"]
LANGUAGES = [
    ("I live in Boston.", "Forget where I live.", "Boston"),
    ("我住在波士顿。", "请忘记我的住址。", "波士顿"),
]
AGAIN = [
    ("I live in Boston.", "I live in Boston!", "Boston"),
    ("I live in Boston.", "I told you already: I live in Boston.", "Boston"),
    ("I live in Boston.", "Hi! I live in Boston. What should I see there?", "Boston"),
    ("My locker number is K1234Q.", "My locker number is K1234Q.", "K1234Q"),
    ("我住在波士顿。", "你好！我住在波士顿。这里有什么好玩的？", "波士顿"),
    ("我对花生过敏。", "我对花生过敏。", "花生"),
]
WAYS = ["delete", "delete_all", "purge"]
server = pytest.fixture(servers)


def opened(folder: Path, trigrams: Callable[[], Any], part: str = "rules", **more: Any) -> Memory:
    return Memory.open(
        folder / "m", embedder=trigrams(), reader=part, manager=part, env_file=None, **more
    )


@pytest.fixture
def memory(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Memory]:
    with opened(tmp_path, trigrams) as memory:
        yield memory


def shown(memory: Memory, query: str, **more: Any) -> str:
    """All that a prompt or a search could show."""
    found = memory.search(query, user_id="alice", turns=99, **more)
    texts = [hit["memory"] for hit in found["results"]] + [turn["text"] for turn in found["turns"]]
    if not more:
        texts.append(memory.context(query, user_id="alice", turns=99).text)
    return "\n".join(texts)


def only_id(memory: Memory) -> str:
    [item] = memory.get_all(user_id="alice", show_expired=True)["results"]
    return str(item["id"])


def forget(memory: Memory, item_id: str, way: str) -> None:
    if way == "delete":
        memory.delete(item_id)
    elif way == "delete_all":
        memory.delete_all(filters={"user_id": "alice", "id": {"in": [item_id]}})
    else:
        memory.purge(item_id)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("said", "asked", "private"), LANGUAGES)
def test_a_request_takes_all_that_said_it(
    tmp_path: Path, trigrams: Callable[[], Any], part: str, said: str, asked: str, private: str
) -> None:
    with opened(tmp_path, trigrams, part) as memory:
        for _ in range(3):
            memory.add(said, user_id="alice")
        assert len(memory.get_all(user_id="alice")["results"]) == 1
        moment = datetime.now(UTC)
        memory.add(asked, user_id="alice")
        assert private not in shown(memory, said)
        assert private in shown(memory, said, as_of=moment)
    with opened(tmp_path, trigrams, part) as again:
        assert private not in shown(again, said)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("said", "again", "private"), AGAIN)
def test_forgetting_an_item_takes_what_said_it_again(
    tmp_path: Path,
    trigrams: Callable[[], Any],
    part: str,
    way: str,
    said: str,
    again: str,
    private: str,
) -> None:
    with opened(tmp_path, trigrams, part) as memory:
        memory.add("My cat is called Tom.", user_id="alice", run_id="other")
        memory.add(said, user_id="alice")
        memory.add(again, user_id="alice")
        items = memory.get_all(user_id="alice")["results"]
        for chosen in [item["id"] for item in items if private in item["memory"]]:
            forget(memory, chosen, way)
        assert private not in shown(memory, said)
        assert "Tom" in shown(memory, "cat")
    if way == "purge":
        files = [path for path in (tmp_path / "m").rglob("*") if path.is_file()]
        assert files and not any(private.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("said", "corrected", "old", "new"),
    [
        ("My birthday is May 2nd.", "Sorry, I mean May 9th.", "May 2nd", "9th"),
        ("我的生日是五月二号。", "说错了，是五月九号。", "五月二号", "九"),
    ],
)
def test_a_correction_takes_all_that_said_the_old(
    tmp_path: Path, trigrams: Callable[[], Any], said: str, corrected: str, old: str, new: str
) -> None:
    with opened(tmp_path, trigrams, "trained") as memory:
        for _ in range(2):
            memory.add(said, user_id="alice")
        memory.add(corrected, user_id="alice")
        assert old not in shown(memory, said)
        assert new in shown(memory, said)


@pytest.mark.parametrize("said", ["I live in Boston.", "我住在波士顿。"])
def test_an_edit_takes_all_that_said_the_old_text(memory: Memory, said: str) -> None:
    for _ in range(2):
        memory.add(said, user_id="alice")
    memory.update(only_id(memory), metadata={"checked": True})
    assert shown(memory, said).count(said) >= 2  # nothing was hidden
    memory.update(only_id(memory), "Somewhere else.")
    assert said not in shown(memory, said)


def test_said_fifty_times(memory: Memory) -> None:
    for _ in range(50):
        memory.add("I live in Boston.", user_id="alice")
    before = memory.get(only_id(memory))
    assert before is not None and "sources" not in before
    memory.update(only_id(memory), metadata={"checked": True})
    [*_, latest] = memory.store.journal.history(only_id(memory))
    assert len((latest.after or {})["sources"]) == 1  # what is listed does not grow
    assert len(memory.search("Boston", user_id="alice", turns=99)["turns"]) == 50
    memory.delete(only_id(memory))
    assert shown(memory, "Boston") == ""


def test_a_turn_stays_while_something_else_that_it_said_holds(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    with opened(tmp_path, trigrams, "trained") as memory:
        memory.add("I'm allergic to peanuts.", user_id="alice")
        memory.add("I'm allergic to peanuts. My birthday is May 2nd.", user_id="alice")
        memory.add("Sorry, I mean May 9th.", user_id="alice")
        assert "User's birthday is May 9th." in shown(memory, "birthday")
        assert "I'm allergic to peanuts. My birthday" in shown(memory, "peanuts")
        memory.add("Forget my allergy to peanuts.", user_id="alice")
        assert "peanuts. My" not in shown(memory, "peanuts")


def test_an_item_that_changed_holds_no_turn_that_said_the_old(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    with opened(tmp_path, trigrams, "trained") as memory:
        memory.add("My birthday is May 2nd.", user_id="alice")
        memory.add("I'm allergic to peanuts. My birthday is May 2nd.", user_id="alice")
        memory.add("Sorry, I mean May 9th.", user_id="alice")
        assert "May 2nd" in shown(memory, "birthday")  # beside the allergy, which still holds
        [allergy] = [
            item["id"]
            for item in memory.get_all(user_id="alice")["results"]
            if "peanuts" in item["memory"]
        ]
        memory.delete(allergy)
        assert "May 2nd" not in shown(memory, "birthday")


def test_what_ends_hides_all_that_said_it(memory: Memory) -> None:
    for _ in range(2):
        memory.add("I live in Boston.", user_id="alice")
    memory.update(only_id(memory), expiration_date="2020-01-05")
    assert shown(memory, "Boston") == ""
    memory.update(only_id(memory), expiration_date=None)
    assert len(memory.search("Boston", user_id="alice", turns=9)["turns"]) == 2
    memory.update(only_id(memory), expiration_date="2020-01-05")
    assert memory.sweep(user_id="alice") == {"swept": 1}
    assert memory.search("Boston", user_id="alice", turns=9, show_expired=True)["turns"] == []


def test_what_makes_an_item_stay_is_forgotten_with_it(memory: Memory) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    said = "I live in Boston, Massachusetts."
    memory.add(said, user_id="alice", expiration_date=tomorrow.isoformat())
    memory.add("I live in Boston.", user_id="alice")
    assert memory.get_all(user_id="alice")["results"][0]["expiration_date"] is None
    memory.delete(only_id(memory))
    assert shown(memory, "Boston") == ""


def test_merged_items_are_forgotten_with_what_said_them(memory: Memory) -> None:
    for _ in range(2):
        memory.add("I live in Boston.", user_id="alice")
    first = only_id(memory)
    memory.add("User lives in Boston", user_id="alice", infer=False)  # an item of its own
    memory.update(first, metadata={"later": True})  # so that it is the one that leaves
    before = memory.get_all(user_id="alice")
    batch = memory.compact(1_000, user_id="alice")["batch_id"]
    memory.undo_compact(batch)
    after = memory.get_all(user_id="alice")["results"]
    assert sorted(after, key=lambda item: item["id"]) == sorted(
        before["results"], key=lambda item: item["id"]
    )
    memory.compact(1_000, user_id="alice")
    left = only_id(memory)
    assert left != first
    memory.delete(left)
    assert shown(memory, "Boston") == ""


@pytest.mark.parametrize("way", ["delete", "delete_all", "edit"])
def test_what_is_said_again_meanwhile_does_not_slip_by(
    memory: Memory,
    tmp_path: Path,
    trigrams: Callable[[], Any],
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory.add("I live in Boston.", user_id="alice")
    chosen = only_id(memory)
    with opened(tmp_path, trigrams) as other:
        owner, name = memory.store.journal, "declined"
        if way == "delete_all":
            owner, name = memory.store.states, "current"
        real, said = getattr(owner, name), []

        def then_said_again(*given: Any, **more: Any) -> Any:
            found = real(*given, **more)
            if not said:
                said.append(other.add("I live in Boston.", user_id="alice"))
            return found

        monkeypatch.setattr(owner, name, then_said_again)
        if way == "edit":
            memory.update(chosen, "Somewhere else.")
        else:
            forget(memory, chosen, way)
        assert said
        assert "Boston" not in shown(other, "Boston")


@pytest.mark.parametrize("way", WAYS)
def test_what_was_imported_is_forgotten_too(
    memory: Memory, tmp_path: Path, trigrams: Callable[[], Any], way: str
) -> None:
    for _ in range(3):
        memory.add("I live in Boston.", user_id="alice")
    memory.export(tmp_path / "e.jsonl")
    with opened(tmp_path / "other", trigrams) as other:
        other.import_(tmp_path / "e.jsonl")
        forget(other, only_id(other), way)
        assert shown(other, "Boston") == ""


@pytest.mark.parametrize("way", WAYS)
def test_a_chat_model_says_that_it_is_known(
    tmp_path: Path, trigrams: Callable[[], Any], server: Callable[..., Any], way: str
) -> None:
    fact = {
        "text": "Alice lives in Boston.",
        "sources": [1],
        "kind": "semantic",
        "subject": "Alice",
        "valid_from": None,
        "retracts": False,
    }
    read = json.dumps({"facts": [fact]})
    added = json.dumps({"op": "ADD", "id": None, "text": fact["text"], "reason": "new"})
    known = json.dumps({"op": "NONE", "id": 1, "text": None, "reason": "known"})
    nothing = json.dumps({"facts": []})
    chat = server(read, added, read, known, nothing)
    more = {"openai_base_url": chat.url, "openai_model": "tiny"}
    with opened(tmp_path, trigrams, "chat", **more) as memory:
        memory.add("My home is in Boston.", user_id="alice")
        memory.add("Boston it is, my home.", user_id="alice")
        memory.add("I say that Alice lives in Boston.", user_id="alice")  # it finds nothing in it
        forget(memory, only_id(memory), way)
        assert shown(memory, "Boston") == ""


def test_what_speaks_of_somebody_else_stays(tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    with opened(tmp_path, trigrams, "trained") as memory:
        memory.add("I live in Boston.", user_id="alice")
        memory.add("My sister lives in Boston.", user_id="alice")
        memory.add("My sister lives in Boston.", user_id="alice")
        items = memory.get_all(user_id="alice")["results"]
        [mine] = [one["id"] for one in items if "sister" not in one["memory"]]
        memory.delete(mine)
        left = [turn["text"] for turn in memory.search("Boston", user_id="alice", turns=9)["turns"]]
        assert left == ["My sister lives in Boston."] * 2


def test_on_postgresql_too(tmp_path: Path, trigrams: Callable[[], Any], postgres_url: str) -> None:
    with opened(tmp_path, trigrams, journal_url=postgres_url) as memory:
        for way in WAYS:
            for _ in range(3):
                memory.add("I live in Boston.", user_id="alice")
            forget(memory, only_id(memory), way)
            assert shown(memory, "Boston") == ""


STEPS = st.lists(
    st.sampled_from(["said", "said", "edited", "labelled", "compacted", "reopened", "ended"]),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25)
@given(STEPS, st.sampled_from(WAYS))
def test_whatever_happens_in_between(
    tmp_path_factory: pytest.TempPathFactory,
    trigrams: Callable[[], Any],
    steps: list[str],
    way: str,
) -> None:
    folder = tmp_path_factory.mktemp("m")
    memory = opened(folder, trigrams)
    memory.add("I live in Boston.", user_id="alice")
    for step in steps:
        chosen = only_id(memory)
        if step == "said":
            memory.add("I live in Boston.", user_id="alice")
        elif step == "edited":
            memory.update(chosen, "Alice is at home in Boston.")
            memory.update(chosen, "User lives in Boston.")
        elif step == "labelled":
            memory.update(chosen, metadata={"n": len(steps)})
        elif step == "compacted":
            memory.compact(1_000, user_id="alice")
        elif step == "ended":
            memory.update(chosen, expiration_date="2020-01-05")
            assert shown(memory, "Boston") == ""
            memory.update(chosen, expiration_date=None)
        else:
            memory.close()
            memory = opened(folder, trigrams)
    forget(memory, only_id(memory), way)
    assert shown(memory, "Boston") == ""
    told = [one for one in memory.store.journal.tail("user:alice") if one.kind is EventKind.TURN]
    assert (way == "purge") == all(one.erased for one in told)
    memory.close()
