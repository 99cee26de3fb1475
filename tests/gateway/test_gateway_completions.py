"""`/v1/completions` and `/v1/models/{id}` as OpenAI's client calls them."""

from __future__ import annotations

import openai
import pytest
from scripted import client_of

from memograd.gateway.traces_to_rollouts import rollout_of_trace


def test_a_text_is_continued_as_it_stands(gateway, tiny_policy) -> None:
    rollout = gateway.rollout()
    answer = client_of(rollout).completions.create(
        model="m", prompt="从前", n=2, seed=4, temperature=0.8, logprobs=2, max_tokens=6
    )
    [call] = gateway.store.calls(rollout.id)
    assert call.asked["api"] == "completions"
    assert call.prompt_ids == tuple(tiny_policy.encode("从前"))
    assert answer.usage.prompt_tokens == len(call.prompt_ids)
    for said, kept in zip(answer.choices, call.choices, strict=True):
        assert said.text == kept.text
        assert said.logprobs.token_logprobs == list(kept.logprobs)
        # By their texts, as this API tells them: two tokens of broken bytes are one entry.
        assert len(said.logprobs.top_logprobs) == len(kept.token_ids)
        assert all(1 <= len(tops) <= 2 for tops in said.logprobs.top_logprobs)
        assert said.logprobs.text_offset[0] == 0


def test_a_text_in_pieces_is_the_same(gateway) -> None:
    client = client_of(gateway.rollout())
    asked = {"model": "m", "prompt": ["从前"], "seed": 4}
    whole = client.completions.create(**asked)
    pieces = list(
        client.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    )
    assert "".join(one.choices[0].text for one in pieces if one.choices) == whole.choices[0].text
    assert pieces[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert pieces[-1].usage == whole.usage


@pytest.mark.parametrize("seed", range(4))
def test_a_text_that_goes_on_begins_with_the_ids_drawn(gateway, seed: int) -> None:
    """As agents write thoughts and observations one after the other."""
    rollout = gateway.rollout()
    client = client_of(rollout)
    text = "问题: 八号?\n"
    for turn in range(3):
        text += client.completions.create(model="m", prompt=text, seed=seed).choices[0].text
        text += f"\n观察 {turn}\n"
    calls = gateway.store.calls(rollout.id)
    drawn = [call.choices[0] for call in calls]
    for call, choice, following in zip(calls, drawn, calls[1:], strict=False):
        ended = choice.finish_reason == "stop"
        held = (*call.prompt_ids, *choice.token_ids)[: -1 if ended else None]
        assert following.prompt_ids[: len(held)] == held
    gateway.store.reward(rollout.id, 1.0)
    trained = rollout_of_trace(gateway.store.rollout(rollout.id), calls, temperature=1.0)
    assert trained.tokens == sum(len(choice.token_ids) for choice in drawn)


def test_a_special_token_in_an_answer_is_known_again(gateway, tiny_policy) -> None:
    """Its reader never sees it, so the text that comes back does not hold it."""
    special = set(tiny_policy.tokenizer.all_special_ids) - set(tiny_policy.end_ids)
    client = None
    for seed in range(400):
        rollout = gateway.rollout()
        client = client_of(rollout)
        text = client.completions.create(model="m", prompt="八", seed=seed, max_tokens=24)
        [call] = gateway.store.calls(rollout.id)
        drawn = call.choices[0].token_ids
        if special & set(drawn[:-1]):
            break
    else:
        pytest.fail("no seed draws a special token: the case is not tried")
    client.completions.create(model="m", prompt=f"八{text.choices[0].text}\n再")
    following = gateway.store.calls(rollout.id)[1].prompt_ids
    held = (*call.prompt_ids, *drawn)[: -1 if drawn[-1] in tiny_policy.end_ids else None]
    assert following[: len(held)] == held


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"echo": True}, "echo"),
        ({"best_of": 3}, "best_of"),
        ({"suffix": "end"}, "suffix"),
        ({"temperature": 1e-300}, "temperature"),
    ],
)
def test_what_a_text_cannot_ask_is_refused_by_name(gateway, fields, param) -> None:
    rollout = gateway.rollout()
    url = f"{rollout.base_url}/completions"
    refused = rollout.client.post(url, json={"prompt": "a", **fields})
    assert refused.status_code == 400
    assert refused.json()["error"]["param"].partition(".")[0] == param
    assert gateway.store.rollout(rollout.id).calls == 0


def test_a_model_by_its_name(gateway) -> None:
    for client in (
        client_of(gateway.rollout()),
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0),
    ):
        assert client.models.retrieve(gateway.backend.model).id == gateway.backend.model
        with pytest.raises(openai.NotFoundError) as missing:
            client.models.retrieve("someone/other-model")
        assert missing.value.code == "model_not_found"
