"""Documents of a framework beside talk and compaction in the same owner's memory."""

from __future__ import annotations

import pytest

pytest.importorskip("langgraph.store.base", reason="needs the extra langgraph")

from memograd.errors import BadInput
from memograd.integrations.langgraph import LangGraphStore
from memograd.integrations.shelf import NewDocument, Shelf
from memograd.memory import Memory
from memograd.memory.records.scope import Scope


def texts(memory: Memory, user: str) -> list[str]:
    return [item["memory"] for item in memory.get_all(user_id=user)["results"]]


def test_talk_changes_no_document(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id="talker")
    store.put(("facts",), "home", {"text": "User lives in Boston."})
    store.put(("facts",), "cat", {"text": "User has a cat called Kimi."})
    memory.add("I live in Denver now.", user_id="talker")
    memory.add("Forget that I have a cat called Kimi.", user_id="talker")
    kept = texts(memory, "talker")
    assert kept[:2] == ["User lives in Boston.", "User has a cat called Kimi."]
    assert any("Denver" in text for text in kept[2:])  # beside it, as an item of its own
    store.delete(("facts",), "home")
    assert any("Denver" in text for text in texts(memory, "talker"))


def test_what_a_document_says_is_remembered_of_the_user_too(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id="same")
    store.put(("facts",), "home", {"text": "User lives in Boston."})
    memory.add("I live in Boston.", user_id="same")
    store.delete(("facts",), "home")
    assert texts(memory, "same") == ["User lives in Boston."]


def test_a_compaction_leaves_documents(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id="small")
    for key in ("1", "2"):
        store.put(("facts",), key, {"text": "User likes tea."})
    for note in ("User likes rice.", "User likes rice.", "User went to Rome."):
        memory.add(note, user_id="small", infer=False)
    report = memory.compact(0, user_id="small")
    assert report["items"] == {"before": 3, "after": 0}
    assert [found.key for found in store.search(("facts",))] == ["1", "2"]


def test_a_document_is_edited_by_its_framework_alone(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id="editor")
    store.put(("facts",), "home", {"text": "User lives in Boston."})
    (item,) = memory.get_all(user_id="editor")["results"]
    for change in (
        {"text": "User lives in Rome."},
        {"metadata": {"value": None}},
        {"metadata": {"shelf": "notes"}},
        {"expiration_date": "2020-01-01"},
    ):
        with pytest.raises(BadInput, match="is a document of"):
            memory.update(item["id"], **change)
    assert texts(memory, "editor") == ["User lives in Boston."]
    store.put(("facts",), "home", {"text": "User lives in Rome."})
    assert texts(memory, "editor") == ["User lives in Rome."]


def test_nobody_else_makes_a_document(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id="forger")
    store.put(("facts",), "home", {"text": "User lives in Boston."})
    forged = {"shelf": "langgraph", "name": ["facts", "home"], "value": {"text": "Rome"}}
    with pytest.raises(BadInput, match="that of a framework's document"):
        memory.add("User lives in Rome.", user_id="forger", infer=False, metadata=forged)
    part = {"shelf": "langgraph", "name": ["facts", "home"]}
    memory.add("The book is blue.", user_id="forger", infer=False, metadata=part)
    book = memory.get_all(user_id="forger")["results"][-1]
    with pytest.raises(BadInput, match="is a document of langgraph"):
        memory.update(book["id"], metadata={"value": {"text": "Rome"}})
    for odd in ([], [1], "facts"):  # no name of a document, so metadata like any other
        memory.add(
            f"A note {odd}.", user_id="forger", infer=False, metadata={**forged, "name": odd}
        )
    assert [found.value for found in store.search(())] == [{"text": "User lives in Boston."}]
    assert store.list_namespaces() == [("facts",)]


def test_metadata_of_the_application_is_no_document(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id="shop")
    store.put(("facts",), "home", {"text": "User lives in Boston."})
    memory.add("The book is blue.", user_id="shop", infer=False, metadata={"shelf": "langgraph"})
    assert [found.key for found in store.search(("facts",))] == ["home"]
    assert [found.key for found in store.search(("facts",), query="book")] == ["home"]


def test_a_prefix_may_be_a_list(memory: Memory) -> None:
    store = LangGraphStore(memory, user_id="lists")
    store.put(("facts", "more"), "home", {"text": "User lives in Boston."})
    as_list: list[str] = ["facts"]
    assert [found.key for found in store.search(as_list)] == ["home"]  # type: ignore[arg-type]


def test_half_a_character_is_refused_in_a_sentence(memory: Memory) -> None:
    shelf = Shelf(memory, Scope("halves"), "test")
    with pytest.raises(BadInput, match="not valid Unicode"):
        shelf.change(lambda _: {("a",): NewDocument({}, "cut \ud83d", {})})
