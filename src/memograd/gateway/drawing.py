"""Training any agent: the trainer's scenarios are attempted by agents at a gateway over the policy.

    trainer ──scenarios──> ServedAgent ──G attempts each──> agents ──chat──> gateway ──> policy
       <──Attempts: rollouts with token rows, rewards in them──────── trace store <───────┘

The gateway runs in this process while a step is drawn and rests while the policy learns. It forces
the temperature that the loss is computed for, and the whole distribution; an agent that asks for
another gets that. Every rollout's calls are drawn from a seed of its own, which comes from the
trainer's generator.

Invariants: a group is the attempts at its scenario, in order, whichever agents finish first; the
same generator draws the same rollouts again, for agents whose own calls come in the same order, up
to the rounding of matrix products; an attempt without a reward is an error that names it; of two
who let it play at once (one measures while a thread draws ahead) one waits for the other.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput
from memograd.gateway.admission import GatewayLimits
from memograd.gateway.agents import Agent, AgentAttempt, Running, run_agents
from memograd.gateway.app import create_app
from memograd.gateway.local import AnswerSampling, LocalBackend
from memograd.gateway.store import TraceStore
from memograd.gateway.traces_to_rollouts import rollout_of_trace
from memograd.grpo.batch import Draw, rollout_ids
from memograd.grpo.drawing import Attempts, attempts_of
from memograd.policy.model_policy import ModelPolicy
from memograd.rollout.async_calls import wait_for
from memograd.rollout.episode import episode_metrics
from memograd.rollout.types import Group, Rollout, Scenario
from memograd.web.running import running

if TYPE_CHECKING:
    import torch


class ServedAgent:
    """A `memograd.grpo.drawing.Drawing` that lets an agent attempt scenarios; close it at the end.

    The agent's task is the scenario's columns with `id` and `prompt`. `optimize_agents`: whose
    calls are trained, all if None. `chat_template`: as `LocalBackend` takes it.

    Raises BadInput where servers would exchange the weights in the middle of an attempt.
    """

    def __init__(
        self,
        policy: ModelPolicy,
        agent: Agent,
        store: TraceStore,
        *,
        num_generations: int,
        max_completion_length: int,
        optimize_agents: Collection[str] | None = None,
        agents: Running | None = None,
        chat_template: Path | None = None,
    ) -> None:
        servers = policy.remote
        if servers is not None and servers.pool.holds_one and servers.keeps_older:
            raise BadInput(
                "All calls of an attempt are drawn by one version, and a server of whole weights "
                "(tuning=full) holds the newest only: use sampler.max_staleness=0."
            )
        self._agent = agent
        self._playing = threading.Lock()
        self._store = store
        self._size = num_generations
        self._longest = max_completion_length
        self._optimize_agents = optimize_agents
        self._running = agents or Running()
        self._backend = LocalBackend(policy, chat_template=chat_template)
        self._backend.engine.rest()
        self._open = contextlib.ExitStack()
        self._open.callback(self._backend.close)
        # Nobody but the agents may ask, since the model rests between steps.
        app = create_app(
            self._backend,
            store,
            key=secrets.token_urlsafe(24),
            limits=GatewayLimits(max_calls=100_000, call_seconds=self._running.seconds),
        )
        self._url = self._open.enter_context(running(app))

    def __enter__(self) -> ServedAgent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the gateway. Closing twice is harmless."""
        self._open.close()

    def __call__(self, scenarios: Sequence[Scenario], draw: Draw) -> Attempts:
        """Run the agent once for each rollout of all groups.

        Raises AgentFailed and CannotTrain, both naming the rollout.
        """
        names = rollout_ids(scenarios, draw.sizes_of(scenarios, self._size), draw)
        played = self.play(scenarios, names, temperature=draw.temperature, generator=draw.generator)
        return attempts_of([Group(*one) for one in zip(scenarios, played, strict=True)])

    def metrics(self, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        """Stop reasons, turns, rows, mismatches."""
        return episode_metrics(rollouts)

    def play(
        self,
        scenarios: Sequence[Scenario],
        names: Sequence[Sequence[str]],
        *,
        temperature: float,
        generator: torch.Generator | None,
    ) -> list[tuple[Rollout, ...]]:
        """Attempts at each scenario, as many as it has names; temperature 0 is greedy."""
        import torch

        flat = [name for group in names for name in group]
        seeds = torch.randint(0, 2**48, (len(flat),), generator=generator).tolist()
        tasks = [_task(one) for one, group in zip(scenarios, names, strict=True) for _ in group]
        attempts = [AgentAttempt(*each) for each in zip(tasks, flat, seeds, strict=True)]
        with self._playing:
            version, ids = self._played(attempts, temperature)
        found = iter(
            rollout_of_trace(
                self._store.rollout(rollout_id),
                self._store.calls(rollout_id),
                temperature=temperature,
                optimize_agents=self._optimize_agents,
                self_rewarding=self._running.self_rewarding,
                name=name,
                version=version,
            )
            for rollout_id, name in zip(ids, flat, strict=True)
        )
        return [tuple(next(found) for _ in group) for group in names]

    def _played(
        self, attempts: Sequence[AgentAttempt], temperature: float
    ) -> tuple[int | None, list[str]]:
        """The version that answered, and the ids of the rollouts. One call at a time: it sets how
        all answers are drawn, and ends what is left of them."""
        forced = AnswerSampling(temperature=temperature, max_tokens=self._longest, forced=True)
        self._backend.weights_changed(forced)
        version = self._backend.drawn_by
        try:
            ids: list[str] = wait_for(
                run_agents(
                    self._agent,
                    attempts,
                    self._store,
                    self._url,
                    running=self._running,
                    policy_version=self._backend.policy_version,
                )
            )
        finally:
            self._backend.engine.rest()
        return version, ids


def _task(scenario: Scenario) -> dict[str, Any]:
    return {**scenario.columns, "id": scenario.id, "prompt": scenario.prompt}
