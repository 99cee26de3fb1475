from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory import Memory

SECRET = "zanzibar violet 4711"
SECRET_ZH = "紫罗兰密码七四一"


@pytest.fixture
def memory(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as opened:
        yield opened


def files_holding(folder: Path, text: str) -> list[Path]:
    forms = [text.encode(encoding) for encoding in ("utf-8", "utf-16-le")]
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


@pytest.mark.parametrize("secret", [SECRET, SECRET_ZH])
def test_a_purged_item_is_in_no_file(memory: Memory, tmp_path: Path, secret: str) -> None:
    [added] = memory.add(f"The code is {secret}.", user_id="alice", infer=False)["results"]
    memory.update(added["id"], f"The code was {secret}.")
    memory.add("Something else.", user_id="alice", infer=False)
    assert files_holding(tmp_path, secret)
    memory.delete(added["id"])
    assert memory.purge(added["id"]) == {"items": 1, "turns": 1, "owners": ["user:alice"]}
    assert files_holding(tmp_path, secret) == []
    assert [item["memory"] for item in memory.get_all(user_id="alice")["results"]] == [
        "Something else."
    ]


def test_what_was_read_and_declined_goes_too(memory: Memory, tmp_path: Path) -> None:
    said = f"My dog is called {SECRET}."
    memory.add(said, user_id="alice")
    memory.add(said, user_id="alice")  # a duplicate: declined, but journaled
    [item] = memory.get_all(user_id="alice")["results"]
    assert memory.purge(item["id"])["turns"] == 2
    assert files_holding(tmp_path, SECRET) == []


def test_the_turn_that_took_it_back_goes_too(memory: Memory, tmp_path: Path) -> None:
    [told] = memory.add(f"I live in {SECRET}.", user_id="alice")["results"]
    [gone] = memory.add(f"I no longer live in {SECRET}.", user_id="alice")["results"]
    assert (gone["event"], gone["id"]) == ("DELETE", told["id"])
    memory.purge(told["id"])
    assert files_holding(tmp_path, SECRET) == []


def test_turns_heard_under_other_ids_go_with_their_items(memory: Memory, tmp_path: Path) -> None:
    memory.add("I live in Boston.", user_id="alice", agent_id="planner")
    memory.add(f"I live in {SECRET} now.", user_id="alice")
    items = memory.get_all(user_id="alice")["results"]
    memory.purge(agent_id="planner")
    left = memory.get_all(user_id="alice")["results"]
    assert len(left) == len(items) - 1
    assert bool(files_holding(tmp_path, SECRET)) == any(SECRET in item["memory"] for item in left)


def test_a_purge_of_nothing_writes_nothing(memory: Memory) -> None:
    memory.add("Bob's own.", user_id="bob", infer=False)
    before = memory.store.journal.last_seq()
    with pytest.raises(BadInput):
        memory.purge(user_id="alice")
    with pytest.raises(BadInput):
        memory.purge("none")
    assert memory.store.journal.last_seq() == before


def test_the_tombstone_says_when_and_who_but_not_what(memory: Memory) -> None:
    [added] = memory.add(SECRET, user_id="alice", infer=False)["results"]
    memory.purge(added["id"])
    first, last = memory.history(added["id"])
    assert (first["event"], first["erased"], first["new_memory"]) == ("ADD", True, None)
    assert (last["event"], last["actor"]) == ("PURGE", "user")
    assert last["updated_at"]
    assert memory.search(SECRET, user_id="alice", as_of="2999-01-01")["results"] == []


def test_purging_a_user_leaves_the_others(memory: Memory, tmp_path: Path) -> None:
    memory.add(SECRET, user_id="alice", run_id="r1", infer=False)
    memory.add("Bob's own.", user_id="bob", infer=False)
    assert memory.purge(user_id="alice")["items"] == 1
    assert files_holding(tmp_path, SECRET) == []
    assert len(memory.get_all(user_id="bob")["results"]) == 1
    memory.add("A new start.", user_id="alice", infer=False)
    assert len(memory.get_all(user_id="alice")["results"]) == 1


def test_purging_a_run_leaves_the_user_s_other_runs(memory: Memory, tmp_path: Path) -> None:
    memory.add(SECRET, user_id="alice", run_id="r1", infer=False)
    memory.add("Of another run.", user_id="alice", run_id="r2", infer=False)
    memory.purge(user_id="alice", run_id="r1")
    assert files_holding(tmp_path, SECRET) == []
    assert len(memory.get_all(user_id="alice")["results"]) == 1


def test_reset_purges_everybody(memory: Memory, tmp_path: Path) -> None:
    memory.add(SECRET, user_id="alice", infer=False)
    memory.add(SECRET, agent_id="planner", infer=False)
    assert memory.reset()["items"] == 2
    assert files_holding(tmp_path, SECRET) == []


def test_a_second_open_memory_forgets_too(
    memory: Memory, tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as second:
        [added] = memory.add(SECRET, user_id="alice", infer=False)["results"]
        assert len(second.get_all(user_id="alice")["results"]) == 1
        memory.purge(added["id"])
        assert second.get_all(user_id="alice")["results"] == []


def test_what_a_compaction_merged_into_an_item_is_purged_with_it(
    memory: Memory, tmp_path: Path
) -> None:
    def add(text: str) -> str:
        return str(memory.add(text, user_id="alice", infer=False)["results"][0]["id"])

    first, again = add(f"I live in {SECRET}."), add(f"I live in {SECRET}")
    batches = [memory.compact(1_000, user_id="alice")["batch_id"]]
    third = add(f"I  live in {SECRET}!")  # the same words: merged into the first as well
    batches.append(memory.compact(1_000, user_id="alice")["batch_id"])
    kept = add("Something else.")
    assert [i["id"] for i in memory.get_all(user_id="alice")["results"]] == [first, kept]
    assert memory.purge(first) == {"items": 3, "turns": 3, "owners": ["user:alice"]}
    assert files_holding(tmp_path, SECRET) == []
    for batch in batches:
        with pytest.raises(BadInput, match=r"no compaction|left to undo"):
            memory.undo_compact(batch)
    assert memory.get(again) is None and memory.get(third) is None


def test_what_was_brought_back_from_a_compaction_stands_for_itself(memory: Memory) -> None:
    first, again = (
        memory.add(text, user_id="alice", infer=False)["results"][0]["id"]
        for text in ("I live in Boston.", "I live in Boston")
    )
    memory.undo_compact(memory.compact(1_000, user_id="alice")["batch_id"])
    assert memory.purge(first)["items"] == 1
    assert [i["id"] for i in memory.get_all(user_id="alice")["results"]] == [again]


def test_a_folder_that_is_made_is_for_its_user_alone(tmp_path: Path, trigrams: Any) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    for place in (tmp_path / "new", there / "deeper", there):
        with Memory.open(place, embedder=trigrams(), env_file=None) as memory:
            memory.add("I like tea.", user_id="alice", infer=False)
    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "new", there / "deeper")}
    assert set(modes.values()) == {0o700}
    assert there.stat().st_mode & 0o777 == 0o755  # whoever made it says who reads it
