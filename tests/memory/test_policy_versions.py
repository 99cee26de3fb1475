"""A folder of policies: adopting, rolling back, and memories that follow the current one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.manager.trained.files import PolicyVersions, save_head

NUMBERS = iter(range(10_000))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(st.sampled_from(["a", "b", "c", "back"]), max_size=10))
def test_rolling_back_undoes_adopting(
    tmp_path: Path, make_head: Callable[..., Any], steps: list[str]
) -> None:
    versions = PolicyVersions(tmp_path / str(next(NUMBERS)))
    heads = {name: make_head(add=float(number)) for number, name in enumerate("abc")}
    stack: list[str] = []
    for step in steps:
        if step != "back":
            version = versions.save(heads[step])
            versions.adopt(version)
            stack += [version] if stack[-1:] != [version] else []
        elif len(stack) < 2:
            with pytest.raises(BadInput, match=r"nothing is before it|There is no policy"):
                versions.rollback()
        else:
            stack.pop()
            assert versions.rollback() == stack[-1]
        if stack:
            assert (versions.current, versions.before) == (stack[-1], stack[-2::-1])
            assert versions.load().version == stack[-1]


def test_what_happened_is_written_down(tmp_path: Path, make_head: Callable[..., Any]) -> None:
    versions = PolicyVersions(tmp_path / "p")
    first, second = (versions.save(make_head(add=float(n))) for n in (1, 2))
    versions.adopt(first)
    versions.adopt(second)
    versions.rollback()
    lines = (tmp_path / "p" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    told = [(line["event"], line["version"], line["before"]) for line in map(json.loads, lines)]
    assert told == [
        ("adopted", first, None),
        ("adopted", second, first),
        ("rolled back", first, second),
    ]
    assert set(versions.versions()) == {first, second}


def test_versions_that_do_not_fit_are_refused(
    tmp_path: Path, make_head: Callable[..., Any]
) -> None:
    versions = PolicyVersions(tmp_path / "p")
    with pytest.raises(BadInput, match="memograd policy adopt"):
        versions.load()
    first = versions.save(make_head(add=1.0))
    versions.adopt(first)
    with pytest.raises(BadInput, match="adopt it into another folder"):
        versions.save(make_head("other", add=1.0, none=2.0))
    assert versions.versions() == [first]  # a refused head leaves nothing behind
    with pytest.raises(BadInput, match=r"There is no version '\.\./p'"):
        versions.adopt("../p")
    (tmp_path / "p" / "current").write_text("half", encoding="utf-8")
    with pytest.raises(BadInput, match="cannot be read"):
        versions.load()
    versions.adopt(first)  # as the message says
    assert (versions.current, versions.before) == (first, [])


def test_a_single_head_is_told_from_a_folder_of_versions(
    tmp_path: Path, make_head: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_head(make_head(add=1.0), tmp_path / "run" / "final")
    for folder in (tmp_path / "run", tmp_path / "run" / "final"):
        with pytest.raises(BadInput, match="holds one trained head"):
            PolicyVersions(folder).load()
    monkeypatch.setenv("HOME", str(tmp_path))
    versions = PolicyVersions("~/p")
    versions.adopt(versions.save(make_head(add=1.0)))
    assert PolicyVersions(tmp_path / "p").current == versions.current


def test_one_changes_versions_at_a_time(tmp_path: Path) -> None:
    with (
        PolicyVersions(tmp_path).held(),
        pytest.raises(BadInput, match="Somebody else"),
        PolicyVersions(tmp_path).held(),
    ):
        pass


def test_an_open_memory_follows(
    tmp_path: Path, trigrams: Callable[[], Any], make_head: Callable[..., Any]
) -> None:
    versions = PolicyVersions(tmp_path / "p")
    adding, ignoring = (versions.save(make_head(**one)) for one in ({"add": 5.0}, {"none": 5.0}))
    versions.adopt(adding)
    with Memory.open(
        tmp_path / "m", embedder=trigrams(), env_file=None, policy=tmp_path / "p"
    ) as memory:
        [added] = memory.add("I live in Boston.", user_id="alice")["results"]
        assert added["actor"] == f"policy:{adding}"
        versions.adopt(ignoring)
        assert memory.add("I have a cat.", user_id="alice") == {"results": []}
        versions.rollback()
        assert len(memory.add("I have a dog.", user_id="alice")["results"]) == 1


def test_one_version_decides_throughout_a_call(
    tmp_path: Path, trigrams: Callable[[], Any], make_head: Callable[..., Any]
) -> None:
    versions = PolicyVersions(tmp_path / "p")
    saved = [versions.save(make_head(add=float(number))) for number in (4, 5)]
    versions.adopt(saved[0])
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            versions.adopt(saved[1])
            versions.rollback()

    with Memory.open(
        tmp_path / "m", embedder=trigrams(), env_file=None, policy=tmp_path / "p"
    ) as memory:
        changer = threading.Thread(target=change)
        changer.start()
        try:
            for number in range(8):
                said = [
                    {"role": "user", "content": f"I own {number} cats. I like tea {number}."},
                    {"role": "user", "content": f"I live in town {number}."},
                ]
                events = memory.add(said, user_id=f"u{number}")["results"]
                assert len(events) > 1
                assert len({event["actor"] for event in events}) == 1
        finally:
            over.set()
            changer.join()


def test_a_head_alone_is_not_followed(
    tmp_path: Path, trigrams: Callable[[], Any], make_head: Callable[..., Any]
) -> None:
    save_head(make_head(add=5.0), tmp_path / "run" / "final")
    with Memory.open(
        tmp_path / "m", embedder=trigrams(), env_file=None, policy=str(tmp_path / "run")
    ) as memory:
        assert len(memory.add("I live in Boston.", user_id="alice")["results"]) == 1
