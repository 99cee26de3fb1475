"""Episodes whose actions a server draws: as token ids, and each from the version that began it."""

from __future__ import annotations

import torch
from tests.policy.scripted_vllm import ScriptedVllm

from memograd.grpo.batch import Draw
from memograd.grpo.drawing import Episodes
from memograd.policy.language_model import LanguageModel
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import VllmServer
from memograd.rollout import Message
from memograd.rollout.episode import Limits, Step
from memograd.rollout.lockstep import run_in_lockstep
from memograd.rollout.token_tree import grow_trees
from memograd.rollout.types import Scenario

DRAW = "/v1/completions"


class Moving:
    """An episode of three turns, in whose first one the learner moves and is published."""

    tools = ()

    def __init__(self, policy: LanguageModel) -> None:
        self.policy = policy
        self.turns = 0

    def reset(self) -> list[Message]:
        return [Message(role="user", content="say")]

    def step(self, action: str) -> Step:
        self.turns += 1
        if self.policy.version == 0:
            generator = torch.Generator().manual_seed(7)
            with torch.no_grad():
                for weight in self.policy.parameters():
                    weight.add_(torch.randn(weight.shape, generator=generator) * 0.1)
            self.policy.publish(1)
        seen = Message(role="user", content=f"again {self.turns}")
        return Step((seen,), reward=0.0, done=self.turns == 3)

    def finish(self) -> None:
        return None


def test_an_episode_ends_on_the_version_that_began_it(
    tiny_model_folder, tiny_policy, chat_of, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(LanguageModel, "end_ids", property(lambda self: frozenset(range(60, 258))))
    server = ScriptedVllm(tiny_model_folder)
    pool = ServerPool([VllmServer(server.url, seconds=60)], tmp_path / "adapters", patience=1)
    tiny_policy.remote = RemoteSampler(tiny_policy, pool, max_staleness=1)
    try:
        tiny_policy.publish(0)
        (group,) = run_in_lockstep(
            tiny_policy.in_turns(),
            chat_of(tiny_policy.tokenizer),
            [[Moving(tiny_policy), Moving(tiny_policy)]],
            rollout_ids=[["a", "b"]],
            limits=Limits(max_turns=3),
            temperature=0.9,
            max_completion_length=4,
            generator=torch.Generator().manual_seed(0),
        )
        asked = [body for path, body in server.asked if path == DRAW]
        (name,) = {body["model"] for body in asked}
        assert name.endswith("-0") and tiny_policy.version == 1
        assert all(isinstance(token, int) for body in asked for token in body["prompt"])
        for rollout in group:
            assert len(rollout.turns) == 3
            for turn in rollout.turns:
                (span,) = turn.versions
                assert (span.version, span.tokens) == (0, len(turn.action_ids))
        # Scored under what drew it nothing but rounding is left; under the newest there is more.
        trees = grow_trees([group]).trees
        drawn = torch.tensor([logprob for one in group for turn in one.turns
                              for logprob in turn.logprobs])  # fmt: skip

        def gap(scores) -> float:
            return float((scores.logprobs_RT[scores.mask_RT] - drawn).abs().max())

        assert gap(tiny_policy.logprobs_of(0, trees, temperature=0.9)) < 1e-4
        with torch.no_grad():
            assert gap(tiny_policy.logprobs(trees, temperature=0.9)) > 1e-2
    finally:
        tiny_policy.remote.close()
        tiny_policy.remote = None
        server.stop()


class MovingTask:
    """Two of them."""

    def __init__(self, policy: LanguageModel) -> None:
        self.policy = policy

    def episodes(self, scenario: Scenario, count: int) -> list[Moving]:
        return [Moving(self.policy) for _ in range(count)]


def test_episodes_end_where_servers_take_no_more(
    tiny_model_folder, tiny_policy, chat_of, monkeypatch, tmp_path
) -> None:
    """Their --max-model-len may be below what the model was made for, which limits begin as."""
    monkeypatch.setattr(LanguageModel, "end_ids", property(lambda self: frozenset(range(258))))
    server = ScriptedVllm(tiny_model_folder)
    pool = ServerPool([VllmServer(server.url, seconds=60)], tmp_path / "adapters", patience=1)
    made_for = tiny_policy.context_length
    tiny_policy.remote = RemoteSampler(tiny_policy, pool, max_staleness=1)
    try:
        tiny_policy.publish(0)
        drawing = Episodes(
            tiny_policy,
            chat_of(tiny_policy.tokenizer),
            MovingTask(tiny_policy),
            limits=Limits(max_turns=3, max_tokens=made_for),
            num_generations=2,
            max_completion_length=4,
        )
        generator = torch.Generator().manual_seed(0)
        scenario = Scenario("q", ({"role": "user", "content": "say"},), {})
        opening = len(drawing([scenario], Draw(1, 0.9, generator)).trees[0].prompt)
        pool.longest = opening + 10  # one action of 4 tokens, and no observation with another
        assert tiny_policy.context_length == pool.longest < made_for
        attempts = drawing([scenario], Draw(2, 0.9, generator))
        for rollout in attempts.groups[0].rollouts:
            assert (len(rollout.turns), rollout.stop_reason) == (1, "max_tokens")
    finally:
        tiny_policy.remote.close()
        tiny_policy.remote = None
        server.stop()
    assert tiny_policy.context_length == made_for
