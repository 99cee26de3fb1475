"""Rewards of single memory operations, known the moment they are chosen: no later question needed.

All have one signature, that of the Memory-Agent guide: `calculate_reward(action, new_fact,
retrieved_facts)`, where `action` is an `OpKind` (a text too: `action == "ADD"`), `new_fact` a text,
and the retrieved facts are the remembered items related to it, one of them marked as the target of
UPDATE or DELETE. `opportunity_cost` is the guide's own. What is known at once is not what matters
later: its fixed values pay for the kind of an operation whether it was right or not, so a policy
can gain from ADD alone. It is offered because the guide defines it, as a start and for comparison;
what a later question gains is the task's `delta_qa`.

The setting `reward` chooses one of them, or a function of the user's:

    my_rewards.py                  its function calculate_reward
    my_rewards.py:gentle           another function of it
    my_package.rewards:gentle      a function of a module

Embeddings do not tell "Rex is 4" from "Rex is 5"; the words do (`says_already`, `contradicts`).
Where both sentences are understood (`memory.statements`), property and value decide. Where they are
not, two sentences that share most of their words contradict each other when one says no and the
other yes, or when each has a number or a name that the other lacks; the first name is the subject,
and other subjects never contradict.

Invariants: the terms of `opportunity_cost` lie in [0, 1] and the total is their sum by weight; with
`NEUTRAL_WEIGHTS` no kind is paid for itself; writing what is known already pays less than NONE with
either weights. Both relations of facts are symmetric up to what one text adds, and no pair is both
the same and contradictory. A function that cannot be loaded, or called with these three arguments,
is refused in one sentence before anything is written, and a resumed run goes on with the code that
it began with.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from memograd.errors import RAISED_BY_USERS, BadInput
from memograd.memory.language import is_chinese
from memograd.memory.records.operations import OpKind
from memograd.memory.statements import (
    Statement,
    Wording,
    agreement,
    parse_statement,
    same_text,
    wording,
)
from memograd.memory.statements.statement import plain
from memograd.rewards.compose import RewardError, place_of
from memograd.rewards.user_code import function_of, load_file, load_module, source_of
from memograd.rollout.types import is_finite_number
from memograd.tasks.memory_ops.settings import OperationsConfig

DELTA_QA: Final = "delta_qa"


def reward_of(config: OperationsConfig) -> OperationReward | None:
    """The reward of single operations that the settings name; None for `delta_qa`.

    Raises BadInput when there is none of that name, or its file or function cannot be used.
    """
    if config.reward == DELTA_QA:
        return None
    return operation_reward(config.reward, also=[DELTA_QA])


def code_fingerprint(reward: OperationReward | None) -> str | None:
    """SHA-256 of the file that the user's own reward is written in; None for all others."""
    if reward is None or reward in OPERATION_REWARDS.values():
        return None
    source = source_of(reward)
    if source is None or not Path(source).is_file():
        return None
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()


NAME = "calculate_reward"
"""The function that is taken where the specification names none; the Memory-Agent guide's name."""

SIGNATURE = f"{NAME}(action, new_fact, retrieved_facts) -> number"


_FILE = re.compile(r"(?P<source>.+\.py)\s*(?::\s*(?P<name>\w+))?", re.DOTALL)
_MODULE = re.compile(r"(?P<source>[^\W\d][\w.]*)\s*:\s*(?P<name>\w+)")


def operation_reward(spec: str, *, also: Sequence[str] = ()) -> OperationReward:
    """The built-in reward of that name, or the user's function that `spec` names.

    also: other names that the caller knows, for the message. Raises BadInput when there is none,
    its file cannot be loaded, or it does not take the three arguments; an `async def` function is
    refused too, because operations are scored one by one.
    """
    if spec.strip() in OPERATION_REWARDS:
        return OPERATION_REWARDS[spec.strip()]
    match = _FILE.fullmatch(spec.strip()) or _MODULE.fullmatch(spec.strip())
    if match is None:
        raise BadInput(
            f'There is no operation reward "{spec}"; use {", ".join([*also, *OPERATION_REWARDS])}'
            ", or a file "
            f"with {SIGNATURE} (path/to/file.py or path/to/file.py:function)."
        )
    source, name = match["source"].strip(), match["name"] or NAME
    module = load_file(Path(source)) if source.endswith(".py") else load_module(source)
    function: OperationReward = function_of(module, name)
    check_signature(function, f"{name} in {source}")
    return function


def with_absolute_file(spec: str) -> str:
    """The same specification for any working directory."""
    match = _FILE.fullmatch(spec.strip())
    if match is None:
        return spec.strip()
    path = str(Path(match["source"].strip()).resolve())
    return f"{path}:{match['name']}" if match["name"] else path


def check_signature(function: OperationReward, named: str) -> None:
    """`BadInput` unless the function can be called with the three arguments; `named` is for it."""
    if inspect.iscoroutinefunction(function):
        raise BadInput(f"{named} is an async function; an operation reward is a plain one.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have none; they are tried
        return
    try:
        signature.bind("ADD", "", [])
    except TypeError as error:
        raise BadInput(
            f"{named} takes {signature}, which does not fit ({error}); write {SIGNATURE}."
        ) from None


@dataclass(frozen=True, slots=True)
class RetrievedFact:
    """A remembered item that a search for the new fact found.

    similarity: cosine of the two embeddings, -1 to 1. is_target: the operation names this item.
    """

    id: str
    text: str
    similarity: float
    is_target: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.similarity):
            raise BadInput(f"The similarity of the item {self.id!r} is {self.similarity}.")


OperationReward = Callable[[OpKind, str, Sequence[RetrievedFact]], float]
"""`calculate_reward(action, new_fact, retrieved_facts)`."""


@dataclass(frozen=True, slots=True)
class OperationWeights:
    """What each part of `opportunity_cost` is worth; the first four are the guide's values.

    information_gain is paid; information_loss, contradiction and redundancy are taken off.
    """

    add: float = 1.0
    update: float = 0.8
    delete: float = 0.5
    none: float = 0.1
    information_gain: float = 1.0
    information_loss: float = 1.0
    contradiction: float = 1.0
    redundancy: float = 1.0

    def of_kind(self, kind: OpKind) -> float:
        """The fixed value of an operation's kind."""
        fixed = {OpKind.ADD: self.add, OpKind.UPDATE: self.update, OpKind.DELETE: self.delete}
        return fixed.get(kind, self.none)


GUIDE_WEIGHTS: Final = OperationWeights()
"""The Memory-Agent guide's fixed values; 1 for each consideration, which it gives no value for."""

NEUTRAL_WEIGHTS: Final = OperationWeights(add=0.0, update=0.0, delete=0.0, none=0.0)
"""The considerations alone: no kind of operation is worth anything in itself."""


@dataclass(frozen=True, slots=True)
class OperationTerms:
    """The parts of `opportunity_cost` before weighting, each in [0, 1].

    information_gain: how far the written fact is from everything remembered (1 - the greatest
    similarity), 0 where an item says it already. information_loss: how far the item that is
    rewritten or closed is from the fact, which is what disappears with it. contradiction: 1 if the
    written fact contradicts an item that stays. redundancy: 1 if an item says the written fact
    already. All but the loss are 0 for DELETE and NONE, which write nothing.
    """

    information_gain: float
    information_loss: float
    contradiction: float
    redundancy: float


@dataclass(frozen=True, slots=True)
class ChosenOperation:
    """What a reward is computed from: the operation's kind, the fact, and what was retrieved."""

    action: OpKind
    new_fact: str
    retrieved_facts: tuple[RetrievedFact, ...]

    def __post_init__(self) -> None:
        target_of(self.action, self.retrieved_facts)


def target_of(action: OpKind, retrieved_facts: Sequence[RetrievedFact]) -> RetrievedFact | None:
    """The item that UPDATE, DELETE or a NONE names; `BadInput` where that does not fit the kind."""
    targets = [fact for fact in retrieved_facts if fact.is_target]
    needed = action in (OpKind.UPDATE, OpKind.DELETE)
    if len(targets) > 1 or (needed and not targets) or (action is OpKind.ADD and targets):
        wanted = "one" if needed else "no" if action is OpKind.ADD else "at most one"
        raise BadInput(f"{action} takes {wanted} target among the retrieved facts, not {targets}.")
    return targets[0] if targets else None


def information_gain(retrieved_facts: Sequence[RetrievedFact]) -> float:
    """1 - the greatest similarity of the fact to a retrieved one, in [0, 1]; 1 where none is."""
    return 1.0 - max((_clipped(fact) for fact in retrieved_facts), default=0.0)


def operation_terms(
    action: OpKind, new_fact: str, retrieved_facts: Sequence[RetrievedFact]
) -> OperationTerms:
    """The parts of `opportunity_cost`; `BadInput` where the target does not fit the action."""
    target = target_of(action, retrieved_facts)
    lost = 1.0 - _clipped(target) if target is not None and action is not OpKind.NONE else 0.0
    if action not in (OpKind.ADD, OpKind.UPDATE):
        return OperationTerms(0.0, lost, 0.0, 0.0)
    staying = [fact for fact in retrieved_facts if not fact.is_target]
    known = any(says_already(fact.text, new_fact) for fact in retrieved_facts)
    return OperationTerms(
        information_gain=0.0 if known else information_gain(retrieved_facts),
        information_loss=lost,
        contradiction=float(any(contradicts(fact.text, new_fact) for fact in staying)),
        redundancy=float(known),
    )


def opportunity_cost(
    action: OpKind,
    new_fact: str,
    retrieved_facts: Sequence[RetrievedFact],
    *,
    weights: OperationWeights = GUIDE_WEIGHTS,
) -> float:
    """The reward of the Memory-Agent guide (section 5): a value by kind, and what is written.

    `weights.of_kind(action) + gain - loss - contradiction - redundancy`, each by its weight; see
    `OperationTerms`. The guide names gain, contradiction and redundancy but gives no formula for
    them, and no loss; a weight of 0 leaves one out.
    """
    terms = operation_terms(action, new_fact, retrieved_facts)
    return (
        weights.of_kind(action)
        + weights.information_gain * terms.information_gain
        - weights.information_loss * terms.information_loss
        - weights.contradiction * terms.contradiction
        - weights.redundancy * terms.redundancy
    )


def compute_operation_rewards(
    reward: OperationReward, chosen: Sequence[ChosenOperation], *, rollout_ids: Sequence[str]
) -> list[float]:
    """The reward of every operation, in their order; the function gets a list of its own each time.

    Raises RewardError with the rollout's id when the function raises or returns anything but one
    finite number; BadInput when there are not as many ids as operations.
    """
    if len(chosen) != len(rollout_ids):
        raise BadInput(f"There are {len(rollout_ids)} rollout ids for {len(chosen)} operations.")
    return [
        _one_reward(reward, operation, rollout_id)
        for operation, rollout_id in zip(chosen, rollout_ids, strict=True)
    ]


def _one_reward(reward: OperationReward, chosen: ChosenOperation, rollout_id: str) -> float:
    name = getattr(reward, "__name__", "calculate_reward")
    try:
        value = reward(chosen.action, chosen.new_fact, list(chosen.retrieved_facts))
    except RAISED_BY_USERS as error:
        raise RewardError(
            f"Reward {name} raised {type(error).__name__}: {error}{place_of(reward, error)} "
            f"({chosen.action} in rollout {rollout_id}).",
            rollout_id,
        ) from error
    if not is_finite_number(value):
        raise RewardError(
            f"Reward {name} returned {value!r} for {chosen.action} in rollout {rollout_id}, "
            "not a finite number.",
            rollout_id,
        )
    return float(value)


def _clipped(fact: RetrievedFact) -> float:
    """The similarity within [0, 1]: rounding takes a cosine past 1, and opposite is no more."""
    return min(1.0, max(0.0, fact.similarity))


OPERATION_REWARDS: dict[str, OperationReward] = {"opportunity_cost": opportunity_cost}
"""The built-in rewards of single operations, by name."""

OVERLAP: Final = 0.6  # share of common words, names and numbers apart, from which two texts compare

_NAME = re.compile(r"[A-ZÀ-Þ][\wÀ-ÿ'-]*")
_FIRST_WORD = re.compile(r"\W*(?:(?:The|A|An|My|Our|His|Her|Their|In|On|At) )?")


@lru_cache(maxsize=65_536)  # all operations on one state compare the same pairs
def says_already(known: str, fact: str) -> bool:
    """Whether `known` says all that `fact` says: in the same words, or the same value and more."""
    if same_text(known, fact):
        return True
    theirs, ours = _understood(known), _understood(fact)
    if theirs is None or ours is None or theirs.ended != ours.ended:
        return False
    if not (ours.same_slot(theirs) and ours.same_value(theirs)):
        return False
    its, mine = wording(known), wording(fact)
    return (
        ours.positive == theirs.positive
        and mine.numbers <= its.numbers
        and wording(ours.rest).terms <= its.terms
    )


@lru_cache(maxsize=65_536)
def contradicts(first: str, second: str) -> bool:
    """Whether both cannot be true at once, by polarity, number or name at high overlap."""
    if same_text(first, second):
        return False
    one, other = _understood(first), _understood(second)
    if one is not None and other is not None:
        return _opposed(one, other)
    mine, its = _SpokenWords.of(first), _SpokenWords.of(second)
    if mine.subject and its.subject and mine.subject != its.subject:
        return False
    if agreement(mine.common, its.common) < OVERLAP:
        return False
    if mine.all.negated != its.all.negated:
        return mine.all.numbers == its.all.numbers and mine.names == its.names
    return _each_has_its_own(mine.all.numbers, its.all.numbers) or _each_has_its_own(
        mine.names, its.names
    )


@lru_cache(maxsize=16_384)
def _understood(text: str) -> Statement | None:
    return parse_statement(text)


def _opposed(one: Statement, other: Statement) -> bool:
    if not one.same_slot(other):
        return False
    holds, held = one.positive and not one.ended, other.positive and not other.ended
    if one.same_value(other):
        return holds != held
    if not (holds and held and one.single_valued):
        return False
    longer, shorter = sorted((plain(one.value), plain(other.value)), key=len, reverse=True)
    # "Boston" and "Boston, Massachusetts" agree; 4 and 14 do not.
    return shorter[-1:].isdigit() or not longer.startswith(shorter)


def _each_has_its_own(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    return bool(ours - theirs) and bool(theirs - ours)


@dataclass(frozen=True, slots=True)
class _SpokenWords:
    """The wording of a text; its subject and other names, folded; its common words alone."""

    all: Wording
    subject: str
    names: frozenset[str]
    common: Wording

    @classmethod
    @lru_cache(maxsize=16_384)
    def of(cls, text: str) -> _SpokenWords:
        said = wording(text)
        start = _FIRST_WORD.match(text)
        at = start.end() if start else 0
        first = _NAME.match(text, at)
        subject = first[0].casefold() if first and not is_chinese(text) else ""
        names = frozenset(
            name.casefold().removesuffix("'s")
            for name in _NAME.findall(text, first.end() if first else at)
        )
        apart = wording(" ".join(names)).terms
        common = replace(said, terms=said.terms - apart, numbers=frozenset())
        return cls(said, subject.removesuffix("'s"), names, common)
