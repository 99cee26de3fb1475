"""Which ids a conversation goes on from."""

from __future__ import annotations

from memograd.gateway.conversation import HeldTokens, TracedConversation

ASK, ANSWER = {"role": "user", "content": "a"}, {"role": "assistant", "content": "X"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def known(*said) -> TracedConversation:
    conversation = TracedConversation()
    *before, answer = said
    conversation.remember(before, answer, HeldTokens((1, 2, 3), "X drawn"))
    return conversation


def test_the_longest_known_beginning_is_gone_on_from() -> None:
    conversation = known(ASK, ANSWER)
    more = [ASK, ANSWER, {"role": "user", "content": "b"}]
    conversation.remember(more, ANSWER, HeldTokens((1, 2, 3, 4), "Y drawn"))
    assert conversation.find([ASK]).ids is None
    assert conversation.find(more).ids == (1, 2, 3)
    found = conversation.find([*more, ANSWER, ASK])
    assert (found.ids, found.written) == ((1, 2, 3, 4), {1: "X drawn", 3: "Y drawn"})


def test_a_fork_goes_on_from_where_it_left() -> None:
    conversation = known(ASK, ANSWER)
    assert conversation.find([ASK, ANSWER, {"role": "user", "content": "other"}]).ids == (1, 2, 3)


def test_any_change_before_the_answer_is_another_conversation() -> None:
    conversation = known(ASK, ANSWER)
    assert conversation.find([{"role": "user", "content": "A"}, ANSWER]).ids is None
    assert conversation.find([{"role": "system", "content": "s"}, ASK, ANSWER]).ids is None
    assert conversation.find([ASK, {"role": "user", "content": "X"}]).ids is None


def test_what_frameworks_change_in_passing_changes_nothing() -> None:
    said = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    conversation = known({"role": "system", "content": "s"}, ASK, said)
    respelt = {**CALL, "index": 0, "function": {"name": "f", "arguments": '{"a":1}'}}
    sent = [
        {"role": "developer", "content": [{"type": "text", "text": "s"}]},
        {"role": "user", "content": "a", "name": None},
        {"role": "assistant", "content": "", "refusal": None, "tool_calls": [respelt]},
    ]
    assert conversation.find(sent).ids == (1, 2, 3)
    other = {**respelt, "function": {"name": "f", "arguments": '{"a":2}'}}
    sent[2] = {**sent[2], "tool_calls": [other]}
    assert conversation.find(sent).ids is None
