"""How each optimiser spends its calls, so that all have the same budget.

DSPy's optimisers are told sizes (examples, candidates, steps), not calls. A plan is the sizes whose
calls of the answering model, counted as DSPy makes them, come nearest to the budget from below.

Invariant: `calls` of a plan is the most that this optimiser makes with it, and at most the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

from memograd.errors import BadInput

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
