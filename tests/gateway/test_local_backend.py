"""Over the local policy: conversations go on from the very ids that were drawn."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from memograd.gateway.admission import GatewayLimits
from memograd.gateway.calls import Calls
from memograd.gateway.conversation import TracedConversation
from memograd.gateway.local import AnswerSampling, LocalBackend
from memograd.gateway.protocol import CallRefused, ChatRequest
from memograd.gateway.store import TraceStore

TOOL = {"type": "function", "function": {"name": "say", "parameters": {"type": "object"}}}


def talk(rollout, turns: int, **fields) -> list[dict]:
    """A conversation in which the user says something after every answer."""
    messages = [{"role": "user", "content": "开始"}]
    for turn in range(turns):
        answer = rollout.chat(*messages, **fields).json()
        messages += [answer["choices"][0]["message"], {"role": "user", "content": f"更多 {turn}"}]
    return messages


@pytest.mark.parametrize("tools", [None, [TOOL]])
def test_a_prompt_begins_with_what_was_seen_and_drawn(gateway, tiny_policy, tools) -> None:
    """Also where text alone would not give the ids back: a random model draws broken bytes."""
    rollout = gateway.rollout()
    talk(rollout, 4, tools=tools)
    calls = gateway.store.calls(rollout.id)
    for call, following in itertools.pairwise(calls):
        held = (*call.prompt_ids, *call.choices[0].token_ids)
        assert following.prompt_ids[: len(held)] == held
    last = calls[-1]
    retokenised = tuple(tiny_policy.encode(list(last.messages)))
    assert retokenised != last.prompt_ids  # so there was something to get wrong


def test_a_conversation_goes_on_after_a_restart(local, start, tmp_path) -> None:
    gateway = start(local)
    rollout = gateway.rollout()
    messages = talk(rollout, 2)
    again = start(local)  # another application over the same store: nothing is in its memory
    rollout.base_url = rollout.base_url.replace(gateway.url, again.url)
    assert rollout.chat(*messages).status_code == 200
    *_, call, following = again.store.calls(rollout.id)
    held = (*call.prompt_ids, *call.choices[0].token_ids)
    assert following.prompt_ids[: len(held)] == held


def test_what_an_agent_rewrote_is_what_the_model_sees(gateway, tiny_policy) -> None:
    rollout = gateway.rollout()
    messages = talk(rollout, 1)
    messages[1] = {"role": "assistant", "content": "something else"}
    rollout.chat(*messages)
    call = gateway.store.calls(rollout.id)[1]
    assert call.prompt_ids == tuple(tiny_policy.encode(messages))


def test_an_answer_that_a_stop_string_cut_is_not_gone_on_from(gateway, tiny_policy) -> None:
    rollout = gateway.rollout()
    whole = rollout.chat("say", seed=1).json()["choices"][0]["message"]["content"]
    stop = next(letter for letter in whole[1:] if letter.isascii() and letter.isprintable())
    cut = rollout.chat("say", seed=1, stop=stop).json()["choices"][0]["message"]
    rollout.chat("say", cut, "more")
    call = gateway.store.calls(rollout.id)[2]
    said = [dict(message) for message in call.messages]
    assert call.prompt_ids == tuple(tiny_policy.encode(said))


def test_an_answer_that_no_stop_string_cut_is_gone_on_from_at_its_longest(
    gateway, tiny_policy
) -> None:
    """A stop string that never came splits no row: all that was drawn was told."""
    rollout = gateway.rollout()
    answer = rollout.chat("say", seed=1, max_tokens=6, stop=["never said"]).json()["choices"][0]
    assert answer["finish_reason"] == "length"
    said = [{"role": "user", "content": "say"}, answer["message"], {"role": "user", "content": "a"}]
    rollout.chat(*said)
    call, following = gateway.store.calls(rollout.id)
    held = (*call.prompt_ids, *call.choices[0].token_ids)
    assert following.prompt_ids[: len(held)] == held
    assert tuple(tiny_policy.encode(said))[: len(held)] != held  # there was something to get wrong


def test_a_rollouts_seed_draws_the_same_calls_again(gateway) -> None:
    drawn = []
    for seed in (5, 5, 6):
        rollout = gateway.rollout(seed=seed)
        talk(rollout, 3)
        calls = gateway.store.calls(rollout.id)
        assert len({call.sampling["seed"] for call in calls}) == 3
        drawn.append([call.choices[0].token_ids for call in calls])
    assert drawn[0] == drawn[1] != drawn[2]


def test_choices_are_drawn_independently(gateway) -> None:
    rollout = gateway.rollout()
    rollout.chat("say", n=4, seed=0)
    [call] = gateway.store.calls(rollout.id)
    assert len({choice.token_ids for choice in call.choices}) == 4


def test_training_forces_how_answers_are_drawn(local, start) -> None:
    local.engine.rest()
    local.weights_changed(AnswerSampling(temperature=0.5, max_tokens=3, forced=True))
    gateway = start(local)
    rollout = gateway.rollout()
    rollout.chat("say", temperature=2, top_p=0.1, max_tokens=900)
    [call] = gateway.store.calls(rollout.id)
    asked = {name: call.sampling[name] for name in ("temperature", "top_p", "max_tokens")}
    assert asked == {"temperature": 0.5, "top_p": 1.0, "max_tokens": 3}
    assert call.policy_version == 1


def test_concurrent_rollouts_get_their_own_answers(local, tmp_path) -> None:
    """Many conversations at once draw what each draws alone, and every call is in its trace."""
    store = TraceStore(f"sqlite:///{tmp_path}/many.db")

    async def conversation(calls: Calls, seed: int) -> list[tuple[int, ...]]:
        rollout = store.create(seed=seed).record
        messages, drawn = [{"role": "user", "content": f"number {seed}"}], []
        for _ in range(3):
            request = ChatRequest.model_validate({"messages": messages, "max_tokens": 6})
            begun = await calls.begin(request, rollout.id, "agent")
            await asyncio.sleep(random.Random(seed).random() / 50)
            answer = await calls.answer(begun)
            drawn.append(answer.choices[0].token_ids)
            said = {"role": "assistant", "content": answer.choices[0].text}
            messages += [said, {"role": "user", "content": "on"}]
        assert [call.choices[0].token_ids for call in store.calls(rollout.id)] == drawn
        return drawn

    async def all_of(seeds: list[int], together: bool) -> list:
        calls = Calls(local, store, GatewayLimits())
        if together:
            return list(await asyncio.gather(*(conversation(calls, seed) for seed in seeds)))
        return [await conversation(calls, seed) for seed in seeds]

    seeds = list(range(12))
    assert asyncio.run(all_of(seeds, True)) == asyncio.run(all_of(seeds, False))
    store.close()


def test_a_model_without_a_tool_template_says_so(tiny_policy) -> None:
    backend = LocalBackend(tiny_policy)
    request = ChatRequest.model_validate(
        {"messages": [{"role": "user", "content": "a"}], "tools": [TOOL]}
    )
    try:
        with pytest.raises(CallRefused, match="tool calls as JSON"):
            backend.prepare(request, TracedConversation())
    finally:
        backend.close()
