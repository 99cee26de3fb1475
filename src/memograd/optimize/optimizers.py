"""DSPy's optimisers, each on a plan of its calls (`plans`) and a draw of the questions.

The search of demonstrations is `BootstrapFewShotWithRandomSearch`, and SIMBA, MIPROv2 and GEPA are
DSPy's own, with its defaults where a plan says nothing. Without a model for proposals SIMBA has
one of its two moves: it adds demonstrations, and writes no rules.

Invariants: an optimiser sees training questions only, those that its seed drew; a question whose
reward cannot be computed ends it, though DSPy would count it as a bad answer.
"""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dspy
from dspy.teleprompt.simba_utils import append_a_demo

from memograd.optimize.endpoints import Caller, FailedCalls, quiet
from memograd.optimize.plans import BootstrapPlan, MiproPlan, OptimizerPlan, SimbaPlan
from memograd.optimize.program import MemoryQAProgram, examples
from memograd.rewards import WeightedReward, compute_rewards
from memograd.rollout.types import Scenario

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
