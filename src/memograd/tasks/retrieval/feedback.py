"""Learning from feedback what to put first: judged answers move the ranker, if it finds more then.

    journal --(data/lifelog/from_journal)--> questions and the turns that their answers needed
    questions x candidates of the owner's memory --(listwise softmax)--> weights near the present
    present and new weights on questions that nobody is trained on --> adopt or not

The ridge pulls towards the present weights instead of towards zero, so few questions move little,
and a question is held out for good (`is_held_out`). Turns and memories are judged apart.
Probabilities stay those of the present ranker.

Invariant: the current version changes only where the new weights find more of the held-out
evidence than the present ones and than rank fusion; what was current before stays in the folder.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from memograd.data.lifelog import Lifelog
from memograd.data.lifelog.from_journal import is_held_out, lifelog_of_journal
from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.search.ranker.files import (
    LinearRanking,
    Ranker,
    RankerVersions,
    shipped_ranker,
)
from memograd.memory.state import MemoryState
from memograd.tasks.retrieval.learning import (
    Part,
    bounded,
    items_part,
    loss_and_slope,
    pack,
    recalls,
    turns_part,
)
from memograd.tasks.retrieval.material import Asking, MemoryMaterial, Row, row_of
from memograd.tasks.retrieval.trainer import BETA1, BETA2, EPSILON

HELD_OUT: Final = 0.25
JUDGED_AT: Final = (1, 3, 5, 10)
STEPS: Final = 300
LEARNING_RATE: Final = 0.03
RIDGE: Final = 100.0  # towards the present weights, in the sum of the questions' losses
PARTS: Final[Mapping[str, Part]] = {"turns": turns_part, "items": items_part}


@dataclass(frozen=True)
class FoundBy:
    """The share of the held-out evidence among the first 1, 3, 5 and 10, their mean, by each."""

    fusion: float
    before: float
    after: float

    @property
    def better(self) -> bool:
        """The guard."""
        return self.after > self.before and self.after > self.fusion


@dataclass(frozen=True)
class RankingReport:
    """What learning came to.

    found: by `turns` and `items`, only what was learnt. adopted: which of them rank by new weights
    now. trained_on, held_out: questions. left_out: feedback that teaches nothing, by the reason.
    """

    owner: str
    before_version: str
    after_version: str
    found: Mapping[str, FoundBy]
    adopted: tuple[str, ...]
    trained_on: int
    held_out: int
    left_out: Mapping[str, int]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def learn_ranking(
    memory: Memory,
    owner: str,
    rankers: Path,
    *,
    held_out: float = HELD_OUT,
    ridge: float = RIDGE,
) -> RankingReport:
    """Train the ranker on an owner's feedback and adopt it where it finds more.

    owner: `user:alice`. rankers: the folder of versions; an empty one begins with the ranker that
    ships. held_out: share of the questions that judge. ridge: how strongly present weights hold.
    Raises BadInput when no feedback teaches or judges anything, the memory has another embedder
    than the ranker, or somebody else is learning there; then nothing changes.
    """
    began = time.perf_counter()
    versions = RankerVersions(rankers)
    _present(versions, memory)  # what is refused is refused before the folder is made
    rows, left_out = feedback_rows(memory, owner)
    judges = [row for row in rows if is_held_out(row.text, held_out)]
    train = [row for row in rows if not is_held_out(row.text, held_out)]
    if not train or not judges:
        why = "; ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise BadInput(
            f"The feedback of {owner} is too little for a ranker: {len(train)} questions to"
            f" learn from, {len(judges)} to judge by{f' ({why})' if why else ''}. Correct"
            " answers with memory.feedback or memograd memory feedback."
        )
    with versions.held():
        new = present = _present(versions, memory)
        found: dict[str, FoundBy] = {}
        for name, part in PARTS.items():
            before: LinearRanking = getattr(present, name)
            after = adapted(before, train, part, ridge)
            if after is None:
                continue
            found[name] = FoundBy(*(_found(judges, part, one) for one in (None, before, after)))
            if found[name].better:
                new = replace(new, turns=after) if name == "turns" else replace(new, items=after)
        adopted = tuple(name for name, judged in found.items() if judged.better)
        if not versions.is_in(versions.folder):
            versions.adopt(versions.save(present))
        before_version = after_version = versions.current
        if adopted:
            about = {"learned": owner, "from": before_version, "questions": len(train)}
            after_version = versions.save(_about(new, about, found))
        report = RankingReport(
            owner=owner,
            before_version=before_version,
            after_version=after_version,
            found=found,
            adopted=adopted,
            trained_on=len(train),
            held_out=len(judges),
            left_out=left_out,
            seconds=round(time.perf_counter() - began, 1),
        )
        versions.log("learned" if adopted else "refused", **report.to_json())
        if adopted:
            versions.adopt(after_version)
    return report


def _present(versions: RankerVersions, memory: Memory) -> Ranker:
    """What ranks now; raises BadInput where it knows the vectors of another embedder."""
    present = versions.load() if versions.is_in(versions.folder) else shipped_ranker()
    if present.embedder != memory.store.embedder.name:
        raise BadInput(
            f"The ranker was trained on vectors of {present.embedder!r}, the memory has"
            f" {memory.store.embedder.name!r}: open it with the first."
        )
    return present


def feedback_rows(memory: Memory, owner: str) -> tuple[list[Row], dict[str, int]]:
    """The owner's judged questions as rows over the memory as it is, and what was left out."""
    journal = lifelog_of_journal(memory.store.journal.tail(owner), owner)
    if journal.log is None:
        return [], dict(journal.left_out)
    left_out = Counter(journal.left_out)
    state = memory.store.states.current(owner)
    known = _sources(state)
    told = MemoryMaterial(owner, "feedback", owner, (), ())
    rows: list[Row] = []
    for asking in _asked(journal.log):
        evidence = asking.evidence & known
        if not evidence:
            left_out["about what is not remembered any more"] += 1
            continue
        query = memory.recall.query(asking.text)
        rows.append(row_of(state, query, replace(asking, evidence=evidence), told))
    return rows, dict(left_out)


def adapted(
    start: LinearRanking, rows: Sequence[Row], part: Part, ridge: float = RIDGE
) -> LinearRanking | None:
    """The weights after the listwise loss of these rows, held near `start`; None without rows."""
    packed = pack(rows, part)
    count = len(packed.sizes)
    if not count:
        return None
    values = (packed.features - start.mean) / start.scale
    weights, first, second = start.weights.copy(), 0.0 * start.weights, 0.0 * start.weights
    for step in range(1, STEPS + 1):
        _, slope = loss_and_slope(values @ weights, packed)
        slopes = (values.T @ slope + ridge * (weights - start.weights)) / count
        first = BETA1 * first + (1 - BETA1) * slopes
        second = BETA2 * second + (1 - BETA2) * slopes**2
        rate = LEARNING_RATE * (1 - (step - 1) / STEPS)
        ahead = first / (1 - BETA1**step) / (np.sqrt(second / (1 - BETA2**step)) + EPSILON)
        weights = bounded(weights - rate * ahead)
    return replace(start, weights=weights)


def _found(rows: Sequence[Row], part: Part, linear: LinearRanking | None) -> float:
    return float(np.mean([recalls(rows, part, linear, k).mean() for k in JUDGED_AT]))


def _about(ranker: Ranker, about: Mapping[str, Any], found: Mapping[str, FoundBy]) -> Ranker:
    judged = {"adopted": True, **{name: asdict(one) for name, one in found.items()}}
    return replace(ranker, made_from={**about, "held_out": judged})


def _sources(state: MemoryState) -> frozenset[str]:
    """The turns that can be found, by themselves or as an item's source."""
    behind = {source for item in state.items for source in item.sources}
    return frozenset(behind | {turn.id for turn in state.turns})


def _asked(log: Lifelog) -> list[Asking]:
    """Each question once, with the turns that its answers needed; the last feedback counts."""
    turn_of = {statement.id: statement.turn_id for statement in log.statements}
    asked: dict[str, Asking] = {}
    for probe in log.probes:
        evidence = frozenset(turn_of[one] for one in probe.needed)
        question = probe.question
        asked[question.text] = Asking(question.text, evidence, question.category, question.asked_at)
    return list(asked.values())
