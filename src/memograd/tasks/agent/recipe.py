"""Agents from end to end: an environment with tools, rows to reset it with, any chat model.

A job has rows, environments, rewards, a policy whose chat template shows tools, scenarios, limits;
the held-out rows are played before and after. A task that brings rows of its own (`sql`) puts its
job together by `assemble`, too. The command line calls it as `memograd train agent`;
`docs/episodes.md` is the user's guide.

    my_env.py:GuessNumber           one environment for all rows
    my_env.py:GuessNumber,LookUp    several: the rows' column environment has one of these names
    my_package.envs:GuessNumber     from a module

Invariants: whatever is wrong with data, environment, rewards, template or limits is one `BadInput`
sentence before there is a run folder: an environment that cannot be loaded, made or used, and a
mixture of those that reward and those that do not, too. No row that is evaluated on is trained on.
Held-out rows are played from the same random state before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memograd.config import TrainConfig
from memograd.errors import RAISED_BY_USERS, BadInput
from memograd.grpo import RunFolder
from memograd.grpo.drawing import Episodes
from memograd.grpo.run_state import seed_everything
from memograd.policy.model_policy import ModelPolicy
from memograd.rewards import ENVIRONMENT, ENVIRONMENT_COLUMN
from memograd.rewards.spec import split_entries
from memograd.rewards.user_code import function_of, load_file, load_module, needed_columns
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.environment import EnvironmentFactory, EnvironmentTask, describe_tools
from memograd.rollout.episode import Limits, ToolSchema
from memograd.rollout.lockstep import run_in_lockstep
from memograd.rollout.tool_calls import read_template, use_tool_template
from memograd.rollout.types import Message, Rollout, Scenario
from memograd.tasks.agent.measure import (
    MeasuredEpisodes,
    held_out_episodes,
    measured,
    play_in_batches,
)
from memograd.tasks.agent.settings import AgentTrainConfig
from memograd.tasks.base.policy import load_policy, room_for_prompt
from memograd.tasks.base.progress import console
from memograd.tasks.base.recipe import (
    Job,
    Recipe,
    located,
    parse_rewards,
    policy_job,
)
from memograd.tasks.text.measure import describe_dropped, describe_rewards
from memograd.tasks.text.recipe import TextJob, rewards_of_rows, short_enough
from memograd.tasks.text.rows import (
    TextRow,
    told_apart,
)


@dataclass(frozen=True)
class AgentJob(TextJob):
    """Everything that is trained and measured.

    `template_note`: a sentence where the chat template is not the model's own.
    """

    chat: ChatIds
    task: EnvironmentTask
    limits: Limits
    template_note: str | None

    def drawing(self, config: TrainConfig) -> Episodes:
        """Episodes to learn from, as the settings say."""
        return Episodes(
            self.policy,
            self.chat,
            self.task,
            limits=self.limits,
            num_generations=config.num_generations,
            max_completion_length=config.max_completion_length,
        )

    def play(self, config: TrainConfig, label: str) -> list[Rollout]:
        """One greedy episode of every held-out row."""

        def attempt(
            chosen: Sequence[Scenario], names: Sequence[Sequence[str]]
        ) -> Sequence[Sequence[Rollout]]:
            return run_in_lockstep(
                self.policy.in_turns(),
                self.chat,
                [self.task.episodes(scenario, 1) for scenario in chosen],
                rollout_ids=names,
                limits=self.limits.within(self.policy.context_length),
                temperature=0.0,
                max_completion_length=config.max_completion_length,
                generator=None,
            )

        seed_everything(config.seed)
        return play_in_batches(self.evaluation, config.eval_batch_size, label, attempt)


def settled(config: AgentTrainConfig) -> AgentTrainConfig:
    """The given settings with every path absolute and the environment's own reward by its name.

    Raises:
        BadInput: nothing would reward the agent.
    """
    config = located(config)
    if config.resume is not None or config.episodes.environment is None:
        return config
    return config.model_copy(update={"rewards": _rewards(config)})


def prepare(config: AgentTrainConfig, checkpoint: Path | None) -> AgentJob:
    """Read the rows, make the environments and open the policy, with the checkpoint's adapter.

    Raises:
        BadInput: something is missing or does not fit, or no prompt is short enough.
    """
    if config.data is None:
        raise BadInput("An agent needs rows to train on; give --data FILE.jsonl.")
    if config.episodes.environment is None:
        raise BadInput("An agent needs an environment; give --environment my_env.py:ClassName.")
    train, evaluation = told_apart(config.data, config.text, by_columns=True)
    files = (config.data, config.text.eval_data or config.data)
    return assemble(config, checkpoint, train, evaluation, files)


def assemble(
    config: AgentTrainConfig,
    checkpoint: Path | None,
    train: Sequence[TextRow],
    evaluation: Sequence[TextRow],
    files: tuple[Path, Path],
) -> AgentJob:
    """The job of these rows, which come from these `files`, in the environment of the settings.

    Raises:
        BadInput: something does not fit, or no prompt is short enough.
    """
    environments = load_environments(str(config.episodes.environment))
    rewards = rewards_of_rows(config, train, evaluation, files, (ENVIRONMENT_COLUMN,))
    made = {name: factory() for name, factory in environments.by_name.items()}
    tools = [describe_tools(environment) for environment in made.values()]
    for rows in (train, evaluation):
        _check_environments(rows, environments)
        _check_reset(made, rows)
    if any(tools) and config.episodes.chat_template is not None:
        read_template(config.episodes.chat_template)
    policy = load_policy(config, checkpoint)
    note = None
    if any(tools):
        note = use_tool_template(policy.tokenizer, config.episodes.chat_template)
        _check_template(policy, checkpoint)
    limits = _limits(config, policy)
    chat = ChatIds(policy.tokenizer, end_ids=policy.end_ids)
    prompt_limit = room_for_prompt(limits.max_tokens or policy.context_length, config)
    kept = short_enough(
        (train, evaluation),
        string_prompts="chat",
        encode=lambda prompt: _longest(chat, prompt, tools),
        limit=prompt_limit,
        counted="tokens, tools included",
        mend="raise episodes.max_tokens or max_prompt_length, or lower max_completion_length",
    )
    task = EnvironmentTask(
        environments.factory, chat_template=str(policy.tokenizer.chat_template or "")
    )
    return AgentJob(policy, rewards, *kept, prompt_limit, chat, task, limits, note)


def _rewards(config: AgentTrainConfig) -> str:
    """The rewards as given, with the environment's own in front unless it is named already."""
    rewarding = load_environments(str(config.episodes.environment)).rewarding
    if not config.rewards:
        if not rewarding:
            raise BadInput(
                f"Nothing rewards the agent: {config.episodes.environment} has no get_reward; give "
                "it one, or name rewards by --rewards."
            )
        return ENVIRONMENT
    named = any(reward.name == ENVIRONMENT for reward in parse_rewards(config.rewards))
    return f"{ENVIRONMENT},{config.rewards}" if rewarding and not named else config.rewards


def _check_environments(rows: Sequence[TextRow], environments: Environments) -> None:
    """With several environments, every row says which one it is for."""
    if len(environments.by_name) == 1:
        return
    for row in rows:
        name = row.columns.get("environment")
        if name not in environments.by_name:
            raise BadInput(
                f"{row.place}: environment is {name!r}, not one of "
                f"{', '.join(environments.by_name)}."
            )


def _check_reset(made: Mapping[str, Any], rows: Sequence[TextRow]) -> None:
    """Every environment can be given what its `reset` asks of a row."""
    if not rows:
        return
    given = {"prompt", *rows[0].columns}
    if len(made) > 1:
        given.discard("environment")  # which says who is asked, and is not passed on
    for name, environment in made.items():
        missing = [one for one in needed_columns(environment.reset) if one not in given]
        if missing:
            raise BadInput(
                f"reset of the environment {name} asks for {', '.join(missing)}, and the rows have "
                f"only {', '.join(sorted(given))}: add the column, or give the parameter a default."
            )


def _limits(config: AgentTrainConfig, policy: ModelPolicy) -> Limits:
    episodes, longest = config.episodes, policy.context_length
    if episodes.max_tokens is not None and episodes.max_tokens > longest:
        raise BadInput(
            f"episodes.max_tokens={episodes.max_tokens} is more than the {longest} tokens that "
            f"{policy.name} was made for; lower it, or leave it out."
        )
    return Limits(
        max_turns=episodes.max_turns,
        max_tokens=episodes.max_tokens or longest,
        max_seconds=episodes.max_seconds,
        max_failed_turns=episodes.max_failed_turns,
    )


def _check_template(policy: ModelPolicy, checkpoint: Path | None) -> None:
    """A run goes on with the chat template that it began with."""
    saved = None if checkpoint is None else checkpoint / "chat_template.jinja"
    if saved is None or not saved.is_file():
        return
    if saved.read_text(encoding="utf-8") != policy.tokenizer.chat_template:
        raise BadInput(
            f"The chat template is not the one of {saved}, which the run began with; set "
            "episodes.chat_template's file back, or begin a new run."
        )


def _longest(
    chat: ChatIds, prompt: str | Sequence[Message], tools: Sequence[Sequence[ToolSchema]]
) -> tuple[int, ...]:
    """The opening's ids with the tools of whichever environment has the longest description."""
    messages = [Message(role="user", content=prompt)] if isinstance(prompt, str) else prompt
    return max((chat.first(messages, those).ids for those in tools), key=len)


@dataclass(frozen=True)
class Environments:
    """Factories by the name of their class, and whether what they make rewards by itself."""

    by_name: dict[str, EnvironmentFactory]
    rewarding: bool

    @property
    def factory(self) -> EnvironmentFactory | dict[str, EnvironmentFactory]:
        """As `EnvironmentTask` takes it."""
        return self.by_name if len(self.by_name) > 1 else next(iter(self.by_name.values()))


def load_environments(spec: str) -> Environments:
    """Load every class that `spec` names and make one instance of each to look at.

    Raises:
        BadInput: one cannot be loaded or made, has no `reset`, or only some have a `get_reward`.
    """
    found: dict[str, EnvironmentFactory] = {}
    rewarding: dict[str, bool] = {}
    source = ""
    for entry in split_entries(spec):
        named, _, name = entry.rpartition(":")
        source, name = (named or source).strip(), name.strip()
        if not source or not name:
            raise BadInput(
                f'The environment "{entry}" lacks a file or a class; write my_env.py:ClassName.'
            )
        if name in found:
            raise BadInput(f"episodes.environment={spec} names {name} twice.")
        found[name] = _load(source, name)
        rewarding[name] = callable(getattr(_made(found[name], name), "get_reward", None))
    if len(set(rewarding.values())) > 1:
        without = next(name for name, rewards in rewarding.items() if not rewards)
        raise BadInput(
            f"The environment {without} has no get_reward, but another one has; give all of them "
            "one, or none and reward by --rewards."
        )
    return Environments(found, any(rewarding.values()))


def _load(source: str, name: str) -> Callable[[], object]:
    kind = "environment"
    module = load_file(Path(source), kind) if source.endswith(".py") else load_module(source, kind)
    factory: Callable[[], object] = function_of(module, name, kind)
    return factory


def _made(factory: EnvironmentFactory, name: str) -> object:
    try:
        instance = factory()
    except RAISED_BY_USERS as error:
        raise BadInput(
            f"The environment {name} cannot be made without arguments: it raised "
            f"{type(error).__name__}: {error}."
        ) from error
    if not callable(getattr(instance, "reset", None)):
        raise BadInput(f"The environment {name} has no method reset; give it reset(self, **row).")
    return instance


def make_job(config: AgentTrainConfig, checkpoint: Path | None) -> Job[MeasuredEpisodes]:
    """What is trained in which episodes, and how it is measured."""
    job = prepare(config, checkpoint)
    return policy_job(
        job.policy,
        job.rewards,
        lambda world: job.train,
        config,
        held_out_episodes(
            job.evaluation,
            lambda label: measured(job.rewards, job.evaluation, job.play(config, label)),
        ),
        describe=partial(_describe, job),
        drawing=job.drawing(config),
    )


def _describe(job: AgentJob, run: RunFolder) -> None:
    """Say what is trained on and by what, and write down which rows were left out."""
    describe_rewards(job.rewards)
    describe_dropped(job.dropped, job.prompt_limit, run.path)
    if job.template_note is not None:
        console.print(job.template_note)
    console.print(
        f"training {job.policy.name} on {len(job.train)} rows, {len(job.evaluation)} held out, at "
        f"most {job.limits.max_turns} turns each, on {job.policy.device.type}"
    )


RECIPE: Recipe[AgentTrainConfig, MeasuredEpisodes] = Recipe(make_job, console, settled)
