from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory.records.scope import Scope

IDS = st.none() | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
).filter(str.strip)


@given(st.tuples(IDS, IDS, IDS).filter(any), st.tuples(IDS, IDS, IDS).filter(any))
def test_owners_are_equal_only_for_the_same_id_of_the_same_kind(
    first: tuple[str | None, ...], second: tuple[str | None, ...]
) -> None:
    owner = next((kind, value) for kind, value in enumerate(first) if value is not None)
    other = next((kind, value) for kind, value in enumerate(second) if value is not None)
    assert (Scope(*first).owner == Scope(*second).owner) == (owner == other)


def test_an_owner_is_the_first_id_that_is_named() -> None:
    assert Scope("alice", "planner", "42").owner == "user:alice"
    assert Scope(agent_id="planner", run_id="42").owner == "agent:planner"
    assert Scope(run_id="42").owner == "run:42"


def test_only_given_ids_are_listed() -> None:
    assert Scope("爱丽丝", run_id="7").ids() == {"user_id": "爱丽丝", "run_id": "7"}


@pytest.mark.parametrize("bad", ["", "  \n", "a\0b", "\ud800", 7, b"alice"])
def test_an_id_that_cannot_be_one_is_refused(bad: object) -> None:
    with pytest.raises(BadInput):
        Scope(user_id=bad)  # type: ignore[arg-type]


def test_nobody_s_memory_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one of user_id, agent_id and run_id"):
        Scope()
