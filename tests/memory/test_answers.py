"""Answers and feedback: written down, walled off, carried along, purged with what they repeat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.records.events import EventKind
from memograd.memory.records.scope import Scope
from memograd.memory.write.answers import Answered, write_answer

SECRET = "zanzibar violet 4711"


@pytest.fixture
def memory(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as opened:
        yield opened


def remembered(memory: Memory, text: str, **ids: Any) -> str:
    [added] = memory.add(text, infer=False, **ids)["results"]
    return str(added["id"])


def written(memory: Memory, kind: EventKind, owner: str = "user:alice") -> list[Any]:
    return [event for event in memory.store.journal.tail(owner) if event.kind is kind]


def files_holding(folder: Path, text: str) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if text.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("said", "verdict", "correction"),
    [
        ("good", "good", None),
        (" bad\n", "bad", None),
        ("Good!", "good", None),
        ("ＢＡＤ。", "bad", None),
        ("Good food.", "correction", "Good food."),
        ("She lives in Denver.", "correction", "She lives in Denver."),
        ("她住在北京。", "correction", "她住在北京。"),
    ],
)
def test_feedback_is_kept_beside_the_answer(
    memory: Memory, said: str, verdict: str, correction: str | None
) -> None:
    item = remembered(memory, "I live in Boston.", user_id="alice")
    answer_id = memory.answered("Where?", "In Boston.", shown=[item, item], user_id="alice")
    result = memory.feedback(answer_id, said)
    assert result == {"message": "Feedback noted!", "answer_id": answer_id, "verdict": verdict}
    [answer], [feedback] = written(memory, EventKind.ANSWER), written(memory, EventKind.FEEDBACK)
    assert (answer.subject, answer.after["shown"]) == (answer_id, [item])
    assert feedback.after["correction"] == correction
    assert json.dumps(memory.history(answer_id))
    assert [one["id"] for one in memory.get_all(user_id="alice")["results"]] == [item]
    assert memory.search("Boston", user_id="alice")["results"][0]["id"] == item


def test_a_user_s_answers_are_nobody_else_s(memory: Memory) -> None:
    item = remembered(memory, "I live in Boston.", user_id="alice")
    answer_id = memory.answered("Where?", "In Boston.", shown=[item], user_id="alice", run_id="r")
    with pytest.raises(BadInput, match="no memory of user:bob"):
        memory.answered("Where?", "In Boston.", shown=[item], user_id="bob")
    for ids in ({"user_id": "bob"}, {"user_id": "alice", "run_id": "s"}, {"agent_id": "alice"}):
        with pytest.raises(BadInput, match="There is no answer of"):
            memory.feedback(answer_id, "good", **ids)
    memory.feedback(answer_id, "good", user_id="alice")
    assert written(memory, EventKind.FEEDBACK)[0].scope == Scope("alice", run_id="r")
    assert memory.store.journal.tail("user:bob") == []


@pytest.mark.parametrize("verdict", ["", "  ", "half \ud800", 7])
def test_feedback_that_says_nothing_is_refused(memory: Memory, verdict: Any) -> None:
    answer_id = memory.answered("Where?", "I do not know.", user_id="alice")
    with pytest.raises(BadInput):
        memory.feedback(answer_id, verdict)
    assert written(memory, EventKind.FEEDBACK) == []


def test_what_is_no_answer_takes_no_feedback(memory: Memory) -> None:
    item = remembered(memory, "I live in Boston.", user_id="alice")
    for absent in (item, "absent"):
        with pytest.raises(BadInput, match="There is no answer with the id"):
            memory.feedback(absent, "good")
    for question, answer in (("", "Yes."), ("Where?", " "), ("Where?", None)):
        with pytest.raises(BadInput):
            memory.answered(question, answer, user_id="alice")  # type: ignore[arg-type]


def test_purging_what_an_answer_was_made_from_takes_it_along(
    memory: Memory, tmp_path: Path
) -> None:
    item = remembered(memory, f"The code is {SECRET}.", user_id="alice")
    other = remembered(memory, "I have a cat.", user_id="alice")
    leaking = memory.answered("The code?", f"It is {SECRET}.", shown=[item], user_id="alice")
    harmless = memory.answered("A pet?", "A cat.", shown=[other], user_id="alice")
    memory.feedback(leaking, f"No, {SECRET} 2.")
    memory.feedback(harmless, "good")
    memory.purge(item)
    assert files_holding(tmp_path, SECRET) == []
    assert [event.erased for event in written(memory, EventKind.ANSWER)] == [True, False]
    assert [event.erased for event in written(memory, EventKind.FEEDBACK)] == [True, False]
    with pytest.raises(BadInput, match="There is no answer"):
        memory.feedback(leaking, "good")


def test_no_answer_is_written_from_what_was_purged(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = remembered(memory, f"The code is {SECRET}.", user_id="alice")
    other = remembered(memory, "I have a cat.", user_id="alice")
    said = ("The code?", f"It is {SECRET}.")
    answered = Answered(*said, shown=(item, other))
    write = memory.store.write
    done: list[Any] = []

    def purged_first(*given: Any, **named: Any) -> Any:
        if not done:  # between looking and writing
            done.append(memory.purge(item))
        return write(*given, **named)

    monkeypatch.setattr(memory.store, "write", purged_first)
    with pytest.raises(BadInput, match="was purged meanwhile"):
        write_answer(memory.store, answered, Scope("alice"))
    with pytest.raises(BadInput, match="was purged meanwhile"):
        memory.answered(*said, shown=[item], user_id="alice")
    assert done and files_holding(tmp_path, SECRET) == []
    assert memory.answered("A pet?", "A cat.", shown=[other], user_id="alice")


def test_purging_ids_takes_their_answers(memory: Memory, tmp_path: Path) -> None:
    first = memory.answered(f"Is it {SECRET}?", "Yes.", user_id="alice", run_id="r1")
    second = memory.answered("And now?", "No.", user_id="alice", run_id="r2")
    memory.feedback(first, f"{SECRET}!")
    memory.feedback(second, "good")
    memory.purge(user_id="alice", run_id="r1")
    assert files_holding(tmp_path, SECRET) == []
    memory.feedback(second, "bad")
    memory.purge(user_id="alice")
    assert all(event.erased for event in written(memory, EventKind.ANSWER))


def test_an_answer_is_written_with_what_it_was_said_with(memory: Memory, tmp_path: Path) -> None:
    said = f"My dog is called {SECRET}."
    answered = Answered(said, f"Hello {SECRET}!")
    [added] = memory.learn(said, scope=Scope("alice"), answered=answered)
    [answer] = written(memory, EventKind.ANSWER)
    assert answer.seq < added.seq
    assert answer.after["behind"] == list(added.after["sources"])  # type: ignore[index]
    memory.purge(added.subject)
    assert files_holding(tmp_path, SECRET) == []


def test_answers_travel(memory: Memory, tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    item = remembered(memory, "I live in Boston.", user_id="alice")
    answer_id = memory.answered("Where?", "In Boston.", shown=[item], user_id="alice")
    memory.feedback(answer_id, "In Denver.")
    file = tmp_path / "all.jsonl"
    count = memory.export(file)
    with Memory.open(tmp_path / "copy", embedder=trigrams(), env_file=None) as copy:
        assert copy.import_(file) == count
        assert copy.import_(file) == 0
        assert written(copy, EventKind.FEEDBACK)[0].after["correction"] == "In Denver."
        copy.feedback(answer_id, "good", user_id="alice")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("ANSWER", {"question": 7}),
        ("ANSWER", {"shown": "x"}),
        ("ANSWER", {"behind": [1]}),
        ("FEEDBACK", {"answer_id": None}),
        ("FEEDBACK", {"verdict": "fine"}),
        ("FEEDBACK", {"correction": 7}),
    ],
)
def test_answers_that_were_changed_by_hand_are_not_imported(
    memory: Memory, tmp_path: Path, kind: str, change: dict[str, Any]
) -> None:
    memory.feedback(memory.answered("Where?", "In Boston.", user_id="alice"), "good")
    file = tmp_path / "all.jsonl"
    memory.export(file)
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for event in events:
        if event.get("kind") == kind:
            event["after"] |= change
    file.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    with pytest.raises(BadInput, match="is not an event"):
        memory.import_(file)


@pytest.mark.parametrize("shown", ["one-id", None, 7, [{"id": "x"}], {"results": []}, [None]])
def test_what_was_shown_is_a_list_of_ids(memory: Memory, shown: Any) -> None:
    with pytest.raises(BadInput, match="shown must be a list of ids"):
        memory.answered("Where?", "In Boston.", shown=shown, user_id="alice")
