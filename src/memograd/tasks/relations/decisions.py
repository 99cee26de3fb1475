"""What a memory decides about one message, as a policy: close, doubt or leave each item, keep each
sentence or not.

A memory compares the model's probability that an item is closed with two of its thresholds, and
that a sentence holds a fact with one (`memory.manager.relations`, `memory.reader.trained`). The
policy does the same with noise: with z the log odds and e a draw of the logistic distribution,

    close  where z + e > log odds of close_above         keep   where w + e > log odds of the least
    doubt  where only > log odds of doubt_above                 worth of such a sentence
    leave  else                                          drop   else

Without noise it decides as the memory does, so what is learnt is learnt for the rule that serves.

A dialogue is walked turn by turn. What the decisions without noise leave in the memory is what the
next message is read beside: an item that was wrongly left stands there, one that was lost does not.

Invariant: the probabilities of a decision sum to 1; decisions without noise are the likeliest side
of every threshold.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from memograd.memory.relations.rows import ITEMS_A_ROW, RelationRow, RowBuilder, Span
from memograd.memory.relations.thresholds import Thresholds
from memograd.memory.relations.weights import WORTHS
from memograd.tasks.relations.questions import AskedDialogue, FactQuestion, Held, value
from memograd.tasks.relations.rows import (
    CLOSES,
    FACT,
    LEAVES,
    SEGMENTS_A_ROW,
    Examples,
    ItemWording,
    WrittenFact,
    segments_of,
)
from memograd.tasks.relations.settings import LaterConfig
from memograd.tasks.relations.wording import holds, in_both, spans_of

LEAVE, DOUBT, CLOSE = 0, 1, 2  # of an item
DROP, KEEP = 0, 1  # of a sentence
KEPT_FROM: Final = 0.5  # share of its words from which a fact is an item of the next message

_NO_FACT: Final = [number for number in range(len(WORTHS)) if number != FACT]
_NEVER: Final = -1e4  # log-probability of what cannot be chosen


def log_odds(probability: float) -> float:
    """Of a probability above 0 and below 1."""
    return math.log(probability / (1 - probability))


class State(NamedTuple):
    """A message that a memory hears, and the facts that it holds before: by name."""

    dialogue: AskedDialogue
    turn: int
    held: Mapping[str, Held]


@dataclass(frozen=True)
class Posed:
    """One state as it is decided on.

    items: the facts of each item of the row; no name: an item of another dialogue. segments: the
    share of each fact that each sentence holds. tokens: of each sentence. least: the log odds from
    which each is kept. told: facts of the message that no sentence holds, which are always kept.
    """

    state: State
    row: RelationRow
    texts: Sequence[str]
    items: Sequence[tuple[str, ...]]
    spans: Sequence[Span]
    segments: Sequence[Mapping[str, float]]
    noise: Sequence[bool]
    tokens: Sequence[int]
    least: Sequence[float]
    told: frozenset[str]
    before: Sequence[tuple[str, str]]
    questions: Sequence[FactQuestion]

    def after(self, items: Sequence[int], segments: Sequence[int]) -> dict[str, Held]:
        """What the memory holds after a decision, each fact with the share that was kept."""
        held = dict(self.state.held)
        gone = self.state.dialogue.gone(self.state.turn)
        for names, chosen in zip(self.items, items, strict=True):
            # Of an item of two facts the memory takes out the part that is meant.
            for name in gone.intersection(names) or names:
                if chosen == CLOSE:
                    held.pop(name, None)
                elif chosen == DOUBT and name in held:
                    held[name] = held[name]._replace(doubted=True)
        shares = dict.fromkeys(self.told, 1.0)
        for part, kept in zip(self.segments, segments, strict=True):
            if kept:
                for name, share in part.items():
                    shares[name] = shares.get(name, 0.0) + share
        return held | {name: Held(min(share, 1.0)) for name, share in shares.items()}

    def reward(self, items: Sequence[int], segments: Sequence[int], later: LaterConfig) -> float:
        """What the memory is worth after the decision, and the items of other dialogues in it."""
        kept = [n for n, chosen in enumerate(segments) if chosen == KEEP]
        foreign = [n for n, names in enumerate(self.items) if not names]
        loses = {LEAVE: 0.0, DOUBT: 1 - later.doubt_answers, CLOSE: 1.0}
        lost = sum(loses[items[n]] for n in foreign)
        return (
            value(
                self.questions,
                self.after(items, segments),
                later,
                noise=sum(self.noise[n] for n in kept),
                tokens=sum(self.tokens[n] for n in kept),
            )
            - later.unasked * lost
        )


def carried(posed: Posed, items: Sequence[int], segments: Sequence[int]) -> dict[str, Held]:
    """What the next message is read beside."""
    after = posed.after(items, segments)
    return {name: held for name, held in after.items() if held.share > KEPT_FROM}


def by_rule(state: State) -> dict[str, Held] | None:
    """What the memory holds after a turn that no model decides about; None where one does.

    Tools and system messages never close anything, and what they tell is taken as told.
    """
    said = state.dialogue.turns[state.turn]
    if said.role in ("user", "assistant") and segments_of(said.text, clauses=False):
        return None
    return dict(state.held) | {name: Held() for name in state.dialogue.told[state.turn]}


def posed_for_training(
    state: State, examples: Examples, builder: RowBuilder, items_as_read: float, later: LaterConfig,
    thresholds: Thresholds, rng: random.Random,
) -> Posed:  # fmt: skip
    """The state as an example of supervised training words it, facts of other dialogues beside."""
    said = state.dialogue.turns[state.turn]
    wording = ItemWording(rng.random() < items_as_read, rng)
    facts: list[tuple[str, WrittenFact]] = []
    foreign: list[WrittenFact] = []
    if said.role == "user":
        facts = [(name, state.dialogue.fact(name)) for name in state.held]
        rng.shuffle(facts)
        facts = facts[: ITEMS_A_ROW - 2]
        most = rng.choice([0, 0, 0, 1, 2, 5] if facts else [0, 0, 0, 1, 2])
        foreign = [*examples.foreign(said, most, rng)][: ITEMS_A_ROW - len(facts)]
    items: dict[str, tuple[str, ...]] = {}
    for name, fact in facts:
        text = wording(fact)
        items[text] = (*items.get(text, ()), name)
    items |= {text: () for fact in foreign if (text := wording(fact)) not in items}
    order = list(items)
    rng.shuffle(order)
    clauses = said.role == "user" and rng.random() < 0.5
    return _posed(
        state,
        builder,
        {text: items[text] for text in order},
        examples.before(said, rng),
        later,
        thresholds,
        clauses=clauses,
    )


def posed_as_served(
    state: State, builder: RowBuilder, later: LaterConfig, thresholds: Thresholds
) -> Posed:
    """The state as the memory meets it: its reader's words, what really came before, sentences."""
    said = state.dialogue.turns[state.turn]
    items: dict[str, tuple[str, ...]] = {}
    for name in state.held if said.role == "user" else ():
        fact = state.dialogue.fact(name)
        text = fact.item or fact.statement
        items[text] = (*items.get(text, ()), name)
    return _posed(state, builder, items, said.before, later, thresholds, clauses=False)


def _posed(
    state: State,
    builder: RowBuilder,
    items: Mapping[str, tuple[str, ...]],
    before: Sequence[tuple[str, str]],
    later: LaterConfig,
    thresholds: Thresholds,
    *,
    clauses: bool,
) -> Posed:
    said, told = state.dialogue.turns[state.turn], state.dialogue.told[state.turn]
    spans = segments_of(said.text, clauses=clauses)[:SEGMENTS_A_ROW]
    quotes = dict(
        zip(told, spans_of([fact.quote for fact in told.values()], said.text), strict=True)
    )
    shared = [{name: in_both(span, quote) for name, quote in quotes.items()} for span in spans]
    whole = {name: sum(part[name] for part in shared) for name in quotes}
    row = builder.row(said.text, role=said.role, before=before, items=list(items), segments=spans)
    least = thresholds.keep_clause_above if clauses else thresholds.keep_above
    if said.role == "assistant":
        least = thresholds.keep_assistant_above
    return Posed(
        state=state,
        row=row,
        texts=list(items),
        items=list(items.values()),
        spans=spans,
        segments=[
            {name: part[name] / whole[name] for name in part if part[name]} for part in shared
        ],
        noise=[not any(holds(span, quote) for quote in quotes.values()) for span in spans],
        tokens=[len(builder.tokens(said.text[a:b])) for a, b in spans],
        least=[log_odds(least)] * len(spans),
        told=frozenset(name for name in quotes if not whole[name]),
        before=before,
        questions=state.dialogue.questions(state.turn, later),
    )


@dataclass(frozen=True)
class DecisionDistributions:
    """The decisions of B states as distributions.

    items_BI3: log-probabilities of LEAVE, DOUBT, CLOSE. segments_BS2: of DROP, KEEP. Places without
    an item or a sentence have 0 for the first and never choose another.
    """

    items_BI3: torch.Tensor
    segments_BS2: torch.Tensor
    real_BT: torch.Tensor = field(repr=False)

    def sample(self, group: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """`group` joint decisions of every state: `[B, G, I]` and `[B, G, S]`."""

        def drawn(logs: torch.Tensor) -> torch.Tensor:
            states, slots, choices = logs.shape
            if not slots:
                return torch.zeros((states, group, 0), dtype=torch.long)
            chosen = torch.multinomial(
                logs.detach().exp().reshape(-1, choices), group, True, generator=generator
            )
            return chosen.reshape(states, slots, group).transpose(1, 2)

        return drawn(self.items_BI3), drawn(self.segments_BS2)

    def without_noise(self, state: int, items: int, segments: int) -> tuple[list[int], list[int]]:
        """The decision of one state that no noise enters: the median of the distribution."""
        leave, _, close = self.items_BI3[state, :items].detach().exp().unbind(-1)
        chosen = torch.where(close >= 0.5, CLOSE, torch.where(leave > 0.5, LEAVE, DOUBT))
        keep = self.segments_BS2[state, :segments, KEEP].detach().exp() >= 0.5
        return chosen.tolist(), keep.long().tolist()

    def logprobs(self, items_BGI: torch.Tensor, segments_BGS: torch.Tensor) -> torch.Tensor:
        """Log-probability of every single choice `[B, G, I + S]`."""

        def of(logs: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
            spread = logs[:, None].expand(*chosen.shape, logs.shape[-1])
            return spread.gather(-1, chosen[..., None]).squeeze(-1)

        return torch.cat([of(self.items_BI3, items_BGI), of(self.segments_BS2, segments_BGS)], -1)


def policy_of(
    relations: torch.Tensor,
    worths: torch.Tensor,
    posed: Sequence[Posed],
    temperatures: tuple[float, float],
    thresholds: Thresholds,
) -> DecisionDistributions:
    """relations: logits `[B, I, 9]`; worths: `[B, S, 3]`; temperatures: of either."""
    z, w = closing_odds(relations, temperatures[0]), fact_odds(worths, temperatures[1])
    real_I = _real([len(one.items) for one in posed], z.shape[1])
    real_S = _real([len(one.segments) for one in posed], w.shape[1])
    close, doubt = log_odds(thresholds.close_above), log_odds(thresholds.doubt_above)
    leaves, closes = functional.logsigmoid(doubt - z), functional.logsigmoid(z - close)
    # sigma(a) - sigma(b) = sigma(a) sigma(-b) (1 - exp(b - a)), which does not cancel.
    doubts = functional.logsigmoid(close - z) + functional.logsigmoid(z - doubt)
    doubts = doubts + math.log1p(-math.exp(doubt - close))
    least = torch.zeros(w.shape)
    for number, one in enumerate(posed):
        least[number, : len(one.least)] = torch.tensor(one.least)
    keeps, drops = functional.logsigmoid(w - least), functional.logsigmoid(least - w)
    return DecisionDistributions(
        _masked(torch.stack([leaves, doubts, closes], -1), real_I),
        _masked(torch.stack([drops, keeps], -1), real_S),
        torch.cat([real_I, real_S], 1),
    )


def greedy(
    z: Sequence[float], w: Sequence[float], least: Sequence[float], thresholds: Thresholds
) -> tuple[list[int], list[int]]:
    """The decision without noise, of log odds."""
    close, doubt = log_odds(thresholds.close_above), log_odds(thresholds.doubt_above)
    items = [CLOSE if one >= close else DOUBT if one >= doubt else LEAVE for one in z]
    return items, [KEEP if a >= b else DROP for a, b in zip(w, least, strict=True)]


def closing_odds(relations: torch.Tensor, temperature: float) -> torch.Tensor:
    """Log odds that an item is closed, of logits `[..., 9]`."""
    logits = relations / temperature
    return logits[..., CLOSES].logsumexp(-1) - logits[..., LEAVES].logsumexp(-1)


def fact_odds(worths: torch.Tensor, temperature: float) -> torch.Tensor:
    """Log odds that a sentence holds a fact, of logits `[..., 3]`."""
    logits = worths / temperature
    return logits[..., FACT] - logits[..., _NO_FACT].logsumexp(-1)


def _real(counts: Sequence[int], most: int) -> torch.Tensor:
    return torch.from_numpy(np.arange(most) < np.array(counts)[:, None])


def _masked(logs: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    nothing = torch.full((logs.shape[-1],), _NEVER)
    nothing[0] = 0.0
    return torch.where(real[..., None], logs, nothing)
