"""The facade by example: what mem0's users know, and what mem0 gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.quick import quick

from memograd.errors import BadInput
from memograd.memory import Memory


@pytest.fixture
def memory(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memories", embedder=trigrams(), env_file=None) as opened:
        yield opened


def add(memory: Memory, text: str, **given: Any) -> str:
    [result] = memory.add(text, **{"user_id": "alice", "infer": False} | given)["results"]
    return str(result["id"])


def texts(result: dict[str, Any]) -> list[str]:
    return [item["memory"] for item in result["results"]]


# Shapes


def test_results_have_mem0_s_shape(memory: Memory) -> None:
    chosen = add(memory, "I like tea.", agent_id="planner", metadata={"mood": "calm"})
    [hit] = memory.search("tea", user_id="alice")["results"]
    assert {"id", "memory", "hash", "score", "metadata", "created_at", "updated_at"} <= set(hit)
    assert (hit["id"], hit["user_id"], hit["agent_id"]) == (chosen, "alice", "planner")
    assert hit["metadata"] == {"mood": "calm"}
    assert 0 < hit["score"] <= 1
    assert memory.get(chosen) == {
        key: value for key, value in hit.items() if key not in ("score", "similarity")
    }


def test_both_forms_of_search_give_the_same(memory: Memory) -> None:
    add(memory, "I like tea.")
    add(memory, "I like coffee.", user_id="bob")
    first = memory.search("like", user_id="alice", limit=5)
    assert first == memory.search("like", filters={"user_id": "alice"}, top_k=5)
    assert texts(first) == ["I like tea."]


def test_a_search_of_nobody_s_memory_is_refused(memory: Memory) -> None:
    with pytest.raises(BadInput, match="user_id"):
        memory.search("tea")
    with pytest.raises(BadInput, match="user_id"):
        memory.get_all(filters={"mood": "calm"})
    with pytest.raises(BadInput, match="user_id"):
        memory.delete_all()


def test_an_explained_hit_says_why(memory: Memory) -> None:
    add(memory, "豆豆是我的狗")
    [hit] = memory.search("豆豆", user_id="alice", explain=True)["results"]
    assert "豆豆" in hit["explain"]["matched"]
    assert hit["explain"]["sentence"]


# Where mem0 goes wrong (numbers of its issues)


@pytest.mark.parametrize("many", quick([2_000, 5_000], (0,)))
def test_delete_all_stops_nowhere(memory: Memory, many: int) -> None:  # 6627, mended there since
    messages = [{"role": "user", "content": f"fact number {number}"} for number in range(many)]
    memory.add(messages, user_id="alice", infer=False)
    add(memory, "bob's", user_id="bob")
    assert memory.delete_all(user_id="alice")["deleted"] == many
    assert texts(memory.get_all(user_id="alice")) == []
    assert texts(memory.get_all(user_id="bob")) == ["bob's"]


def test_list_filters_work(memory: Memory) -> None:
    for mood in ("calm", "cross", "gay"):
        add(memory, f"a {mood} day", metadata={"mood": mood, "tags": [mood, "day"]})
    found = memory.search("day", user_id="alice", filters={"mood": {"in": ["calm", "gay"]}})
    assert sorted(texts(found)) == ["a calm day", "a gay day"]
    found = memory.search("day", user_id="alice", filters={"tags": {"contains": "cross"}})
    assert texts(found) == ["a cross day"]


def test_what_contradicts_replaces(memory: Memory) -> None:  # 5576
    memory.add("I live in Boston.", user_id="alice")
    changed = memory.add("I live in Denver now.", user_id="alice")["results"]
    assert [result["event"] for result in changed] == ["UPDATE"]
    [item] = memory.get_all(user_id="alice")["results"]
    assert "Denver" in item["memory"]
    assert [line["event"] for line in memory.history(item["id"])] == ["ADD", "UPDATE"]


def test_greetings_and_questions_are_no_memories(memory: Memory) -> None:  # 4573
    for junk in ("Hi there!", "How are you today?", "Thanks a lot!", "你好!", "今天天气怎么样?"):
        assert memory.add(junk, user_id="alice")["results"] == []


def test_a_chinese_conversation_stays_chinese(memory: Memory) -> None:  # 3707
    memory.add("我住在北京。", user_id="小红")
    [item] = memory.get_all(user_id="小红")["results"]
    assert "北京" in item["memory"]
    assert not any(letter.isascii() and letter.isalpha() for letter in item["memory"])


# Time


def test_the_past_can_be_asked(memory: Memory) -> None:
    chosen = add(memory, "I live in Boston.")
    before = datetime.fromisoformat(memory.get(chosen)["created_at"])  # type: ignore[index]
    first = memory.store.journal.latest(chosen)
    memory.update(chosen, "I live in Denver.")
    second = memory.store.journal.latest(chosen)
    memory.delete(chosen)
    assert first is not None and second is not None
    for moment, expected in (
        (before - timedelta(days=1), []),
        (first.recorded_at, ["I live in Boston."]),
        (second.recorded_at, ["I live in Denver."]),
        (datetime.now(UTC) + timedelta(days=1), []),
    ):
        assert texts(memory.search("live", user_id="alice", as_of=moment)) == expected
        assert texts(memory.get_all(user_id="alice", as_of=moment.isoformat())) == expected


def test_both_clocks_are_kept(memory: Memory) -> None:
    chosen = add(memory, "I live in Boston.", timestamp="2020-02-03")
    item = memory.get(chosen)
    assert item is not None
    assert item["valid_from"] == "2020-02-03T00:00:00+00:00"
    assert item["created_at"] > "2024"
    memory.update(chosen, "I live in Denver.")
    first, second = memory.history(chosen)
    assert (first["new_memory"], second["old_memory"]) == ("I live in Boston.",) * 2
    assert second["valid_to"] == memory.get(chosen)["valid_from"]  # type: ignore[index]


def test_history_names_actor_and_reason(memory: Memory) -> None:
    memory.add("I live in Boston.", user_id="alice")
    [item] = memory.get_all(user_id="alice")["results"]
    memory.delete(item["id"])
    added, deleted = memory.history(item["id"])
    assert (added["actor"], deleted["actor"]) == ("rules", "user")
    assert added["reason"] and deleted["reason"]
    assert deleted["is_deleted"]


# Layers and kinds


def test_the_turns_behind_an_item_come_second(memory: Memory) -> None:
    said = [{"role": "user", "name": "Alice", "content": "I adopted a dog called Rex last week."}]
    memory.add(said, user_id="alice", timestamp="2024-05-07")
    found = memory.search("Rex", user_id="alice", turns=3)
    assert "Rex" in texts(found)[0]
    assert found["turns"][0]["text"] == said[0]["content"]
    assert found["turns"][0]["speaker"] == "Alice"


def test_the_old_fades_when_recency_counts(memory: Memory) -> None:
    for text, said in (("I drink tea.", "2000-01-01"), ("I drink tea often.", "2024-01-01")):
        add(memory, text, timestamp=said)
    found = memory.search("I drink tea.", user_id="alice")
    assert texts(found)[0] == "I drink tea."
    found = memory.search("I drink tea.", user_id="alice", recency_half_life=timedelta(days=365))
    assert texts(found)[0] == "I drink tea often."


def test_core_items_are_always_in_the_context(memory: Memory) -> None:
    add(memory, "Alice is allergic to peanuts.", kind="core")
    add(memory, "The flight leaves at nine.")
    context = memory.context("When does the flight leave?", user_id="alice", token_budget=100)
    assert "peanuts" in context.text and "nine" in context.text


def test_categories_are_the_nearest_descriptions(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    categories = {"food": "eating cooking tea bread", "travel": "flights trains hotels journeys"}
    with Memory.open(
        tmp_path, embedder=trigrams(256), env_file=None, categories=categories
    ) as memory:
        memory.add("I love eating bread and cooking.", user_id="alice")
        [item] = memory.get_all(user_id="alice", filters={"categories": {"contains": "food"}})[
            "results"
        ]
        assert item["categories"] == ["food"]


def test_an_agent_s_memories_are_found_across_users(memory: Memory) -> None:
    add(memory, "Alice likes tea.", agent_id="planner")
    add(memory, "Bob likes tea.", user_id="bob", agent_id="planner")
    add(memory, "Carol likes tea.", user_id="carol")
    found = memory.search("tea", agent_id="planner")
    assert sorted(texts(found)) == ["Alice likes tea.", "Bob likes tea."]


def test_labels_hold_for_updates_too(memory: Memory) -> None:
    memory.add("I live in Boston.", user_id="alice")
    memory.add("I live in Denver now.", user_id="alice", kind="core", categories=["home"])
    [item] = memory.get_all(user_id="alice")["results"]
    assert (item["kind"], item["categories"]) == ("core", ["home"])


def test_other_metadata_leave_the_validity_alone(memory: Memory) -> None:
    chosen = add(memory, "I live in Boston.", timestamp="2024-05-07")
    memory.update(chosen, metadata={"mood": "calm"})
    item, last = memory.get(chosen), memory.history(chosen)[-1]
    assert item is not None and item["metadata"] == {"mood": "calm"}
    assert item["valid_from"] == "2024-05-07T00:00:00+00:00"
    assert last["valid_to"] is None


def test_an_update_that_changes_nothing_writes_nothing(memory: Memory) -> None:
    chosen = add(memory, "I live in Boston.", metadata={"seen": 1, "tags": ["home", {"a": 1}]})
    memory.update(chosen, expiration_date="2099-01-01")
    same: list[dict[str, Any]] = [
        {"text": "I live in Boston."},
        {"metadata": {"seen": 1, "gone": None}},
        {"metadata": {"tags": ["home", {"a": 1}]}},
        {"expiration_date": "2099-01-01"},
    ]
    before = memory.get(chosen)
    for given in same:
        assert memory.update(chosen, **given) == {"message": "Memory updated successfully!"}
        assert (memory.get(chosen), len(memory.history(chosen))) == (before, 2)
    other: list[dict[str, Any]] = [
        {"metadata": {"seen": True}},  # to Python the same as 1
        {"metadata": {"tags": ["home", {"a": True}]}},
        {"metadata": {"tags": None}},
        {"expiration_date": None},
        {"text": "I live in Boston!"},
    ]
    for events, given in enumerate(other, start=3):
        memory.update(chosen, **given)
        assert len(memory.history(chosen)) == events, given


def test_one_long_core_item_does_not_silence_the_others(memory: Memory) -> None:
    add(memory, "Call me Al.", kind="core")
    add(memory, "blah " * 2_000, kind="core")
    context = memory.context("hello", user_id="alice", token_budget=2_000)
    assert [item.text for item in context.core] == ["Call me Al."]
    assert len(context.left_out_core) == 1


def test_raw_turns_do_not_depend_on_how_the_owner_is_named(memory: Memory) -> None:
    memory.add("Hello there! How are you?", user_id="alice")  # no item comes of it
    forms: list[dict[str, Any]] = [
        {"user_id": "alice"},
        {"filters": {"user_id": "alice"}},
        {"filters": {"AND": [{"user_id": "alice"}]}},
        {"user_id": "alice", "as_of": datetime.now(UTC) + timedelta(days=1)},
    ]
    for form in forms:
        assert len(memory.search("hello", turns=5, **form)["turns"]) == 1


@pytest.mark.parametrize(
    "filters",
    [
        {"user_id": None},
        {"user_id": {"ne": "bob"}},
        {"user_id": {"in": ["alice", None]}},
        {"NOT": [{"user_id": "bob"}]},
        {"OR": [{"user_id": "alice"}, {"kind": "semantic"}]},
    ],
)
def test_a_filter_must_name_an_owner(memory: Memory, filters: dict[str, Any]) -> None:
    add(memory, "mine")
    for call in (memory.get_all, memory.delete_all):
        with pytest.raises(BadInput, match="Say whose memory"):
            call(filters=filters)
    assert len(memory.get_all(filters={"user_id": "*"})["results"]) == 1


# Bad input


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda m: m.add("x", infer=False), "at least one of"),
        (lambda m: m.add("x", user_id="", infer=False), "user_id"),
        (lambda m: m.add("\ud83d", user_id="a"), "Unicode"),
        (lambda m: m.add("x", user_id="a", kind="vague", infer=False), "core, episodic"),
        (lambda m: m.add("x", user_id="a", metadata=[1], infer=False), "metadata"),
        (lambda m: m.add("x", user_id="a", metadata={"x": {1}}, infer=False), "metadata|JSON"),
        (lambda m: m.add("x", user_id="a", metadata={"x": float("nan")}, infer=False), "JSON"),
        (lambda m: m.search(" ", user_id="a"), "query"),
        (lambda m: m.search("x", user_id="a", top_k=-1), "top_k"),
        (lambda m: m.search("x", user_id="a", top_k=0), "at least 1"),
        (lambda m: m.search("x", user_id="a", threshold="a"), "threshold"),
        (lambda m: m.context("x", user_id="a", token_budget="a"), "token_budget"),
        (lambda m: m.add("x", user_id="a", categories="work", infer=False), "categories"),
        (lambda m: m.add("x", user_id="a", categories=[1], infer=False), "categories"),
        (lambda m: m.update("none", 5), "The new text"),
        (lambda m: m.update("none", metadata="abc"), "metadata"),
        (lambda m: m.search("x", user_id="a", as_of="soon"), "as_of"),
        (lambda m: m.search("x", user_id="a", filters={"a": {"near": 1}}), "near"),
        (lambda m: m.search("x", user_id="a", rerank=True), "reranker"),
        (lambda m: m.update("none", "x"), "'none'"),
        (lambda m: m.update("none"), "text or"),
        (lambda m: m.delete("none"), "'none'"),
        (lambda m: m.purge("none"), "'none'"),
        (lambda m: m.purge(user_id="nobody"), "nobody"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_no_trace(
    memory: Memory, call: Callable[[Memory], object], named: str
) -> None:
    with pytest.raises(BadInput, match=named) as raised:
        call(memory)
    assert "\n" not in str(raised.value)
    assert memory.store.journal.last_seq() == 0


@pytest.mark.parametrize(
    "text",
    [
        '" or user_id != "', "back\\slash\\", "a == b && c", "line\nbreak\r\n", "🦊👩‍👩‍👧",
        "x" * 100_000, "我" * 30_000, "nul\0byte", "%_like_%", "';--", "\u202eright to left",
    ],
)  # fmt: skip
def test_any_text_and_any_id_come_back_as_they_went_in(memory: Memory, text: str) -> None:
    chosen = add(memory, text)
    assert memory.get(chosen)["memory"] == text  # type: ignore[index]
    assert texts(memory.search(text[:200], user_id="alice")) == [text]
    if "\0" not in text:
        user = text[:300]
        add(memory, "odd user", user_id=user)
        assert texts(memory.search("odd", user_id=user, top_k=3)) == ["odd user"]
        assert "odd user" not in texts(memory.search("odd", user_id="alice"))
        assert memory.delete_all(user_id=user)["deleted"] == 1


def test_an_empty_text_is_no_memory(memory: Memory) -> None:
    assert memory.add("", user_id="alice", infer=False) == {"results": []}
    assert memory.add([], user_id="alice") == {"results": []}


def test_another_embedder_is_refused_with_the_remedy(
    tmp_path: Path, trigrams: Callable[..., Any]
) -> None:
    Memory.open(tmp_path, embedder=trigrams(32), env_file=None).close()
    for other in (trigrams(64), trigrams(32, "other")):
        with pytest.raises(BadInput, match="memograd memory reindex --embedder"):
            Memory.open(tmp_path, embedder=other, env_file=None)


def test_parts_may_be_named(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="e5", reader="rules", env_file=None) as memory:
        assert memory.stats()["embedder"] == "e5"
    for wrong in ({"embedder": "e6"}, {"reader": "magic"}, {"manager": "chat"}):
        with pytest.raises(BadInput):
            Memory.open(tmp_path, env_file=None, **wrong)  # type: ignore[arg-type]


def test_a_path_that_cannot_be_a_memory_is_refused(
    tmp_path: Path, trigrams: Callable[..., Any]
) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(BadInput, match="file"):
        Memory.open(file, embedder=trigrams(), env_file=None)
