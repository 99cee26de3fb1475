from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput, MemogradError
from memograd.memory import Memory


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
