"""`memograd optimize memory-qa`: prompts searched, saved, loaded and measured beside weights.

    training questions --> optimiser x seed --> programs/simba-0.json
                               | calls, through the gateway, counted in traces.db
    held-out questions --> each program, on the model alone and with a run's adapter --> table

Invariants: what is wrong is refused before the folder is made; no held-out question is ever seen by
an optimiser, nor conversation of one by a run that is measured; a folder that holds a table holds
the programs, the answers and the calls behind it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memograd.config.unread import refuse_unread
from memograd.data import ConversationSplit
from memograd.errors import BadInput
from memograd.evaluation import Judge
from memograd.gateway.local import AnswerSampling, LocalBackend
from memograd.gateway.store import TraceStore
from memograd.gateway.upstream import UpstreamBackend
from memograd.grpo import RunFolder
from memograd.grpo.run_folder import unnamed
from memograd.memory.chat.chat_model import OpenAIChatModel
from memograd.optimize.endpoints import Caller, CountedModel, Spent, served
from memograd.optimize.optimizers import OptimizerPlan, optimised, plan
from memograd.optimize.program import MemoryQAProgram, load_program
from memograd.optimize.settings import EndpointConfig, OptimizeConfig
from memograd.optimize.table import GRPO, UNTRAINED, TableRow, answers_of, write_results
from memograd.policy.model_policy import ModelPolicy
from memograd.rewards import WeightedReward
from memograd.rollout.types import Scenario
from memograd.tasks.base.policy import load_policy
from memograd.tasks.base.progress import console
from memograd.tasks.base.recipe import parse_rewards
from memograd.tasks.memory_qa.recipe import policy_to_measure
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.memory_qa.setup import (
    MemoryQASetup,
    available_conversations,
    check_keeping,
    choose_split,
    thinned,
)

PROMPT_KEY, EVALUATION_KEY = "MEMOGRAD_PROMPT_KEY", "MEMOGRAD_EVALUATION_KEY"
PROPOSAL_TOKENS = 2048
"""Tokens of a proposal, at most."""


@dataclass(frozen=True)
class _Questions:
    train: list[Scenario]
    held_out: list[Scenario]


@dataclass(frozen=True)
class _Trained:
    """A run's adapter. rollouts: how many attempts it was trained with."""

    config: MemoryQATrainConfig
    checkpoint: Path
    rollouts: int


def optimize(config: OptimizeConfig) -> Path:
    """Optimise, save, load and measure; gives the folder with `comparison.md`.

    Raises:
        BadInput: settings, data, programs or runs do not fit.
        MemogradError: a call failed.
    """
    refuse_unread(config)
    settings = config.questions()
    rewards = parse_rewards(config.rewards)
    split = _split(settings)
    plans: dict[str, OptimizerPlan] = {
        name: _plan(name, config, split) for name in config.optimizer
    }
    saved = _saved(config)
    names = [*config.optimizer, *saved]
    files = sum(map(len, saved.values()))
    if len({*names, UNTRAINED, GRPO}) < len(names) + 2 or files < len(config.program):
        raise BadInput(
            f"A row of the table would have the name of two: {', '.join(names)}; name the files of "
            "programs otherwise."
        )
    for file in config.program:
        load_program(file)
    trained = [_trained(run, config, split) for run in config.run]
    out = config.out or unnamed("optimize")
    if out.exists() and any(out.iterdir()):
        raise BadInput(f"The folder {out} is not empty: name a new one by out=.")
    judge = _judge(config.evaluation, out)
    check_keeping(settings.memory, split.eval)
    policy = load_policy(settings, None)
    MemoryQASetup(settings, policy, out / "memory.db").check([*split.train, *split.eval])

    (out / "programs").mkdir(parents=True)
    (out / "config.json").write_text(config.model_dump_json(indent=2), encoding="utf-8")
    store = TraceStore(f"sqlite:///{out / 'traces.db'}")
    try:
        questions = _questions(settings, policy, split, out)
        console.print(
            f"{len(questions.train)} questions to optimise on, {len(questions.held_out)} held out"
        )
        table = _Comparison(config, questions, store, saved)
        table.search(plans, rewards, policy, out / "programs")
        for place, one in enumerate(trained):
            table.measure_trained(one, place)
    finally:
        store.close()
    console.print(write_results(list(table.rows.values()), questions.held_out, judge, out))
    return out


def _split(settings: MemoryQATrainConfig) -> ConversationSplit:
    available = available_conversations(settings.data, settings.seed)
    chosen = choose_split(available, settings.train, settings.eval)
    return ConversationSplit(
        thinned(chosen.train, settings.max_train, settings.seed),
        thinned(chosen.eval, settings.max_eval, settings.seed),
    )


def _plan(name: str, config: OptimizeConfig, split: ConversationSplit) -> OptimizerPlan:
    return plan(name, config.budget, sum(len(one.questions) for one in split.train))


def _saved(config: OptimizeConfig) -> dict[str, list[Path]]:
    """The files of saved programs by the names of their rows: simba-0.json and simba-1.json are one
    row where the seeds are 0 and 1, as an optimisation writes them; others are one each."""
    files = {file.stem: file for file in config.program}
    saved: dict[str, list[Path]] = {}
    for stem, file in files.items():
        name, _, _ = stem.rpartition("-")
        of_seeds = [f"{name}-{seed}" for seed in config.seeds]
        if len(of_seeds) > 1 and stem in of_seeds and all(one in files for one in of_seeds):
            saved[name] = [files[one] for one in of_seeds]
        else:
            saved[stem] = [file]
    return saved


def _trained(run: Path, config: OptimizeConfig, split: ConversationSplit) -> _Trained:
    own, checkpoint = policy_to_measure(run, split.eval)
    if own.model != config.model:
        raise BadInput(f"{run} trained the model {own.model}: set model={own.model}.")
    steps = len(RunFolder.open(run).read_metrics())
    rollouts = steps * own.prompts_per_step * own.num_generations
    return _Trained(own.model_copy(update={"device": config.device}), checkpoint, rollouts)


def _judge(endpoint: EndpointConfig, out: Path) -> Judge | None:
    if endpoint.model is None:
        return None
    key = os.environ.get(EVALUATION_KEY) or "none"
    chat = OpenAIChatModel(endpoint.model, api_key=key, base_url=endpoint.url)
    return Judge(chat, "strict", cache=out / "verdicts.jsonl")


def _questions(
    settings: MemoryQATrainConfig, policy: ModelPolicy, split: ConversationSplit, out: Path
) -> _Questions:
    setup = MemoryQASetup(settings, policy, out / "memory.db")
    setup.remember([*split.train, *split.eval])
    return _Questions(setup.scenarios(split.train), setup.scenarios(split.eval))


@dataclass
class _Comparison:
    """The rows of the table, and the files of the programs by the names of their rows."""

    config: OptimizeConfig
    questions: _Questions
    store: TraceStore
    programs: dict[str, list[Path]]
    rows: dict[str, TableRow] = field(default_factory=dict)

    def search(
        self,
        plans: dict[str, OptimizerPlan],
        rewards: Sequence[WeightedReward],
        policy: ModelPolicy,
        folder: Path,
    ) -> None:
        """Optimise into `folder`, and add the rows without an adapter."""
        config, rows = self.config, self.rows
        with (
            _answering(config, policy, self.store) as model,
            _proposing(config, self.store) as proposer,
        ):
            rows[UNTRAINED] = TableRow(UNTRAINED)
            self._measure(rows[UNTRAINED], MemoryQAProgram(), 0, model)
            for name, sized in plans.items():
                rows[name], self.programs[name] = TableRow(name), []
                for seed in config.seeds:
                    file = folder / f"{name}-{seed}.json"
                    with (
                        model.caller(name, seed, temperature=0.0) as asked,
                        _caller(proposer, name, seed) as writer,
                    ):
                        program, unread = optimised(
                            sized,
                            self.questions.train,
                            rewards,
                            asked=asked,
                            proposer=writer,
                            demos=config.demos,
                            seed=seed,
                            threads=config.threads,
                        )
                        rows[name].calls.append(asked.spent.calls)
                        rows[name].unread.append(unread)
                        rows[name].proposals.append(Spent() if writer is None else writer.spent)
                    program.save(str(file))
                    self.programs[name].append(file)
                    console.print(f"{file}: {rows[name].calls[-1]} of {config.budget} calls")
            for name, files in self.programs.items():
                row = rows.setdefault(name, TableRow(name))
                for seed, file in zip(config.seeds, files, strict=False):
                    self._measure(row, load_program(file), seed, model)

    def measure_trained(self, trained: _Trained, place: int) -> None:
        """Add the adapter of a run, and it with each program, to the rows of all seeds."""
        config, rows = self.config, self.rows
        policy = load_policy(trained.config, trained.checkpoint)
        every = len(config.run) == 1
        with _answering(config, policy, self.store) as model:
            row = rows.setdefault(GRPO, TableRow(GRPO))
            row.rollouts.append(trained.rollouts)
            self._measure(row, MemoryQAProgram(), config.seeds[place], model)
            for name, files in self.programs.items():
                both = rows.setdefault(f"{GRPO} + {name}", TableRow(f"{GRPO} + {name}"))
                both.calls, both.unread = rows[name].calls, rows[name].unread
                both.proposals = rows[name].proposals
                both.rollouts.append(trained.rollouts)
                of_seed = files if every or len(files) == 1 else [files[place]]
                for file in of_seed:
                    self._measure(both, load_program(file), config.seeds[place], model)

    def _measure(
        self, row: TableRow, program: MemoryQAProgram, seed: int, model: CountedModel
    ) -> None:
        with model.caller(f"measure {row.name}", seed, temperature=0.0) as asked:
            row.answered.append(
                answers_of(
                    program,
                    self.questions.held_out,
                    asked,
                    method=row.name,
                    threads=self.config.threads,
                )
            )


@contextlib.contextmanager
def _answering(
    config: OptimizeConfig, policy: ModelPolicy, store: TraceStore
) -> Iterator[CountedModel]:
    """The local model behind a gateway."""
    longest = config.max_completion_length
    backend = LocalBackend(policy, sampling=AnswerSampling(max_tokens=longest))
    with served(backend, store, threads=config.threads, most_tokens=longest) as model:
        yield model


@contextlib.contextmanager
def _proposing(config: OptimizeConfig, store: TraceStore) -> Iterator[CountedModel | None]:
    """The model that writes proposals behind a gateway, where there is one."""
    endpoint = config.prompt
    if endpoint.model is None or not config.optimizer:
        yield None
        return
    key = os.environ.get(PROMPT_KEY, "")
    backend = UpstreamBackend(endpoint.url, endpoint.model, api_key=key)
    with served(backend, store, threads=config.threads, most_tokens=PROPOSAL_TOKENS) as model:
        yield model


@contextlib.contextmanager
def _caller(proposer: CountedModel | None, name: str, seed: int) -> Iterator[Caller | None]:
    if proposer is None:
        yield None
        return
    with proposer.caller(f"{name} proposals", seed, temperature=1.0) as caller:
        yield caller
