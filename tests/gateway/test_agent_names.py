"""Agents are told apart by what they were told, where nobody names them."""

from __future__ import annotations

import pytest

from memograd.gateway.answering import agent_name
from memograd.gateway.protocol import ChatRequest


def named(*messages, header=None, **fields) -> str:
    said = [{"role": role, "content": content} for role, content in messages]
    return agent_name(ChatRequest.model_validate({"messages": said, **fields}), header)


def test_a_name_that_is_given_wins() -> None:
    told = ("system", "You are a critic.")
    assert named(told, header="作者".encode().decode("latin-1"), user="u") == "作者"
    assert named(told, metadata={"agent": "writer"}, user="u") == "writer"
    assert named(told, user="u") == "u"
    assert len(named(told, user="u" * 500)) == 200


def test_what_an_agent_was_told_names_it() -> None:
    critic, writer = (("system", f"You are a {role}. Be brief.") for role in ("critic", "writer"))
    assert named(critic, ("user", "a")) == named(critic, ("user", "b"))
    assert named(critic).startswith("you-are-a-critic-be-") and named(critic) != named(writer)
    # By its form it may come as a developer's message, or in parts; dates do not change it.
    assert named(("developer", [{"type": "text", "text": critic[1]}])) == named(critic)
    dated = [named(("system", f"你是护士。今天是 {day}。")) for day in ("2026-01-02", "2025-12-31")]
    assert dated[0] == dated[1] and dated[0].startswith("你是护士-今天是-")


@pytest.mark.parametrize("messages", [[("user", "x")], [("system", " 1 "), ("user", "x")]])
def test_who_was_told_nothing_is_an_agent(messages) -> None:
    assert named(*messages) == "agent"
