"""Agents of any framework from end to end: unchanged code, rows to try it on, any chat model.

    settings.served ──> Serving.opened(run folder): gateway, traces.db ──> drawn from, measured with

The agent attempts each row at a gateway over the policy, the calls of the chosen agents are
trained, and the held-out rows are attempted at temperature 0 before and after. A job is put
together before it has a run folder, and its traces belong there; so a `Serving` is made with the
job and opened when the folder is there. `memograd train served-agent` calls it; `docs/gateway.md`
is the user's guide.

Invariants: the gateway is up only within `opened`, and is closed however a run ends. A run that was
killed and resumed asks what the run that never stopped would have asked, with the same seeds; with
`served.concurrency=1` and an agent that repeats itself its numbers are the same too, and otherwise
up to the rounding of calls decoded together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memograd.config import TrainConfig
from memograd.errors import BadInput, MemogradError, need_packages
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw
from memograd.grpo.drawing import Attempts
from memograd.policy.model_policy import ModelPolicy
from memograd.rewards import ENVIRONMENT_COLUMN, WeightedReward, needed_columns
from memograd.rewards.compose import environment
from memograd.rollout.episode import episode_metrics
from memograd.rollout.tool_calls import read_template
from memograd.rollout.types import Rollout, Scenario
from memograd.tasks.agent.measure import (
    MeasuredEpisodes,
    held_out_episodes,
    measured,
    play_in_batches,
)
from memograd.tasks.agent.settings import ServedTrainConfig
from memograd.tasks.base.policy import load_policy
from memograd.tasks.base.progress import console
from memograd.tasks.base.recipe import Job, Recipe, located, policy_job
from memograd.tasks.text.measure import describe_rewards
from memograd.tasks.text.recipe import rewards_of_rows
from memograd.tasks.text.rows import TextRow, told_apart

if TYPE_CHECKING:
    from memograd.gateway.drawing import ServedAgent

TRACES = "traces.db"


class Serving:
    """A `memograd.grpo.drawing.Drawing` by the agent of `config.served`, within `opened` only.

    Raises:
        BadInput: there is no such agent, packages are missing, or the settings do not fit.
    """

    def __init__(self, config: ServedTrainConfig) -> None:
        need_packages(
            "Training an agent of your own", ("fastapi", "uvicorn", "sqlalchemy"), "gateway"
        )
        from memograd.gateway.agents import load_agent
        from memograd.gateway.store import TraceStore

        check_served(config)
        if config.served.store is not None:
            TraceStore(config.served.store).close()  # what is wrong with it is said now
        self._agent = load_agent(str(config.served.agent))
        self._config = config
        self._served: ServedAgent | None = None

    @contextmanager
    def opened(
        self, policy: ModelPolicy, rewards: Sequence[WeightedReward], folder: Path
    ) -> Iterator[None]:
        """Within this block there is a gateway over `policy`, whose traces are in `folder` or where
        the settings say."""
        from memograd.gateway.agents import Running
        from memograd.gateway.drawing import ServedAgent
        from memograd.gateway.store import TraceStore

        config, served = self._config, self._config.served
        store = TraceStore(served.store or f"sqlite:///{folder / TRACES}")
        try:
            with ServedAgent(
                policy,
                self._agent,
                store,
                num_generations=config.num_generations,
                max_completion_length=config.max_completion_length,
                optimize_agents=served.optimize_agents or None,
                agents=Running(
                    concurrency=served.concurrency,
                    seconds=served.seconds,
                    retries=served.retries,
                    self_rewarding=rewards_itself(rewards),
                    ends=tuple(served.ends),
                ),
                chat_template=config.episodes.chat_template,
            ) as self._served:
                yield
        finally:
            self._served = None
            store.close()

    def __call__(self, scenarios: Sequence[Scenario], draw: Draw) -> Attempts:
        """Run the agent once for each rollout of all groups."""
        return self._up()(scenarios, draw)

    def metrics(self, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        """Stop reasons, turns, rows, mismatches."""
        return episode_metrics(rollouts)

    def play(self, scenarios: Sequence[Scenario], label: str) -> list[Rollout]:
        """One attempt at each scenario at temperature 0."""
        import torch

        generator = torch.Generator().manual_seed(self._config.seed)
        attempt = partial(self._up().play, temperature=0.0, generator=generator)
        return play_in_batches(scenarios, self._config.eval_batch_size, label, attempt)

    def _up(self) -> ServedAgent:
        if self._served is None:
            raise MemogradError("The gateway is not up; attempts are made within `opened` only.")
        return self._served


def check_served(config: TrainConfig) -> None:
    """Raise BadInput for settings that an agent of the user's own does not go with."""
    if config.shard != "off":
        raise BadInput(
            "An agent is served by a whole model in each process; leave shard=off, or let "
            "memograd play the episodes (train agent)."
        )
    if config.stop:
        raise BadInput(
            "stop ends answers that memograd asks for, and a served agent asks by itself: leave"
            " it out, and let the agent give stop in its requests."
        )


def rewards_itself(rewards: Sequence[WeightedReward]) -> bool:
    """Whether one of the rewards is the agent's own, or is computed from it."""
    return any(
        reward.function is environment or ENVIRONMENT_COLUMN in needed_columns(reward.function)
        for reward in rewards
    )


@dataclass(frozen=True)
class ServedJob:
    """What is trained and measured, and the agent that does it."""

    policy: ModelPolicy
    rewards: list[WeightedReward]
    train: list[Scenario]
    evaluation: list[Scenario]
    serving: Serving

    def measure(self, label: str) -> MeasuredEpisodes:
        """How the agent fares on the held-out rows."""
        rollouts = self.serving.play(self.evaluation, label)
        return measured(self.rewards, self.evaluation, rollouts)


def settled(config: ServedTrainConfig) -> ServedTrainConfig:
    """The given settings with every path absolute; refused where no agent goes with them."""
    check_served(config)
    return located(config)


def make_job(config: ServedTrainConfig, checkpoint: Path | None) -> Job[MeasuredEpisodes]:
    """What is trained on which rows, and how it is measured."""
    job = prepare(config, checkpoint)
    return policy_job(
        job.policy,
        job.rewards,
        lambda world: job.train,
        config,
        held_out_episodes(job.evaluation, job.measure),
        describe=partial(_describe, job, config),
        drawing=job.serving,
        opened=partial(job.serving.opened, job.policy, job.rewards),
    )


def prepare(config: ServedTrainConfig, checkpoint: Path | None) -> ServedJob:
    """Load the agent, read the rows and open the policy, with the checkpoint's adapter.

    Raises:
        BadInput: something is missing or does not fit.
    """
    if config.served.agent is None:
        raise BadInput(
            "There is no agent to train; give --agent my_agent.py:run, or "
            "--agent 'exec:python my_agent.py'."
        )
    if config.data is None:
        raise BadInput("An agent needs rows to train on; give --data FILE.jsonl.")
    serving = Serving(config)
    train, evaluation = told_apart(config.data, config.text, by_columns=True)
    files = (config.data, config.text.eval_data or config.data)
    rewards = rewards_of_rows(config, train, evaluation, files, (ENVIRONMENT_COLUMN,))
    if config.episodes.chat_template is not None:
        read_template(config.episodes.chat_template)
    policy = load_policy(config, checkpoint)
    return ServedJob(policy, rewards, _scenarios(train), _scenarios(evaluation), serving)


def _scenarios(rows: Sequence[TextRow]) -> list[Scenario]:
    """Rows as they stand: what of them becomes a prompt is the agent's affair."""
    return [
        Scenario(row.id, (), row.columns, text=row.prompt)
        if isinstance(row.prompt, str)
        else Scenario(row.id, row.prompt, row.columns)
        for row in rows
    ]


def _describe(job: ServedJob, config: ServedTrainConfig, run: RunFolder) -> None:
    """Say who is trained on what, and by what."""
    describe_rewards(job.rewards)
    named = ", ".join(config.served.optimize_agents) or "all agents"
    console.print(
        f"training {job.policy.name} as {named} of {config.served.agent} on {len(job.train)} rows, "
        f"{len(job.evaluation)} held out, on {job.policy.device.type}"
    )


RECIPE: Recipe[ServedTrainConfig, MeasuredEpisodes] = Recipe(make_job, console, settled)
