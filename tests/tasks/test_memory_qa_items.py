"""Items in place of turns: found by meaning, within number and budget, in the order learnt."""

from __future__ import annotations

from datetime import datetime

from construct_cases import LetterEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.memory import TurnMemory
from memograd.tasks.memory_qa.scenarios import (
    ItemMemory,
    KeptItem,
    MemoryView,
    PromptMemory,
    memory_qa_scenarios,
)

MAY = datetime(2023, 5, 7, 18)
times = st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1))
items = st.builds(KeptItem, st.text(st.characters(exclude_categories=["Cs"]), min_size=1), times)


def test_the_nearest_are_shown_in_the_order_in_which_they_were_learnt() -> None:
    known = [
        KeptItem("Tom has a dog called Ziggy.", MAY),
        KeptItem("Ann plays chess."),
        KeptItem("The dog Ziggy eats fish."),
    ]
    memory = ItemMemory(known, LetterEmbedder())
    [found] = memory.search_many(["dog Ziggy"], top_k=2, token_budget=99, count_tokens=len_words)
    assert [item.render() for item in found] == [
        "[7 May 2023] Tom has a dog called Ziggy.",
        "The dog Ziggy eats fish.",
    ]
    assert ItemMemory([], LetterEmbedder()).search_many(
        ["dog"], top_k=2, token_budget=99, count_tokens=len_words
    ) == [[]]


@settings(deadline=None, max_examples=50)
@given(st.lists(items, max_size=8), st.text(max_size=20), st.integers(1, 5), st.integers(0, 200))
def test_number_and_budget_are_kept_and_a_line_is_one_line(
    known: list[KeptItem], query: str, top_k: int, budget: int
) -> None:
    memory = ItemMemory(known, LetterEmbedder())
    query = query.encode("utf-8", "ignore").decode()
    [found] = memory.search_many([query], top_k=top_k, token_budget=budget, count_tokens=len)
    assert len(found) <= top_k
    assert sum(len(item.render() + "\n") for item in found) <= budget
    places = [next(i for i, one in enumerate(known) if one is item) for item in found]
    assert places == sorted(places)
    assert all(len(item.render().splitlines()) <= 1 for item in known)
    assert [KeptItem.from_json(item.to_json()) for item in known] == known


def test_a_question_is_shown_items_and_the_baselines_show_turns(tmp_path, lives) -> None:
    [conversation] = lives(1, 5)
    kept = ItemMemory([KeptItem("某人喜欢下棋。", MAY)], LetterEmbedder())
    with TurnMemory.open(tmp_path / "memory.db", LetterEmbedder()) as turns:
        turns.add_turns(conversation.id, conversation.turns)
        shown = {
            view: memory_qa_scenarios(
                conversation, PromptMemory(turns, 2, 1000, len_words, kept), view
            )[0].messages[-1]["content"]
            for view in MemoryView
        }
    assert "Memory:\n[7 May 2023] 某人喜欢下棋。\n\nQuestion" in shown[MemoryView.RETRIEVED]
    assert conversation.turns[-1].render() in shown[MemoryView.LAST]
    assert "(empty)" in shown[MemoryView.NONE]


def len_words(text: str) -> int:
    return len(text.split())
