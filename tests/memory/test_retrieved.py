from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from memograd.memory import RawTurn, RetrievedTurn, fill_budget, render_memory


def _found(rank: int, text: str, session: int = 1, position: int = 0) -> RetrievedTurn:
    turn = RawTurn(f"D{session}:{position}", "Ann", text, datetime(2023, 5, session), session)
    return RetrievedTurn(turn, score=1.0 / rank, rank=rank, position=position)


def _words(text: str) -> int:
    return len(text.split())


def test_a_turn_too_long_for_the_rest_is_skipped_and_filling_goes_on() -> None:
    # Each line costs four words of date and speaker ("[1", "May", "2023]", "Ann:") and its text.
    ranked = [_found(1, "one two"), _found(2, "word " * 50), _found(3, "three", position=1)]
    kept = fill_budget(ranked, token_budget=11, count_tokens=_words)
    assert [found.rank for found in kept] == [1, 3]
    assert fill_budget(ranked, token_budget=10, count_tokens=_words) == [ranked[0]]


def test_chosen_by_rank_but_told_in_order() -> None:
    ranked = [_found(1, "late", 3, 9), _found(2, "early", 1, 5), _found(3, "earliest", 1, 2)]
    kept = fill_budget(ranked, token_budget=100, count_tokens=_words)
    assert render_memory(kept).split("\n") == [
        "[1 May 2023] Ann: earliest",
        "[1 May 2023] Ann: early",
        "[3 May 2023] Ann: late",
    ]


def test_no_turns_render_as_an_empty_string() -> None:
    assert render_memory([]) == ""


@given(
    st.lists(st.tuples(st.text(max_size=30), st.integers(1, 5)), max_size=12),
    st.integers(0, 200),
)
def test_the_budget_holds_for_the_whole_rendered_text(
    contents: list[tuple[str, int]], budget: int
) -> None:
    ranked = [
        _found(rank, text, session, position=rank)
        for rank, (text, session) in enumerate(contents, start=1)
    ]
    kept = fill_budget(ranked, token_budget=budget, count_tokens=len)
    assert len(render_memory(kept)) <= budget
    order = [(found.turn.session, found.position) for found in kept]
    assert order == sorted(order)
    left = budget - sum(len(found.turn.render()) + 1 for found in kept)
    # Greedy by rank: whatever was left out would not fit into what is left now.
    assert all(len(found.turn.render()) + 1 > left for found in ranked if found not in kept)
