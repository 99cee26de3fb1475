"""Raw turns, half of them: who knows which half will be asked about?

For real conversations, where no gold operation is known. Each method says how much it would like to
keep each turn; what it likes best is kept until half is reached, and the questions are asked of the
turns that were kept. Half of what? Of all tokens, which is what a prompt costs, or of all turns,
which is what most papers count; there, keeping long turns is keeping more. The trained head is
asked for the log odds of writing a turn down, in the memory that it keeps itself on the way.

A method that keeps more finds more, so "keeps everything" wins every table that does not ask what
it keeps. One that does not fit the budget any more is skipped and filling goes on, as `fill_budget`
of `memory.search.context` does for prompts.

Invariants: everybody but "all turns" keeps at most the same share of the unit, and no question is
looked at; nothing left out would still fit; equal scores are taken in their order, so no draw
decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from memograd.errors import BadInput
from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.network import Batch, logits_BA, writing_worth
from memograd.memory.reader import RuleReader
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import MemoryOp
from memograd.memory.search import Mode, retrieve
from memograd.tasks.memory_ops.delta_qa import AnswerStandard, recalled
from memograd.tasks.memory_ops.material import AskedProbe, EmbeddedLog, LogMemory
from memograd.tasks.memory_ops.walk import Walk

SHARE: Final = 0.5
RANDOM_DRAWS: Final = 5
LEAST: Final = -1e9  # liking of what may not be written at all
MODES: Final[tuple[Mode, ...]] = ("dense", "hybrid")
ALL_TURNS: Final = "all turns"
RANDOM: Final = "random half"

Unit = Literal["tokens", "turns"]
Liking = Callable[[EmbeddedLog], Sequence[float]]  # of each statement, in order


@dataclass(frozen=True)
class KeptHalf:
    """What a method kept of some logs, and what was found in it.

    tokens: kept, mean over logs. recalls: by mode of search, evidence recall of each question.
    logs: id of the log of each question.
    """

    name: str
    tokens: float
    recalls: Mapping[Mode, list[float]]
    logs: list[str]


def head_likes(head: TrainedHead, log: EmbeddedLog) -> list[float]:
    """Log odds of writing each statement down, in the memory that the head keeps."""
    walk = Walk(log, AnswerStandard(), asks=False)
    worths: list[float] = []
    while not walk.over:
        logits_A = logits_BA(head.weights, head.shape, Batch.of([walk.observe()]))[0]
        worths.append(max(writing_worth(logits_A), LEAST))
        walk.take(int(logits_A.argmax()))
    return worths


def novelty(log: EmbeddedLog) -> list[float]:
    """How far each statement is from every one before it: minus the greatest cosine."""
    similar_NN = np.tril(log.vectors_ND @ log.vectors_ND.T, k=-1) + np.triu(
        np.full((len(log.facts),) * 2, -1.0)
    )
    scores: list[float] = (-similar_NN.max(axis=1)).tolist()
    return scores


def rules_like(log: EmbeddedLog) -> list[float]:
    """1 where the rule reader of the running memory reads a fact in the turn; later ones first."""
    read = {source for fact in RuleReader().read(log.log.turns) for source in fact.sources}
    last = len(log.facts)
    return [
        (statement.turn_id in read) + number / last
        for number, statement in enumerate(log.log.statements)
    ]


def half_methods(heads: Mapping[str, TrainedHead]) -> dict[str, Liking]:
    """Every way to choose a half, by name, but the random one."""
    found: dict[str, Liking] = {
        "recent half": lambda log: range(len(log.facts)),
        "longest half": lambda log: log.tokens_N.tolist(),
        "most novel half": novelty,
        "half that the rules read": rules_like,
    }
    for name, head in heads.items():
        found[f"{name}, half"] = lambda log, head=head: head_likes(head, log)  # type: ignore[misc]
    return found


def compare_halves(
    logs: Sequence[EmbeddedLog],
    methods: Mapping[str, Liking],
    *,
    top_k: int = 10,
    unit: Unit = "tokens",
) -> list[KeptHalf]:
    """All turns, a random half (mean over draws), and each method's half, on the same questions."""
    everything = {log.log.id: list(range(len(log.facts))) for log in logs}
    found = [_ask(ALL_TURNS, logs, everything, top_k)]
    draws = [
        _kept(logs, lambda log, seed=seed: _random(log, seed), unit)  # type: ignore[misc]
        for seed in range(RANDOM_DRAWS)
    ]
    found.append(_mean([_ask(RANDOM, logs, kept, top_k) for kept in draws]))
    found += [
        _ask(name, logs, _kept(logs, liking, unit), top_k) for name, liking in methods.items()
    ]
    return found


def _random(log: EmbeddedLog, seed: int) -> list[float]:
    scores: list[float] = np.random.default_rng(seed).random(len(log.facts)).tolist()
    return scores


def _kept(logs: Sequence[EmbeddedLog], liking: Liking, unit: Unit) -> dict[str, list[int]]:
    found = {}
    for log in logs:
        cost = log.tokens_N.tolist() if unit == "tokens" else [1] * len(log.facts)
        found[log.log.id] = keep_top(list(liking(log)), cost, SHARE)
    return found


def _ask(
    name: str, logs: Sequence[EmbeddedLog], kept: Mapping[str, list[int]], top_k: int
) -> KeptHalf:
    """Every question with evidence, asked of the turns kept that were said by then."""
    recalls: dict[Mode, list[float]] = {mode: [] for mode in MODES}
    names: list[str] = []
    tokens = 0
    for log in logs:
        numbers = kept[log.log.id]
        tokens += int(log.tokens_N[numbers].sum())
        memory = LogMemory(log)
        for number in numbers:
            memory.apply(MemoryOp.add(log.facts[number].text), number)
        for one, after in zip(log.probes, log.asked_after, strict=True):
            if one.needed:
                names.append(log.log.id)
                for mode in MODES:
                    recalls[mode].append(_recall(memory, one, after, mode, top_k))
    return KeptHalf(name, tokens / max(1, len(logs)), recalls, names)


def _recall(memory: LogMemory, one: AskedProbe, after: int, mode: Mode, top_k: int) -> float:
    def said_by_then(item: MemoryItem) -> bool:
        return memory.carried[item.id] <= after

    hits = retrieve(memory.state.items, one.query, top_k=top_k, mode=mode, eligible=said_by_then)
    return recalled(memory.statements_in(hits), one.needed)


def _mean(draws: Sequence[KeptHalf]) -> KeptHalf:
    recalls: dict[Mode, list[float]] = {
        mode: np.mean([draw.recalls[mode] for draw in draws], axis=0).tolist() for mode in MODES
    }
    tokens = sum(draw.tokens for draw in draws) / len(draws)
    return KeptHalf(draws[0].name, tokens, recalls, draws[0].logs)


def share_of_tokens(tokens: Sequence[int], share: float) -> int:
    """The budget: `share` of the sum of `tokens`, rounded down; BadInput outside [0, 1]."""
    if not 0 <= share <= 1:
        raise BadInput(f"A budget is a share of all tokens between 0 and 1, not {share}.")
    if any(count < 0 for count in tokens):
        raise BadInput("A statement cannot cost less than no token.")
    # 0.29 * 100 is 28.999999999999996: rounding must not take a token away.
    return math.floor(share * sum(tokens) + 1e-9)


def keep_preferred(order: Sequence[int], tokens: Sequence[int], budget: int) -> list[int]:
    """The statements that fit, taken in the order of preference, returned by position.

    order: positions in `tokens`, best first, none twice; one that it leaves out is never kept.
    tokens [n]: what each statement costs. Raises BadInput for a position that is missing or twice.
    """
    if len(set(order)) < len(order) or not set(order) <= set(range(len(tokens))):
        raise BadInput(f"The order must name positions below {len(tokens)}, each at most once.")
    left, kept = budget, []
    for position in order:
        if tokens[position] <= left:
            left -= tokens[position]
            kept.append(position)
    return sorted(kept)


def keep_top(scores: Sequence[float], tokens: Sequence[int], share: float) -> list[int]:
    """Positions of the statements with the highest scores that fit `share` of all tokens.

    scores, tokens [n]: one each per statement. Raises BadInput when they differ in number, or a
    score is not finite.
    """
    if len(scores) != len(tokens) or not all(math.isfinite(score) for score in scores):
        raise BadInput(
            f"Each of {len(tokens)} statements needs one finite score; got {len(scores)} scores."
        )
    order = sorted(range(len(scores)), key=lambda position: -scores[position])
    return keep_preferred(order, tokens, share_of_tokens(tokens, share))
