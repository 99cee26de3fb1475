"""What was forgotten comes back in no prompt: neither as an item nor as the raw turn behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memograd.memory import Memory
from memograd.memory.language import simplified
from memograd.memory.records.events import EventKind
from memograd.memory.search import reach


@pytest.fixture
def memory(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as opened:
        yield opened


def told(memory: Memory, query: str, **more: Any) -> str:
    """All that a prompt or a search could show."""
    found = memory.search(query, user_id="alice", turns=50, **more)
    texts = [hit["memory"] for hit in found["results"]] + [turn["text"] for turn in found["turns"]]
    if not more:
        texts.append(memory.context(query, user_id="alice", turns=50).text)
    return "\n".join(texts)


REQUESTS = [
    (["My locker number is 1234."], "Forget my locker number.", "1234"),
    (["My locker number is 1234."], "Forget that my locker number is 1234.", "1234"),
    (["I live in Boston. I love jazz."], "Forget where I live.", "Boston"),
    ([], "I live in Boston. Please forget that.", "Boston"),
    ([], "Don't save this: my PIN is 1234.", "1234"),
    ([], "Off the record: my PIN is 1234.", "1234"),
    ([], "My PIN is 1234, but don't save it.", "1234"),
    ([], "Don't write this down. My PIN is 1234.", "1234"),
    (["我的车牌号是1234。"], "忘了我的车牌号吧", "1234"),
    ([], "别记这个:我的密码是1234", "1234"),
    ([], "以下内容不要记录：我的身份证号是1234。", "1234"),
    ([], "下面的话不要记。我的密码是1234。", "1234"),
    ([], "我的密码是1234。这个不用记", "1234"),
    (["我的電話是1234。"], "請忘記我的電話", "1234"),
    (["我的電話是1234。"], "请忘记我的电话", "1234"),
    ([], "這個別記:我的密碼是1234", "1234"),
    ([], "我的密碼是1234,不要記下來", "1234"),
]


@pytest.mark.parametrize(("before", "request_", "secret"), REQUESTS)
def test_what_somebody_asked_to_forget_is_shown_no_more(
    memory: Memory, tmp_path: Path, before: list[str], request_: str, secret: str
) -> None:
    memory.add("I like green tea. 我喜欢绿茶。", user_id="alice")
    for said in before:
        memory.add(said, user_id="alice")
        assert secret in told(memory, said)
    moment = datetime.now(UTC)
    memory.add(request_, user_id="alice")
    for query in (request_, "PIN", "我的密码", "Boston"):
        assert secret not in told(memory, query)
    assert "green tea" in told(memory, "tea")
    if before:
        assert secret in told(memory, "PIN", as_of=moment)
    with Memory.open(tmp_path / "m", embedder=memory.store.embedder, env_file=None) as again:
        assert secret not in told(again, request_)


@pytest.mark.parametrize("said", ["My PIN is 1234.", "我的密码是1234。"])
def test_a_secret_is_never_shown(memory: Memory, said: str) -> None:
    memory.add(said, user_id="alice")
    assert "1234" not in told(memory, said)


def test_deleting_takes_the_raw_turns_along_and_leaves_others(memory: Memory) -> None:
    [boston] = memory.add("I live in Boston.", user_id="alice")["results"]
    memory.add("My cat is called Tom.", user_id="alice")
    memory.add("I live in Rome.", user_id="bob")
    memory.delete(boston["id"])
    assert "Boston" not in told(memory, "Where does she live?")
    assert "Tom" in told(memory, "cat")
    assert memory.delete_all(user_id="alice")["deleted"] == 1
    assert told(memory, "cat") == ""
    assert memory.context("live", user_id="bob").turns


def test_forgetting_everything_takes_along_what_told_of_no_item(memory: Memory) -> None:
    said = ("I live in Boston.", "I live in Boston.", "Should I tell Tom about my divorce?")
    for text in said:
        memory.add(text, user_id="alice", run_id="1")
        memory.add(text, user_id="alice", run_id="2")
        memory.add(text, user_id="bob")
    moment = datetime.now(UTC)
    memory.delete_all(user_id="alice", run_id="1")
    for query in said:
        left = memory.search(query, user_id="alice", run_id="1", turns=10)
        assert left["results"] == left["turns"] == []
        assert len(memory.search(query, user_id="alice", run_id="2", turns=10)["turns"]) == 3
    memory.delete_all(user_id="alice")
    for query in said:
        assert told(memory, query) == ""
        assert "divorce" in told(memory, query, as_of=moment)
        assert len(memory.search(query, user_id="bob", turns=10)["turns"]) == 3


def test_a_condition_forgets_only_what_told_of_the_items_it_chose(memory: Memory) -> None:
    memory.add("I live in Boston.", user_id="alice", metadata={"from": "form"})
    memory.add("My cat is called Tom.", user_id="alice")
    memory.add("Should I tell Tom about my divorce?", user_id="alice", metadata={"from": "form"})
    memory.delete_all(user_id="alice", filters={"from": "form"})
    left = memory.search("Boston", user_id="alice", turns=10)["turns"]
    assert sorted(turn["text"] for turn in left) == [
        "My cat is called Tom.",
        "Should I tell Tom about my divorce?",
    ]


def test_what_is_true_no_longer_may_still_be_read_where_it_was_said(memory: Memory) -> None:
    memory.add("I live in Boston.", user_id="alice")
    [gone] = memory.add("I no longer live in Boston.", user_id="alice")["results"]
    assert gone["event"] == "DELETE"
    assert "I live in Boston." in told(memory, "Boston")


def test_compacting_hides_no_turn(memory: Memory) -> None:
    memory.add("I live in Boston.", user_id="alice")
    memory.compact(0, user_id="alice")
    assert "Boston" in told(memory, "Boston")


def test_the_index_forgets_too(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("milvus_lite")
    monkeypatch.setattr(reach, "STATE_ITEMS_WITHOUT_SERVER", 0)
    memory.add("I love jazz. I live in Boston.", user_id="alice")
    memory.add("My cat is called Tom.", user_id="alice")
    for forget in (False, True):
        if forget:
            memory.add("Forget where I live.", user_id="alice")
        memory.store.states.forget()
        found = memory.search("Boston jazz cat", user_id="alice", turns=9)["turns"]
        assert any("Tom" in turn["text"] for turn in found)
        assert any("Boston" in turn["text"] for turn in found) != forget


def test_a_copy_forgets_too_and_a_purge_takes_it_all(
    memory: Memory, tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    [boston] = memory.add("I live in Boston.", user_id="alice")["results"]
    memory.delete(boston["id"])
    memory.export(tmp_path / "copy.jsonl")
    with Memory.open(tmp_path / "n", embedder=trigrams(), env_file=None) as copy:
        copy.import_(tmp_path / "copy.jsonl")
        assert told(copy, "Boston") == ""
        kinds = [event.kind for event in copy.store.journal.tail("user:alice")]
        assert kinds.count(EventKind.FORGET) == 1
        assert copy.purge(boston["id"])["turns"] == 1
        copy.export(tmp_path / "purged.jsonl")
    assert "Boston" not in (tmp_path / "purged.jsonl").read_text(encoding="utf-8")


def test_requests_to_remember_are_none_to_forget(memory: Memory) -> None:
    for said in ("Don't forget this: my wedding is on May 5.", "别忘了这个：我的生日是5月3日"):
        assert memory.add(said, user_id="alice")["results"]
    assert "May 5" in told(memory, "wedding")
    assert "5月3日" in told(memory, "生日")


def test_traditional_and_simplified_characters_are_one_property(memory: Memory) -> None:
    memory.add("我的電話是0912345678", user_id="alice")
    [changed] = memory.add("我的电话改成0987654321了", user_id="alice")["results"]
    assert changed["event"] == "UPDATE"
    assert memory.add("謝謝", user_id="alice") == {"results": []}
    assert simplified("請別記錄電話 ABC 7") == "请别记录电话 ABC 7"
