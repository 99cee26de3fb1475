from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput, MemogradError
from memograd.memory import Memory, RawTurn, TurnMemory


@pytest.fixture
def opened(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Callable[[str], Memory]]:
    memories: list[Memory] = []

    def open_memory(name: str) -> Memory:
        memories.append(Memory.open(tmp_path / name, embedder=trigrams(), env_file=None))
        return memories[-1]

    yield open_memory
    for memory in memories:
        memory.close()


def told(memory: Memory) -> Memory:
    memory.add("I live in Boston.", user_id="alice")
    memory.add("I live in Denver now.", user_id="alice")
    memory.add("我喜欢绿茶。", user_id="小红", metadata={"quote": 'a "b" \\ \n'})
    [gone] = memory.add("Never mind.", user_id="bob", infer=False)["results"]
    memory.delete(gone["id"])
    return memory


def test_a_journey_keeps_answers_past_and_present(
    opened: Callable[[str], Memory], tmp_path: Path
) -> None:
    first, second = told(opened("first")), opened("second")
    count = first.export(tmp_path / "all.jsonl")
    assert second.import_(tmp_path / "all.jsonl") == count
    moments = [event.recorded_at for event in first.store.journal.export_events()]
    for user in ("alice", "小红", "bob"):
        for moment in (*moments, None):
            assert first.get_all(user_id=user, as_of=moment) == second.get_all(
                user_id=user, as_of=moment
            )
        assert first.search("live 茶", user_id=user) == second.search("live 茶", user_id=user)
    [item] = first.get_all(user_id="alice")["results"]
    assert first.history(item["id"]) == second.history(item["id"])


def test_importing_twice_changes_nothing(opened: Callable[[str], Memory], tmp_path: Path) -> None:
    memory = told(opened("first"))
    memory.export(tmp_path / "all.jsonl")
    seq = memory.store.journal.last_seq()
    assert memory.import_(tmp_path / "all.jsonl") == 0
    assert memory.store.journal.last_seq() == seq


def test_one_user_can_move_alone(opened: Callable[[str], Memory], tmp_path: Path) -> None:
    first, second = told(opened("first")), opened("second")
    first.export(tmp_path / "one.jsonl", user_id="小红")
    second.import_(tmp_path / "one.jsonl")
    assert second.store.journal.owners() == ["user:小红"]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["{}"], "not made by memograd"),
        (["not json"], "not made by memograd"),
        ([], "not made by memograd"),
        (['{"format": "memograd-journal", "version": 99}'], "version 99"),
        (['{"format": "memograd-journal", "version": 1}', '{"uid": "1"}'], "Line 2"),
        (['{"format": "memograd-journal", "version": 1}', "null"], "Line 2"),
    ],
)
def test_a_file_that_is_none_imports_nothing(
    opened: Callable[[str], Memory], tmp_path: Path, lines: list[str], named: str
) -> None:
    memory = opened("first")
    file = tmp_path / "bad.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(BadInput, match=named):
        memory.import_(file)
    assert memory.store.journal.last_seq() == 0


def test_a_bad_line_at_the_end_imports_nothing(
    opened: Callable[[str], Memory], tmp_path: Path
) -> None:
    told(opened("first")).export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    cut = tmp_path / "cut.jsonl"
    cut.write_text("\n".join([*lines[:-1], lines[-1][:40]]), encoding="utf-8")
    memory = opened("second")
    with pytest.raises(BadInput, match=f"Line {len(lines)}"):
        memory.import_(cut)
    assert memory.store.journal.last_seq() == 0
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe")
    with pytest.raises(BadInput, match=r"binary\.jsonl"):
        memory.import_(binary)


CHANGES: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("ADD", lambda event: event["after"].pop("kind")),
    ("ADD", lambda event: event["after"].update(id="another")),
    ("ADD", lambda event: event["after"].update(user_id="bob")),
    ("ADD", lambda event: event["after"].update(text=7)),
    ("ADD", lambda event: event["after"].update(created_at="2024-01-01T00:00:00")),
    ("ADD", lambda event: event["after"].update(metadata=[1])),
    ("ADD", lambda event: event.update(after=None)),
    ("ADD", lambda event: event.update(after="text")),
    ("ADD", lambda event: event.update(before=event["after"])),
    ("ADD", lambda event: event.update(erased=True)),
    ("ADD", lambda event: event.update(erased=0)),
    ("ADD", lambda event: event.update(uid=None)),
    ("ADD", lambda event: event.update(user_id="bob")),
    ("ADD", lambda event: event.update(recorded_at="2024-01-01T00:00:00")),
    ("UPDATE", lambda event: event["before"].update(id="another")),
    ("UPDATE", lambda event: event.update(before=None)),
    ("TURN", lambda event: event["after"]["turn"].update(id="another")),
    ("TURN", lambda event: event["after"]["turn"].update(text=None)),
    ("TURN", lambda event: event["after"]["turn"].update(time=5)),
    ("TURN", lambda event: event["after"].pop("verbatim")),
    ("DELETE", lambda event: event.update(before=None)),
]


@pytest.mark.parametrize("place", range(len(CHANGES)))
def test_an_event_that_was_changed_by_hand_imports_nothing(
    opened: Callable[[str], Memory], tmp_path: Path, place: int
) -> None:
    kind, change = CHANGES[place]
    told(opened("first")).export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    number = next(n for n, event in enumerate(events) if event.get("kind") == kind)
    change(events[number])
    bad = tmp_path / "bad.jsonl"
    bad.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    memory = opened("second")
    with pytest.raises(BadInput, match=rf"^Line {number + 1} of .*bad\.jsonl is not an event"):
        memory.import_(bad)
    assert memory.store.journal.last_seq() == 0


def test_two_conversations_with_the_same_turn_ids_move_together(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    with TurnMemory.open(tmp_path / "first", trigrams()) as turns:
        for scope in ("conv-26", "conv-30"):
            turns.add_turns(scope, [RawTurn("D1:1", "Ann", f"hello {scope}", None, 1)])
    with Memory.open(tmp_path / "first", embedder=trigrams(), env_file=None) as memory:
        assert memory.export(tmp_path / "all.jsonl") == 2
    with Memory.open(tmp_path / "second", embedder=trigrams(), env_file=None) as memory:
        assert memory.import_(tmp_path / "all.jsonl") == 2
    with TurnMemory.open(tmp_path / "second", trigrams()) as turns:
        for scope in ("conv-26", "conv-30"):
            [found] = turns.last_turns(scope, top_k=5, token_budget=99, count_tokens=len)
            assert found.turn.text == f"hello {scope}"


@pytest.mark.parametrize("name", ["what?x", "a#b", "100%25", "a b;c"])
def test_a_memory_in_any_folder_keeps_its_journal_there(
    tmp_path: Path, trigrams: Callable[[], Any], name: str
) -> None:
    with Memory.open(tmp_path / name, embedder=trigrams(), env_file=None) as memory:
        memory.add("hello", user_id="alice", infer=False)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "journal.db").exists()


def test_places_that_cannot_be_read_or_written(
    opened: Callable[[str], Memory], tmp_path: Path
) -> None:
    memory = told(opened("first"))
    with pytest.raises(BadInput, match="cannot be read"):
        memory.import_(tmp_path / "absent.jsonl")
    with pytest.raises(MemogradError, match="cannot be written"):
        memory.export(tmp_path / "absent" / "all.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first"]


def test_times_are_kept(opened: Callable[[str], Memory], tmp_path: Path) -> None:
    memory = told(opened("first"))
    memory.export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    times = [datetime.fromisoformat(json.loads(line)["recorded_at"]) for line in lines]
    assert times == sorted(times)
