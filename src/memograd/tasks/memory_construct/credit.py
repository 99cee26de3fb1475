"""Which answer of the model is owed what: three ways of giving credit, as data.

`LOCAL` (ours): G answers to one chunk from the *same* book are compared with each other.

    reward = change of the open questions' scores against doing nothing, per question concerned
             + r2 + beta r3 + gamma r4                                (op-neutral rules)
             + global_weight x (what the walk that went on with it reached - mean of its walks)

What a walk reached is attributed: an answer is credited with the questions that were answered, in
the end, from what it wrote. So the first term says what a write is worth if nothing else happens,
the last what it was worth as things went; doing nothing earns 0 in both.

`TRAJECTORY`: G whole attempts are compared, each by its mean Mem-alpha reward under op-neutral
rules, and all of its chunks share the outcome. `MEM_ALPHA_ORIGINAL`: as published
(arXiv:2509.25911), with its defects: doing nothing and deleting cost by construction, a duplicate
is a failure, and the chunks of all attempts, whatever their position, are one group.

Invariants: under LOCAL an answer that leaves every open question as it was, whose calls all succeed
and write nothing made up, earns what doing nothing earns but for the size of the memory, whatever
the operations; under MEM_ALPHA_ORIGINAL it does not. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memograd.errors import BadInput
from memograd.memory.language import estimate_tokens
from memograd.rewards.mem_alpha import MEM_ALPHA_ORIGINAL as ORIGINAL_RULES
from memograd.rewards.mem_alpha import (
    OP_NEUTRAL,
    ChunkRules,
    compression,
    content_validity,
    mem_alpha_reward,
    tool_success,
)
from memograd.tasks.memory_construct.walk import BookWalk, QuestionResult, Tried

Compared = Literal["answers", "attempts", "chunks_of_attempts"]


@dataclass(frozen=True)
class Credit:
    """A way of giving credit.

    compared: what makes a group: the `answers` to one chunk from one book, whole `attempts`, or the
    chunks of all attempts in one heap. rules: how calls are counted.
    """

    name: str
    compared: Compared
    rules: ChunkRules


LOCAL: Final = Credit("local", "answers", OP_NEUTRAL)
TRAJECTORY: Final = Credit("trajectory", "attempts", OP_NEUTRAL)
MEM_ALPHA_ORIGINAL: Final = Credit("mem_alpha_original", "chunks_of_attempts", ORIGINAL_RULES)
CREDITS: Final = {credit.name: credit for credit in (LOCAL, TRAJECTORY, MEM_ALPHA_ORIGINAL)}


def local_rewards(walk: BookWalk, tried: Sequence[Tried]) -> list[float]:
    """What each of these answers to the walk's chunk is worth by itself: LOCAL's first line."""
    concerned = sum(
        one.open_at(walk.position) and one.concerns(walk.position) for one in walk.case.asked
    )
    nothing = _total(walk.open_questions(walk.book))
    build = walk.rules.build
    rewards = []
    for one in tried:
        change = 0.0 if one.book is walk.book else _total(walk.open_questions(one.book)) - nothing
        rewards.append(
            change / max(1, concerned)
            + tool_success(one.calls)
            + build.compression_weight * compression(one.book.tokens, walk.read_tokens)
            + build.content_weight * content_validity(one.calls)
        )
    return rewards


def attributed(walk: BookWalk) -> list[float]:
    """The share of a finished walk's questions that each chunk's answer made answerable [chunks].

    The score of a question goes to the chunks that wrote the items which hold its answer, in equal
    shares. A question about nothing belongs to none.
    """
    shares = [0.0] * len(walk.case.chunks)
    for one, origins in zip(walk.answered, walk.origins, strict=True):
        for origin in origins:
            shares[origin] += one.score / len(origins) / len(walk.answered)
    return shares


def global_terms(walks: Sequence[BookWalk]) -> list[list[float]]:
    """LOCAL's last line for each of the finished walks of one case [walks][chunks]."""
    weight = walks[0].rules.build.global_weight
    shares = [attributed(walk) for walk in walks]
    means = [sum(of_chunk) / len(walks) for of_chunk in zip(*shares, strict=True)]
    return [
        [weight * (share - mean) for share, mean in zip(row, means, strict=True)] for row in shares
    ]


def chunk_rewards(walk: BookWalk) -> list[float]:
    """Mem-alpha's reward of every chunk of a finished walk, under the credit's rules [chunks]."""
    build = walk.rules.build
    if not walk.answered:
        raise BadInput(f"{walk.case.id} asks nothing, so no attempt at it can be rewarded.")
    scores = [one.score for one in walk.answered]
    read = sum(estimate_tokens(chunk.text) for chunk in walk.case.chunks)
    return [
        mem_alpha_reward(
            tried.calls,
            qa_scores=scores,
            memory_tokens=walk.book.tokens,
            chunk_tokens=read,
            rules=CREDITS[build.credit].rules,
            beta=build.compression_weight,
            gamma=build.content_weight,
        ).total
        for tried in walk.taken
    ]


def _total(answered: Sequence[QuestionResult]) -> float:
    return sum(one.score for one in answered)
