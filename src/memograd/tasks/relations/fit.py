"""Fits a relation model's thresholds to behaviour cases, by coordinate search.

    fitted = fit(weights, read_cases(paths, authors))    # fitted.thresholds, fitted.report

One threshold after the other is moved over GRID; what counts is the mean value of a case
(`CaseVerdict.value`), the languages equally: a right one, less what doubts cost, and much less than
nothing for a comment that destroys its fact. So that no single case is chased, the value at a
threshold is averaged with its neighbours', a move must gain `LEAST_GAIN` cases, and of a plateau
the middle is taken.

The cases alone would not do: they find an old statement right where it is marked as doubtful and
where it should be gone, so a memory that doubts everything would be the best.

What a model says of a row does not depend on thresholds, so it is computed once. And a case must be
played again only where its course may change: the thresholds that a memory uses while it plays are
`Watched`, they record on which side of them each probability lies, and any other thresholds with
the same probabilities on the same sides give the same verdict (`Region`).

Invariants: the same weights and cases give the same thresholds; a verdict that was not played is
the one that playing would give; no worse value of the objective than before.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

import numpy as np

from memograd.errors import BadInput
from memograd.evaluation.report import markdown_table
from memograd.memory import Memory
from memograd.memory.embedders import Embedder, load_embedder
from memograd.memory.embedders.stored import CachedEmbedder
from memograd.memory.manager import RelationManager
from memograd.memory.manager.past import formerly
from memograd.memory.reader import TrainedReader
from memograd.memory.records.notes import is_doubted, is_past
from memograd.memory.relations.gate import Gate
from memograd.memory.relations.model import RelationModel
from memograd.memory.relations.thresholds import NAMES, Thresholds
from memograd.memory.relations.values import ValuePointer
from memograd.memory.relations.weights import CLOSING, Weights
from memograd.tasks.relations.cases import Case, Wrong, language_of, play, what_is_wrong

GRID: Final = (
    *(0.02, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55),
    *(0.6, 0.65, 0.7, 0.75, 0.78, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99),
)
DESTROYED: Final = -4.0  # value of a comment that destroys its fact
DOUBTED: Final = 0.75  # of a right case after which something is in doubt, as GRPO values it
STAYS: Final = ("comment", "addition", "other_person", "hypothetical_or_past")
"""Kinds of cases in which nothing comes to an end."""
LEAST_GAIN: Final = 1.5  # cases of one language that a move must gain, averaged with its neighbours
TEXTS_KEPT: Final = 100_000  # more than all cases have
REACH: Final = 8  # values of GRID that a threshold may move at once
SWEEPS: Final = 4  # over all thresholds, at most
_NEIGHBOURS: Final = {-2: 1.0, -1: 2.0, 0: 3.0, 1: 2.0, 2: 1.0}  # what each counts in the average


class Region:
    """Thresholds between which nothing changes: above `low`, up to `high`, by name."""

    def __init__(self) -> None:
        self.bounds: dict[str, tuple[float, float]] = {}

    def narrow(self, name: str, threshold: float, value: float) -> None:
        """The threshold stays on that side of the value: up to it, or above it."""
        low, high = self.bounds.get(name, (-math.inf, math.inf))
        if threshold <= value:
            self.bounds[name] = low, min(high, value)
        else:
            self.bounds[name] = max(low, value), high

    def holds(self, thresholds: Thresholds) -> bool:
        """Whether those thresholds lie in it."""
        return all(
            low < getattr(thresholds, name) <= high for name, (low, high) in self.bounds.items()
        )


class Watched(float):
    """A threshold that tells a region what it is compared with; it can be scaled, no more."""

    __slots__ = ("name", "region", "scale")
    name: str
    region: Region
    scale: float

    @classmethod
    def of(cls, value: float, name: str, region: Region, scale: float = 1.0) -> Watched:
        """`value` times `scale`, of the threshold `name`."""
        one = cls(value * scale)
        one.name, one.region, one.scale = name, region, scale
        return one

    def _told(self, value: float) -> None:
        if isinstance(value, Watched):  # neither side would be a number of the message
            self._refused()
        if self.scale > 0:
            exact = float.__truediv__(self, self.scale)
            self.region.narrow(self.name, exact, float(value) / self.scale)

    def __le__(self, value: float) -> bool:  # value >= threshold
        self._told(value)
        return float.__le__(self, value)

    def __gt__(self, value: float) -> bool:  # value < threshold
        self._told(value)
        return float.__gt__(self, value)

    def __lt__(self, value: float) -> bool:  # value > threshold
        self._told(math.nextafter(value, -math.inf))
        return float.__lt__(self, value)

    def __ge__(self, value: float) -> bool:  # value <= threshold
        self._told(math.nextafter(value, -math.inf))
        return float.__ge__(self, value)

    def __mul__(self, factor: float) -> Watched:
        return Watched.of(
            float.__truediv__(self, self.scale) if self.scale else 0.0,
            self.name,
            self.region,
            self.scale * factor,
        )

    __rmul__ = __mul__

    def _refused(self, *_: Any) -> NoReturn:
        raise TypeError(f"The threshold {self.name} may be compared and scaled, and nothing else.")

    __add__ = __radd__ = __sub__ = __rsub__ = __neg__ = _refused
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refused


def watched(thresholds: Thresholds, region: Region) -> Thresholds:
    """The same thresholds, watched."""
    found = replace(thresholds)
    for name in NAMES:
        value = Watched.of(getattr(thresholds, name), name, region)
        object.__setattr__(found, name, value)
    return found


class RememberingModel(RelationModel):
    """A relation model that computes every question once."""

    def __init__(
        self,
        weights: Weights,
        gate: Gate | None = None,
        pointer: ValuePointer | None = None,
        second: Weights | None = None,
    ) -> None:
        super().__init__(weights, gate, pointer, second)
        self._known: dict[tuple[Any, ...], np.ndarray] = {}

    def relate(
        self,
        message: str,
        before: Sequence[tuple[str, str]],
        items: Sequence[str],
        role: str = "user",
    ) -> np.ndarray:
        """As of `RelationModel`."""
        return self._once("relate", super().relate, message, before, items, role)

    def worth(
        self,
        message: str,
        before: Sequence[tuple[str, str]],
        segments: Sequence[str],
        role: str = "user",
    ) -> np.ndarray:
        """As of `RelationModel`."""
        return self._once("worth", super().worth, message, before, segments, role)

    def closes(
        self,
        message: str,
        before: Sequence[tuple[str, str]],
        items: Sequence[str],
        relations: Sequence[str] = CLOSING,
    ) -> np.ndarray:
        """As of `RelationModel`."""

        def compute(
            message: str, before: Sequence[tuple[str, str]], items: Sequence[str], _: str
        ) -> np.ndarray:
            return super(RememberingModel, self).closes(message, before, items, relations)

        return self._once(f"closes {relations}", compute, message, before, items, "user")

    def _once(
        self,
        what: str,
        compute: Callable[..., np.ndarray],
        message: str,
        before: Sequence[tuple[str, str]],
        parts: Sequence[str],
        role: str,
    ) -> np.ndarray:
        key = (what, message, tuple(before), tuple(parts), role)
        if key not in self._known:
            self._known[key] = compute(message, before, parts, role)
        return self._known[key].copy()  # a reader may write into what it is given


@dataclass(frozen=True)
class CaseVerdict:
    """wrong: what is, None where nothing is. doubted, past: whether an item says that it may be so
    no longer, or what was so before."""

    wrong: Wrong | None
    doubted: bool
    past: bool

    def destroys(self, case: Case) -> bool:
        """Whether a comment took its fact away."""
        return case["kind"] == "comment" and self.wrong is not None and self.wrong.lost

    def value(self, case: Case) -> float:
        """What the case counts for the fit, at most 1."""
        if self.destroys(case):
            return DESTROYED
        # Where nothing ends, an item that tells of a past has lost its present.
        if self.wrong is not None or (self.past and case["kind"] in STAYS):
            return 0.0
        return DOUBTED if self.doubted else 1.0


@dataclass
class CaseJudge:
    """Says which cases are right at given thresholds, and plays only those that it must.

    played: how often a case was.
    """

    memory: Memory
    reader: TrainedReader
    manager: RelationManager
    played: int = 0
    _verdicts: dict[str, list[tuple[Region, CaseVerdict]]] = field(default_factory=dict)

    def verdict(self, case: Case, thresholds: Thresholds) -> CaseVerdict:
        """How the case ends at those thresholds."""
        known = self._verdicts.setdefault(case["id"], [])
        for region, verdict in known:
            if region.holds(thresholds):
                return verdict
        region = Region()
        self.reader.thresholds = self.manager.thresholds = watched(thresholds, region)
        self.played += 1
        verdict = self.played_anew(case, f"{case['id']}#{len(known)}")
        known.append((region, verdict))
        return verdict

    def played_anew(self, case: Case, user: str) -> CaseVerdict:
        """How the case ends for a user that the memory does not know yet."""
        play(self.memory, case, user)
        wrong = what_is_wrong(self.memory, case, user)
        texts = [one["memory"] for one in self.memory.get_all(user_id=user)["results"]]
        return CaseVerdict(
            wrong,
            doubted=any(is_doubted(text) for text in texts),
            past=any(is_past(text) or formerly(text) for text in texts),
        )


@contextmanager
def judging(
    weights: Weights,
    embedder: Embedder | None = None,
    gate: Gate | None = None,
    pointer: ValuePointer | None = None,
    second: Weights | None = None,
) -> Iterator[CaseJudge]:
    """A judge of a memory with those weights, in a folder that is gone afterwards."""
    model = RememberingModel(weights, gate, pointer, second)
    reader, manager = TrainedReader(model), RelationManager(model)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(
            folder,
            embedder=CachedEmbedder(embedder or load_embedder("e5"), TEXTS_KEPT),
            reader=reader,
            manager=manager,
            env_file=None,
        ) as memory,
    ):
        yield CaseJudge(memory, reader, manager)


@dataclass(frozen=True)
class CaseShares:
    """Of the cases of one language: value: their mean. right: share of right ones. destroyed:
    comments that destroy a fact. doubted: cases that leave something in doubt. past: those in which
    nothing ends, and something is past."""

    cases: int
    value: float
    right: float
    destroyed: int
    doubted: int
    past: int


def shares(
    judge: CaseJudge, cases: Sequence[Case], thresholds: Thresholds
) -> dict[str, CaseShares]:
    """How the cases stand at those thresholds, by language."""
    of: dict[str, list[tuple[Case, CaseVerdict]]] = {}
    for case in cases:
        of.setdefault(language_of(case), []).append((case, judge.verdict(case, thresholds)))
    return {
        language: CaseShares(
            len(ended),
            sum(verdict.value(case) for case, verdict in ended) / len(ended),
            sum(verdict.wrong is None for _, verdict in ended) / len(ended),
            sum(verdict.destroys(case) for case, verdict in ended),
            sum(verdict.doubted for _, verdict in ended),
            sum(verdict.past and case["kind"] in STAYS for case, verdict in ended),
        )
        for language, ended in sorted(of.items())
    }


@dataclass(frozen=True)
class Fitted:
    """The thresholds, and how the cases stood before and stand with them, by language."""

    thresholds: Thresholds
    before: Mapping[str, CaseShares]
    after: Mapping[str, CaseShares]
    played: int

    @property
    def report(self) -> str:
        """Two tables: how the cases stand, and the thresholds that differ from the defaults."""
        cases = [
            [
                language,
                when,
                str(of[language].cases),
                f"{100 * of[language].value:.2f}",
                f"{100 * of[language].right:.1f}",
                str(of[language].destroyed),
                str(of[language].past),
                str(of[language].doubted),
            ]
            for language in self.after
            for when, of in (("before", self.before), ("fitted", self.after))
        ]
        numbers = [
            [name, f"{getattr(Thresholds(), name):g}", f"{getattr(self.thresholds, name):g}"]
            for name in NAMES
            if getattr(Thresholds(), name) != getattr(self.thresholds, name)
        ]
        head = ["language", "thresholds", "cases", "value", "right", "comments destroy"]
        head += ["wrongly past", "in doubt"]
        return "\n\n".join(
            [
                markdown_table(head, cases),
                markdown_table(["threshold", "default", "fitted"], numbers),
            ]
        )


def fit(
    weights: Weights,
    cases: Sequence[Case],
    *,
    embedder: Embedder | None = None,
    gate: Gate | None = None,
    pointer: ValuePointer | None = None,
    second: Weights | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Fitted:
    """The thresholds that suit the cases, from those of the weights on.

    embedder: of the memory that plays them, e5 where none is given. gate, pointer, second: what
    stands beside the weights; new ones have none of it yet. say: hears of every move.
    Raises BadInput where there is no case.
    """
    if not cases:
        raise BadInput("Thresholds are fitted to behaviour cases, and there is none.")
    with judging(weights, embedder, gate, pointer, second) as judge:
        return _search(judge, cases, weights.about.thresholds, say)


def _search(
    judge: CaseJudge, cases: Sequence[Case], start: Thresholds, say: Callable[[str], None]
) -> Fitted:
    before = shares(judge, cases, start)
    fewest = min(one.cases for one in before.values())
    least_gain = LEAST_GAIN / (fewest * len(before))
    chosen, best = start, _objective(before)
    for _ in range(SWEEPS):
        moved = False
        for name in NAMES:
            values = _near(float(getattr(chosen, name)))
            curve = _curve(judge, cases, chosen, name, values)
            value = _moved_to(values, curve, getattr(chosen, name), least_gain)
            if value is None or curve[values.index(value)] < best:
                continue
            say(
                f"{name} {getattr(chosen, name):g} -> {value:g}: {best:.4f} ->"
                f" {curve[values.index(value)]:.4f} ({judge.played} cases played)"
            )
            chosen, best, moved = (
                replace(chosen, **{name: value}),
                curve[values.index(value)],
                True,
            )
        if not moved:
            break
    return Fitted(chosen, before, shares(judge, cases, chosen), judge.played)


def _near(value: float) -> list[float]:
    """The values of GRID around one, and that one."""
    values = sorted({*GRID, value})
    at = values.index(value)
    return values[max(0, at - REACH) : at + REACH + 1]


def _objective(found: Mapping[str, CaseShares]) -> float:
    return float(np.mean([one.value for one in found.values()]))


def _curve(
    judge: CaseJudge, cases: Sequence[Case], chosen: Thresholds, name: str, values: Sequence[float]
) -> list[float]:
    """The objective at each value of one threshold; minus infinity where it may not have it."""
    curve = []
    for value in values:
        try:
            tried = replace(chosen, **{name: value})
        except BadInput:  # what is doubted must be less sure than what is closed
            curve.append(-math.inf)
            continue
        curve.append(_objective(shares(judge, cases, tried)))
    return curve


def _moved_to(
    values: Sequence[float], curve: Sequence[float], now: float, least_gain: float
) -> float | None:
    """The middle of the best plateau of the averaged curve; None where it gains too little."""
    allowed = [n for n, one in enumerate(curve) if one > -math.inf]
    smooth = {n: _averaged(curve, n) for n in allowed}
    top = max(smooth.values())
    if top - smooth[values.index(now)] < least_gain:
        return None
    # What lies within a third of the least gain of the best is as good as it.
    plateau = [n for n in allowed if top - smooth[n] <= least_gain / 3]
    start = max(plateau, key=lambda n: smooth[n])
    run = [start]
    while run[0] - 1 in plateau:
        run.insert(0, run[0] - 1)
    while run[-1] + 1 in plateau:
        run.append(run[-1] + 1)
    return values[run[len(run) // 2]]


def _averaged(curve: Sequence[float], at: int) -> float:
    near = {
        shift: weight
        for shift, weight in _NEIGHBOURS.items()
        if 0 <= at + shift < len(curve) and curve[at + shift] > -math.inf
    }
    return sum(weight * curve[at + shift] for shift, weight in near.items()) / sum(near.values())
