"""What was purged in one copy of a memory is erased in the others that import its export.

Held here: no file of the importing memory holds it, nothing else is erased, a copy that knows more
of an owner than the export loses none of it without being told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory import Memory

SECRET = "zanzibar violet 4711"
SECRET_ZH = "紫罗兰密码七四一"


@pytest.fixture
def copies(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Callable[[str], Memory]]:
    opened: list[Memory] = []

    def open_copy(name: str) -> Memory:
        opened.append(Memory.open(tmp_path / name, embedder=trigrams(), env_file=None))
        return opened[-1]

    yield open_copy
    for memory in opened:
        memory.close()


def holding(folder: Path, *texts: str) -> list[str]:
    forms = [text.encode(coding) for text in texts for coding in ("utf-8", "utf-16-le")]
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


def moved(source: Memory, target: Memory, file: Path) -> int:
    source.export(file)
    return target.import_(file)


def texts(memory: Memory, user: str) -> list[str]:
    return [one["memory"] for one in memory.get_all(user_id=user)["results"]]


def told(memory: Memory, text: str, user: str = "alice") -> str:
    return str(memory.add(text, user_id=user, infer=False)["results"][0]["id"])


@pytest.mark.parametrize("secret", [SECRET, SECRET_ZH])
@pytest.mark.parametrize("everything", [False, True])
def test_what_a_copy_knew_is_in_none_of_its_files(
    copies: Callable[[str], Memory], tmp_path: Path, secret: str, everything: bool
) -> None:
    first, second = copies("first"), copies("second")
    one = told(first, f"The code is {secret}.")
    first.update(one, f"The code was {secret}.")
    told(first, "I like tea.")
    told(first, f"Bob's {secret}.", "bob")
    moved(first, second, tmp_path / "before.jsonl")
    assert second.search("code", user_id="alice")["results"]
    second.purge(user_id="bob")
    moved(second, first, tmp_path / "bob.jsonl")  # what the copy erased is erased at its source too
    assert texts(first, "bob") == []
    first.purge(**({"user_id": "alice"} if everything else {"memory_id": one}))
    assert holding(tmp_path / "second", secret)
    for _ in range(2):
        moved(first, second, tmp_path / "after.jsonl")
        assert holding(tmp_path / "second", secret) == []
        assert second.get(one) is None
        assert texts(second, "alice") == ([] if everything else ["I like tea."])


def test_what_the_copy_learnt_of_it_since_goes_with_it(
    copies: Callable[[str], Memory], tmp_path: Path
) -> None:
    first, second = copies("first"), copies("second")
    first.add("I live in Boston.", user_id="alice")
    [item] = first.get_all(user_id="alice")["results"]
    moved(first, second, tmp_path / "before.jsonl")
    second.add(f"I moved to {SECRET}.", user_id="alice")
    assert SECRET in second.get(item["id"])["memory"]
    told(second, "I like tea.")
    first.purge(item["id"])
    moved(first, second, tmp_path / "after.jsonl")
    assert holding(tmp_path / "second", SECRET, "Boston") == []
    assert texts(second, "alice") == ["I like tea."]


def test_a_part_without_its_purge_erases_for_other_processes_too(
    copies: Callable[[str], Memory], tmp_path: Path
) -> None:
    first, second = copies("first"), copies("second")
    one = told(first, f"The code is {SECRET}.")
    moved(first, second, tmp_path / "before.jsonl")
    beside = copies("second")
    assert len(texts(beside, "alice")) == 1
    first.purge(one)
    first.export(tmp_path / "after.jsonl")
    head, *lines = (tmp_path / "after.jsonl").read_text(encoding="utf-8").splitlines()
    for part in [line for line in lines if "PURGE" not in line], lines:
        (tmp_path / "part.jsonl").write_text("\n".join([head, *part]) + "\n", encoding="utf-8")
        second.import_(tmp_path / "part.jsonl")
        assert holding(tmp_path / "second", SECRET) == []
        assert texts(second, "alice") == texts(beside, "alice") == []
    assert second.import_(tmp_path / "after.jsonl") == 0


def test_a_copy_that_knows_more_of_an_owner_loses_nothing_unasked(
    copies: Callable[[str], Memory], tmp_path: Path
) -> None:
    first, second = copies("first"), copies("second")
    told(first, f"The code is {SECRET}.")
    moved(first, second, tmp_path / "before.jsonl")
    told(second, "I like tea.")
    first.purge(user_id="alice")
    told(first, "I like milk.")
    told(first, "Bob's.", "bob")
    before = second.stats()
    with pytest.raises(BadInput, match="all of user:alice was purged, and 2 of its events here"):
        moved(first, second, tmp_path / "after.jsonl")
    assert second.stats() == before
    assert len(texts(second, "alice")) == 2
    second.purge(user_id="alice")
    moved(first, second, tmp_path / "after.jsonl")
    assert (texts(second, "alice"), texts(second, "bob")) == (["I like milk."], ["Bob's."])


def test_what_was_told_after_a_purge_stays_when_the_purge_is_imported_again(
    copies: Callable[[str], Memory], tmp_path: Path
) -> None:
    first, second = copies("first"), copies("second")
    told(first, f"The code is {SECRET}.")
    first.purge(user_id="alice")
    moved(first, second, tmp_path / "after.jsonl")
    told(second, "I like tea.")
    assert second.import_(tmp_path / "after.jsonl") == 0
    assert texts(second, "alice") == ["I like tea."]


def test_joined_exports_bring_nothing_that_one_of_them_purged(
    copies: Callable[[str], Memory], tmp_path: Path
) -> None:
    first, second, third = copies("first"), copies("second"), copies("third")
    one = told(first, "The code is 1.")
    moved(first, second, tmp_path / "before.jsonl")
    second.update(one, f"The code is {SECRET}.")
    second.export(tmp_path / "second.jsonl")
    first.purge(one)
    first.export(tmp_path / "first.jsonl")
    lines = (tmp_path / "second.jsonl").read_text(encoding="utf-8").splitlines()
    lines += (tmp_path / "first.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    (tmp_path / "joined.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    third.import_(tmp_path / "joined.jsonl")
    assert holding(tmp_path / "third", SECRET) == []
    assert all(SECRET not in json.dumps(line) for line in third.history(one))


def test_an_import_that_is_refused_erases_nothing(
    copies: Callable[[str], Memory], tmp_path: Path
) -> None:
    first, second = copies("first"), copies("second")
    one, other = told(first, f"The code is {SECRET}."), told(first, "I like tea.")
    moved(first, second, tmp_path / "before.jsonl")
    second.delete(other)
    first.purge(one)
    first.update(other, "I like milk.")
    with pytest.raises(BadInput, match="is not a living memory, so UPDATE does not fit"):
        moved(first, second, tmp_path / "after.jsonl")
    assert second.get(one)["memory"] == f"The code is {SECRET}."
