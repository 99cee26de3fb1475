"""DSPy's optimisers, each on a plan of its calls and a draw of the questions.

They are told sizes (examples, candidates, steps), not calls. A plan is the sizes whose calls of the
answering model, counted as DSPy makes them, come nearest to the budget from below, so that all have
the same budget. The search of demonstrations is `BootstrapFewShotWithRandomSearch`, and SIMBA,
MIPROv2 and GEPA are DSPy's own, with its defaults where a plan says nothing. Without a model for
proposals SIMBA has one of its two moves: it adds demonstrations, and writes no rules.

Invariants: `calls` of a plan is the most that this optimiser makes with it, and at most the budget;
an optimiser sees training questions only, those that its seed drew; a question whose reward cannot
be computed ends it, though DSPy would count it as a bad answer.
"""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.teleprompt.simba_utils import append_a_demo

from memograd.errors import BadInput
from memograd.optimize.endpoints import Caller, FailedCalls, quiet
from memograd.optimize.program import MemoryQAProgram, examples
from memograd.rewards import WeightedReward, compute_rewards
from memograd.rollout.types import Scenario

CANDIDATES = 3
"""New programs of SIMBA in a step, and sets that the bootstrap search draws."""
SMALLEST = 4
"""Examples that a program is compared on, at least."""
MINIBATCH = 3
"""Examples that GEPA reflects on at a time, its own default."""
GEPA_COMPARISONS = 4
"""Programs that GEPA can compare, at least, so that it can choose."""
MIPRO_TRIALS = range(4, 13)
SIMBA_STEPS = range(1, 9)


@dataclass(frozen=True)
class BootstrapPlan:
    """`candidates` random searches over `demo_examples`, each compared on `examples` others."""

    examples: int
    candidates: int = CANDIDATES

    @property
    def calls(self) -> int:
        """Three fixed programs and the drawn ones are compared; all but two bootstrap first."""
        return (self.candidates + 3) * self.examples + (self.candidates + 1) * self.examples

    @property
    def needed(self) -> int:
        """Questions: some to draw demonstrations from, others to compare on."""
        return 2 * self.examples


@dataclass(frozen=True)
class SimbaPlan:
    """`steps` of `batch` examples, and a comparison of the winners on `examples`."""

    examples: int
    batch: int
    steps: int
    candidates: int = CANDIDATES

    @property
    def calls(self) -> int:
        """A step samples `candidates` answers an example, and compares one program more."""
        winners = min(self.steps + 1, self.candidates + 1)
        step = self.batch * self.candidates + self.batch * (self.candidates + 1)
        return self.steps * step + winners * self.examples

    @property
    def needed(self) -> int:
        """Questions."""
        return self.examples


@dataclass(frozen=True)
class MiproPlan:
    """`trials` on `examples`, with demonstrations bootstrapped from as many others."""

    examples: int
    trials: int
    candidates: int = CANDIDATES + 1

    @property
    def calls(self) -> int:
        """The program as it is and each trial are compared; two candidates bootstrap nothing."""
        return (1 + self.trials) * self.examples + (self.candidates - 2) * self.examples

    @property
    def needed(self) -> int:
        """Questions: some to draw demonstrations from, others to compare on."""
        return 2 * self.examples


@dataclass(frozen=True)
class GepaPlan:
    """Reflection on minibatches until `metric_calls`, with Pareto scores of `examples`."""

    examples: int
    budget: int

    @property
    def metric_calls(self) -> int:
        """When GEPA stops: it looks only between two rounds, so a whole round is left to it."""
        return self.budget - self.round

    @property
    def round(self) -> int:
        """Two minibatches and a comparison, and the same once more where it merges."""
        return 2 * (2 * MINIBATCH + self.examples)

    @property
    def calls(self) -> int:
        return self.budget

    @property
    def needed(self) -> int:
        """Questions: some to reflect on, others to compare on."""
        return 2 * self.examples


OptimizerPlan = BootstrapPlan | SimbaPlan | MiproPlan | GepaPlan


def plan(optimizer: str, budget: int, questions: int) -> OptimizerPlan:
    """The plan of an optimiser for so many calls and training questions.

    Raises:
        BadInput: the budget or the questions are too few for it.
    """
    best: OptimizerPlan | None = None
    for sized in _plans(optimizer, budget, questions):
        fits = sized.calls <= budget and sized.needed <= questions
        if fits and (best is None or sized.calls > best.calls):
            best = sized
    if best is None:
        raise BadInput(
            f"{optimizer} cannot be run with budget={budget} and {questions} training questions: "
            f"it needs at least {_LEAST_CALLS[optimizer]} calls and {2 * SMALLEST} questions."
        )
    return best


def _plans(optimizer: str, budget: int, questions: int) -> list[OptimizerPlan]:
    """Plans of sensible shapes, the smallest first; they need not fit."""
    sizes = range(SMALLEST, max(SMALLEST, min(questions, budget)) + 1)
    if optimizer == "bootstrap":
        return [BootstrapPlan(examples) for examples in sizes]
    if optimizer == "simba":
        # The final comparison sees twice what a step sees, where there are so many questions.
        return [
            SimbaPlan(max(batch, min(2 * batch, questions)), batch, steps)
            for batch in sizes
            for steps in SIMBA_STEPS
        ]
    if optimizer == "miprov2":
        return [MiproPlan(examples, trials) for examples in sizes for trials in MIPRO_TRIALS]
    return [
        GepaPlan(examples, budget)
        for examples in sizes
        if GepaPlan(examples, budget).metric_calls >= GEPA_COMPARISONS * examples
    ]


_LEAST_CALLS = {
    "bootstrap": BootstrapPlan(SMALLEST).calls,
    "simba": SimbaPlan(2 * SMALLEST, SMALLEST, 1).calls,
    "miprov2": MiproPlan(SMALLEST, MIPRO_TRIALS[0]).calls,
    "gepa": GEPA_COMPARISONS * SMALLEST + GepaPlan(SMALLEST, 0).round,
}


GOOD_ENOUGH = 0.5
"""Reward from which on an answer of the model itself may become a demonstration."""


def optimised(
    plan: OptimizerPlan,
    scenarios: Sequence[Scenario],
    rewards: Sequence[WeightedReward],
    *,
    asked: Caller,
    proposer: Caller | None,
    demos: int,
    seed: int,
    threads: int,
) -> tuple[MemoryQAProgram, int]:
    """The program that the plan's optimiser makes of the untouched one, by these scenarios.

    The number beside it is that of proposals which could not be read, and changed nothing.

    Raises:
        MemogradError: a call failed, or a reward could not be computed.
    """
    failed = FailedCalls()
    questions = examples(scenarios)
    random.Random(seed).shuffle(questions)
    questions = questions[: plan.needed]
    metric = _Metric(rewards, scenarios)
    prompt_model = None if proposer is None else proposer.lm
    with dspy.context(lm=asked.lm, callbacks=[failed], num_threads=threads), quiet(), _unprinted():
        compile_ = _compiler(plan, metric, prompt_model, demos, seed, threads)
        program = compile_(MemoryQAProgram(), questions)
    failed.check("The optimisation failed")
    metric.check()
    assert isinstance(program, MemoryQAProgram)
    return program, len(failed.unread)


class _Metric:
    """The total reward of an answer; what goes wrong here is told at the end."""

    def __init__(self, rewards: Sequence[WeightedReward], scenarios: Sequence[Scenario]) -> None:
        self._rewards = rewards
        self._scenarios = {scenario.id: scenario for scenario in scenarios}
        self._error: Exception | None = None

    def __call__(
        self, example: dspy.Example, prediction: Any, trace: Any = None, *more: Any
    ) -> float:
        try:
            return self._reward(example, prediction)
        except Exception as error:
            self._error = self._error or error
            raise

    def with_feedback(
        self,
        example: dspy.Example,
        prediction: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> dspy.Prediction:
        """As GEPA asks: what was wrong, in words."""
        score = self(example, prediction)
        said = f"The answer was: {prediction.answer}\nThe right answer is: {example.answer}"
        return dspy.Prediction(score=score, feedback=f"{said}\nThe score is {score:.2f}.")

    def check(self) -> None:
        """Raise what went wrong first."""
        if self._error is not None:
            raise self._error

    def _reward(self, example: dspy.Example, prediction: Any) -> float:
        scenario = self._scenarios[example.id]
        table = compute_rewards(
            self._rewards,
            rollout_ids=[scenario.id],
            prompts=[scenario.prompt],
            completions=[prediction.answer],
            columns={name: [value] for name, value in scenario.columns.items()},
        )
        return float(table.total[0])


def _compiler(
    plan: OptimizerPlan,
    metric: _Metric,
    prompt_model: dspy.LM | None,
    demos: int,
    seed: int,
    threads: int,
) -> Callable[[MemoryQAProgram, list[dspy.Example]], dspy.Module]:
    """What makes a program of a program and the plan's questions."""
    if isinstance(plan, BootstrapPlan):
        search = dspy.BootstrapFewShotWithRandomSearch(
            metric,
            max_bootstrapped_demos=demos,
            max_labeled_demos=demos,
            num_candidate_programs=plan.candidates,
            num_threads=threads,
            metric_threshold=GOOD_ENOUGH,
        )
        return lambda program, questions: search.compile(
            program, trainset=questions[: plan.examples], valset=questions[plan.examples :]
        )
    if isinstance(plan, SimbaPlan):
        simba = dspy.SIMBA(
            metric=metric,
            bsize=plan.batch,
            num_candidates=plan.candidates,
            max_steps=plan.steps,
            max_demos=demos,
            prompt_model=prompt_model,
            num_threads=threads,
        )
        if prompt_model is None:
            simba.strategies = [append_a_demo(simba.demo_input_field_maxlen)]
        return lambda program, questions: simba.compile(program, trainset=questions, seed=seed)
    if isinstance(plan, MiproPlan):
        mipro = dspy.MIPROv2(
            metric,
            prompt_model=prompt_model,
            auto=None,
            num_candidates=plan.candidates,
            max_bootstrapped_demos=demos,
            max_labeled_demos=demos,
            num_threads=threads,
            metric_threshold=GOOD_ENOUGH,
        )
        # MIPROv2 takes the seed 0 for none and would use its own.
        return lambda program, questions: mipro.compile(
            program,
            trainset=questions[: plan.examples],
            valset=questions[plan.examples :],
            num_trials=plan.trials,
            minibatch=False,
            seed=seed + 1,
        )
    gepa = dspy.GEPA(
        metric.with_feedback,
        max_metric_calls=plan.metric_calls,
        reflection_lm=prompt_model,
        num_threads=threads,
        seed=seed,
    )
    return lambda program, questions: gepa.compile(
        program, trainset=questions[: plan.examples], valset=questions[plan.examples :]
    )


@contextlib.contextmanager
def _unprinted() -> Iterator[None]:
    """DSPy prints its progress, and bars of it."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
