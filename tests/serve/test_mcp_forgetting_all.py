"""Forgetting everything over MCP needs a yes of the user."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from speaking import answering, client, key, shown


def test_what_has_expired_is_not_forgotten_without_asking(served: Any) -> None:
    address, its = served
    told: dict[str, Any] = {"infer": False, "expiration_date": "2020-01-05"}
    its.memory.add("The code is 4711.", user_id="alice", **told)
    answer, asked = answering("decline")

    async def talk() -> None:
        secret = key(its, "user:alice")
        async with client(address, secret, elicitation_callback=answer) as asking:
            await asking.call_tool("delete_all_memories", {})

    anyio.run(talk)
    assert asked == ["Forget all 1 memories of 'alice'?"]
    assert len(its.memory.get_all(user_id="alice", show_expired=True)["results"]) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_forgetting_everything_asks_the_user(served: Any, mode: str) -> None:
    address, its = served
    its.memory.add("I live in Boston.", user_id="alice", infer=False)
    its.memory.add("我对花生过敏。", user_id="alice", infer=False)
    its.memory.add("I live in Rome.", user_id="bob", infer=False)

    def left() -> int:
        return len(its.memory.get_all(user_id="alice")["results"])

    async def talk(action: str, confirm: bool) -> tuple[Any, list[str]]:
        answer, asked = answering(action, confirm)
        async with client(
            address, key(its, "user:alice"), mode=mode, elicitation_callback=answer
        ) as asking:
            return await asking.call_tool("delete_all_memories", {}), asked

    for action, confirm in (("decline", True), ("cancel", True), ("accept", False)):
        result, asked = anyio.run(talk, action, confirm)
        assert asked == ["Forget all 2 memories of 'alice'?"]
        assert result.structured_content["deleted"] == 0
        assert left() == 2
    result, asked = anyio.run(talk, "accept", True)
    assert len(asked) == 1 and result.structured_content["deleted"] == 2
    assert left() == 0
    result, asked = anyio.run(talk, "accept", True)
    assert asked == [] and result.structured_content["deleted"] == 0
    assert len(its.memory.get_all(user_id="bob")["results"]) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_cannot_ask_forgets_nothing(served: Any, mode: str) -> None:
    address, its = served
    its.memory.add("I live in Boston.", user_id="alice", infer=False)

    async def talk() -> None:
        async with client(address, key(its, "user:alice"), mode=mode) as asking:
            result = await asking.call_tool("delete_all_memories", {})
            assert result.is_error and shown(result).startswith("Nothing was forgotten")

    anyio.run(talk)
    assert len(its.memory.get_all(user_id="alice")["results"]) == 1
