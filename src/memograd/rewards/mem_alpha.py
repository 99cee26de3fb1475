"""The four rewards of Mem-alpha (Wang et al. 2025, arXiv:2509.25911), for memory built by chunks.

    total of a chunk = r1 + r2 + beta r3 + gamma r4          beta = 0.05, gamma = 0.1

r1: how well the questions after the last chunk are answered. r2: the share of the chunk's tool
calls that succeeded. r3: 1 - memory tokens / chunk tokens, of all chunks. r4: the share of the
chunk's written texts that are valid memories. r1 and r3 belong to the whole attempt, r2 and r4 to
the chunk.

Two sets of rules for r2 and r4. `OP_NEUTRAL`, ours: a chunk without calls did nothing wrong and
scores 1, a duplicate insert is a call that succeeded (what it costs is in r3), and only what writes
a text is asked whether the text is valid. `MEM_ALPHA_ORIGINAL`, the published code: no call scores
0 (and loses up to 1 + gamma, more than the whole of r1), a duplicate insert is a failure, and a
DELETE counts in r4 as an invalid text. They are kept to measure what they cost.

Invariants: r1, r2 and r4 lie in [0, 1], r3 is at most 1; under `OP_NEUTRAL` the kinds of operations
that succeed, none at all included, never change a reward; more success or validity never lowers it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memograd.errors import BadInput
from memograd.memory.records.operations import OpKind

BETA: Final = 0.05
GAMMA: Final = 0.1


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What became of one tool call in a chunk.

    kind: ADD, UPDATE or DELETE; None for a call that is none of them, such as an unknown tool. ok:
    it could be carried out. duplicate: an ADD of what the memory has word for word. valid: whether
    the written text is a memory of its sort; None where no text was written or nobody judged it.
    """

    kind: OpKind | None
    ok: bool
    duplicate: bool = False
    valid: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is OpKind.NONE:
            raise BadInput("NONE is the absence of a tool call: leave it out of the outcomes.")
        if self.duplicate and self.kind is not OpKind.ADD:
            raise BadInput(f"Only an ADD can be a duplicate, not {self.kind}.")
        if self.valid is not None and not self.writes:
            raise BadInput(f"{self.kind} writes no text that could be valid or not.")

    @property
    def writes(self) -> bool:
        """Whether the call carries a text to remember."""
        return self.kind in (OpKind.ADD, OpKind.UPDATE)


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """How r2 and r4 count a chunk's calls.

    no_call: r2 and r4 of a chunk without calls. duplicate_fails: an ADD of what is there already is
    no success in r2. delete_is_invalid: a DELETE counts in r4, as a text that is not valid.
    """

    no_call: float
    duplicate_fails: bool
    delete_is_invalid: bool


OP_NEUTRAL: Final = ChunkRules(no_call=1.0, duplicate_fails=False, delete_is_invalid=False)
MEM_ALPHA_ORIGINAL: Final = ChunkRules(no_call=0.0, duplicate_fails=True, delete_is_invalid=True)


@dataclass(frozen=True, slots=True)
class MemAlphaReward:
    """The four parts of a chunk's reward and how they add up."""

    r1: float
    r2: float
    r3: float
    r4: float
    beta: float = BETA
    gamma: float = GAMMA

    @property
    def total(self) -> float:
        """r1 + r2 + beta r3 + gamma r4."""
        return self.r1 + self.r2 + self.beta * self.r3 + self.gamma * self.r4


def qa_accuracy(scores: Sequence[float]) -> float:
    """r1: the mean score of the questions asked after the last chunk, each in [0, 1].

    Raises BadInput for no questions, or a score outside [0, 1].
    """
    if not scores or not all(0 <= score <= 1 for score in scores):
        raise BadInput(f"r1 needs at least one question, with scores in [0, 1]; got {scores}.")
    return math.fsum(scores) / len(scores)


def tool_success(calls: Sequence[ToolOutcome], rules: ChunkRules = OP_NEUTRAL) -> float:
    """r2: the share of a chunk's calls that succeeded, in [0, 1]."""
    if not calls:
        return rules.no_call
    good = sum(call.ok and not (rules.duplicate_fails and call.duplicate) for call in calls)
    return good / len(calls)


def compression(memory_tokens: int, chunk_tokens: int) -> float:
    """r3: 1 - memory tokens / tokens of all chunks; 1 for no memory, below 0 for a bloated one.

    Raises BadInput for chunks without tokens, or a negative count.
    """
    if memory_tokens < 0 or chunk_tokens < 1:
        raise BadInput(
            f"r3 needs chunks of at least one token and a memory of at least none; got "
            f"{chunk_tokens} and {memory_tokens}."
        )
    return 1 - memory_tokens / chunk_tokens


def content_validity(calls: Sequence[ToolOutcome], rules: ChunkRules = OP_NEUTRAL) -> float:
    """r4: the share of a chunk's written texts that are valid memories, in [0, 1].

    A chunk that writes nothing has nothing invalid: 1, and `rules.no_call` without any call. Under
    `delete_is_invalid` a DELETE, or a call that is no operation, is one more invalid text. Raises
    BadInput for a written text that nobody judged.
    """
    if not calls:
        return rules.no_call
    written = [call for call in calls if call.writes]
    if any(call.valid is None for call in written):
        raise BadInput("r4 needs to know of every written text whether it is valid: judge it.")
    counted = len(calls) if rules.delete_is_invalid else len(written)
    return sum(bool(call.valid) for call in written) / counted if counted else 1.0


def mem_alpha_reward(
    calls: Sequence[ToolOutcome],
    *,
    qa_scores: Sequence[float],
    memory_tokens: int,
    chunk_tokens: int,
    rules: ChunkRules = OP_NEUTRAL,
    beta: float = BETA,
    gamma: float = GAMMA,
) -> MemAlphaReward:
    """The reward of one chunk: `calls` are its own, the other numbers are of the whole attempt."""
    return MemAlphaReward(
        r1=qa_accuracy(qa_scores),
        r2=tool_success(calls, rules),
        r3=compression(memory_tokens, chunk_tokens),
        r4=content_validity(calls, rules),
        beta=beta,
        gamma=gamma,
    )
