"""Sampling by a server: ids in, ids out, every answer under the version that drew it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import torch

from memograd.errors import BadInput
from memograd.policy.language_model import LanguageModel
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import AnswersWanted, SamplingFailed, VllmServer
from memograd.policy.remote.weights_server import WeightsServer

TEMPERATURE = 0.8


@pytest.fixture
def remote(server, tiny_policy, tmp_path) -> Iterator[RemoteSampler]:
    pool = ServerPool([VllmServer(server.url, seconds=20)], tmp_path / "adapters", patience=1)
    tiny_policy.remote = RemoteSampler(tiny_policy, pool)
    yield tiny_policy.remote
    tiny_policy.remote.close()
    tiny_policy.remote = None


def draw(policy: LanguageModel, prompts: list[list[int]], *, count: int = 3, seed: int = 0):
    return policy.sample(
        prompts,
        num_generations=count,
        temperature=TEMPERATURE,
        max_completion_length=8,
        generator=torch.Generator().manual_seed(seed),
    )


def gap(policy: LanguageModel, groups) -> float:
    """The largest difference of what the server says to what the learner does."""
    with torch.no_grad():
        scores = policy.logprobs([group.tree for group in groups], temperature=TEMPERATURE)
    rows = [row for group in groups for row in group.logprobs]
    return max(
        float((scores.logprobs_RT[place, : len(row)] - torch.from_numpy(row)).abs().max())
        for place, row in enumerate(rows)
    )


def move(policy: LanguageModel, scale: float = 0.1) -> None:
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * scale)


def test_draws_what_the_learner_scores_at_every_version(remote, server, tiny_policy, random_ids):
    prompts = [random_ids(20), random_ids(5)]
    for version in range(3):
        published = tiny_policy.publish(version)
        groups = draw(tiny_policy, prompts, seed=version)
        assert gap(tiny_policy, groups) < 1e-4
        assert [group.tree.prompt for group in groups] == [tuple(prompt) for prompt in prompts]
        for group in groups:
            assert len(group.logprobs) == 3
            for row, drawn in enumerate(group.logprobs):
                (span,) = group.versions[row]
                assert (span.version, span.tokens) == (version, len(drawn))
        # A version has a name of its own, and the one before it is gone.
        assert server.loaded == [published.name]
        assert [path.name for path in remote.pool.folder.iterdir()] == [published.name]
        move(tiny_policy)


def test_one_request_a_prompt_and_the_same_seed_draws_the_same(
    remote, server, tiny_policy, random_ids
):
    prompts = [random_ids(20), random_ids(20)]
    first = draw(tiny_policy, prompts)
    asked = [body for path, body in server.asked if path == "/v1/completions"]
    assert [body["n"] for body in asked] == [3, 3]
    again = draw(tiny_policy, prompts)
    for one, other in zip(first, again, strict=True):
        assert [one.tree.branch(row) for row in range(3)] == [
            other.tree.branch(row) for row in range(3)
        ]


def test_unpublished_weights_are_a_gap(remote, tiny_policy, random_ids):
    groups = draw(tiny_policy, [random_ids(20)])
    move(tiny_policy)
    assert gap(tiny_policy, groups) > 1e-2


def test_the_untrained_model_and_greedy_answers(remote, server, tiny_policy, random_ids):
    prompt = random_ids(10)
    with tiny_policy.untrained():
        (group,) = tiny_policy.sample(
            [prompt], num_generations=2, temperature=0.0, max_completion_length=4, generator=None
        )
        assert server.asked[-1][1]["model"] == "tiny" and group.versions == ((), ())
    assert group.tree.branch(0) == group.tree.branch(1)
    remote_was, tiny_policy.remote = tiny_policy.remote, None
    with tiny_policy.untrained():
        (own,) = tiny_policy.sample(
            [prompt], num_generations=1, temperature=0.0, max_completion_length=4, generator=None
        )
    tiny_policy.remote = remote_was
    assert own.tree.branch(0) == group.tree.branch(0)


def test_a_prompt_that_leaves_no_room_is_refused(remote, tiny_policy, random_ids):
    with pytest.raises(BadInput, match="512 tokens that the sampling server takes"):
        draw(tiny_policy, [random_ids(510)])


def test_a_server_that_echoes_another_prompt_is_found(server, tmp_path: Path):
    """Where a server says what it saw, a dropped first token needs no log-probabilities."""
    client = VllmServer(server.url)
    wanted = AnswersWanted("tiny", (5, 6, 7), 1, 1.0, 2, seed=0)
    said = client.answer(wanted).answers[0]
    choice = {
        "token_ids": list(said.ids),
        "logprobs": {"token_logprobs": said.logprobs.tolist()},
        "prompt_token_ids": [6, 7],
    }
    with pytest.raises(SamplingFailed, match="BOS was dropped"):
        client._answer(choice, wanted)


GARBAGE = (
    {"token_ids": [3, float("inf")]},
    {"token_ids": [3, 1.5]},
    {"token_ids": [3, -1]},
    {"token_ids": "ab"},
    {"logprobs": {"token_logprobs": [-1.0]}},
    {"logprobs": {"token_logprobs": [-1.0, float("nan")]}},
    {"prompt_token_ids": 7},
)


@pytest.mark.parametrize("garbage", GARBAGE, ids=str)
@pytest.mark.parametrize("whole", [False, True])
def test_an_answer_that_is_none_ends_with_a_sentence(garbage, whole) -> None:
    """Of both ways to ask; what is in an answer that cannot be read is never learnt from."""
    scores = {"token_logprobs": [-1.0, -2.0], "content": [{"logprob": -1.0}, {"logprob": -2.0}]}
    told = [{"logprob": one} for one in garbage.get("logprobs", {}).get("token_logprobs", [])]
    choice = {
        "index": 0,
        "token_ids": [3, 4],
        "logprobs": scores,
        "weight_versions": [{"version": "mg-0", "start": 0, "end": 2}],
        **garbage,
    }
    if told and whole:
        choice["logprobs"] = {"content": told}
    answer = {"choices": [choice], "prompt_token_ids": choice.get("prompt_token_ids")}
    sent = httpx.MockTransport(lambda request: httpx.Response(200, content=json.dumps(answer)))
    client = (WeightsServer if whole else VllmServer)("http://server", transport=sent)
    with pytest.raises(SamplingFailed, match="http://server"):
        client.answer(AnswersWanted("mg-0", (5, 6, 7), 1, 0.8, 4, seed=0))
