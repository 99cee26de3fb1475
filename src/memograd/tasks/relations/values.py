"""Trains the pointer to another value (`memory/relations/values.py`).

Two statements of a written dialogue, before and after a correction or a change, mostly differ in
one value: "User's room is 508." and "User's room is 580." Where the message has the new one, the
two spans are known, in the statement and in what the memory's reader makes of the old message.
Remarks, facts beside, endings, and changes of whole statements teach that no value is replaced. The
encoder does not learn; its vectors are computed once.

Invariant: the network computes what `ValuePointer.scores` does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from memograd.errors import BadInput
from memograd.memory.embedders.e5 import normalised
from memograd.memory.language import is_chinese
from memograd.memory.relations.model import RelationModel, ValuesSeen
from memograd.memory.relations.rows import Span
from memograd.memory.relations.values import DEPTHS, HEADS, ValuePointer
from memograd.tasks.relations.rows import WrittenFact, WrittenTurn

GIVES: Final = ("replace", "correct")
NONE: Final = ("comment", "beside", "same", "detail", "end", "unrelated")
_NONE_SHARE: Final = 0.25  # of the items that no value is replaced in
_UNRELATED_SHARE: Final = 0.05  # of those that the message does not speak of
_LOOK_ALIKE: Final = frozenset({"comment", "addition", "other_person", "hypothetical_or_past"})
"""Kinds of dialogues in which a message looks as if it replaced something."""
_LONGEST_MESSAGE: Final = 500  # characters
_UNCLEAR: Final = 0.3  # what a change counts whose statements differ in more, or in other words
_BEFORE_SHARE: Final = 0.7  # of rows with what came before
_WORD: Final = re.compile(
    r"[A-Za-z]+(?:['’-][A-Za-z]+)*|\d+(?:[.,:/]\d+)*|[\u4e00-\u9fff]|[^\sA-Za-z\d]"
)


@dataclass(frozen=True)
class ValueRow:
    """A message and an item. old, new: characters of the value in the item and in the message, None
    where no value is replaced. counts: in the loss. relation: what the dialogue says."""

    message: str
    before: Sequence[tuple[str, str]]
    item: str
    old: Span | None
    new: Span | None
    counts: float
    relation: str

    @property
    def right(self) -> str:
        """The item with the new value."""
        if self.old is None or self.new is None:
            return self.item
        start, end = self.old
        return self.item[:start] + self.message[slice(*self.new)] + self.item[end:]


def value_rows(turns: Sequence[WrittenTurn], seed: int) -> list[ValueRow]:
    """The rows of these turns; which of those without another value, the seed decides."""
    rng = random.Random(f"values:{seed}")
    rows = []
    for said in turns:
        text = normalised(said.text)
        if said.role != "user" or said.group is not None or len(text) > _LONGEST_MESSAGE:
            continue
        for fact, relation in zip(said.items, said.relations, strict=True):
            share = _NONE_SHARE
            if relation == "unrelated" and said.kind not in _LOOK_ALIKE:
                share = _UNRELATED_SHARE
            if relation in NONE and rng.random() < share:
                before = said.before[-2:] if rng.random() < _BEFORE_SHARE else ()
                rows += [
                    ValueRow(text, before, item, None, None, 1.0, relation)
                    for item in _wordings(fact)
                ]
            elif relation in GIVES:
                before = said.before[-2:] if rng.random() < _BEFORE_SHARE else ()
                rows += _given(said, text, before, fact, relation)
    return rows


def _given(
    said: WrittenTurn,
    text: str,
    before: Sequence[tuple[str, str]],
    fact: WrittenFact,
    relation: str,
) -> list[ValueRow]:
    told = (
        (new, found)
        for new in said.facts
        if (found := one_value(normalised(fact.statement), normalised(new.statement)))
    )
    new, found = next(told, (None, None))
    stands = _stands(found[1], text) if found is not None else []
    if new is None or found is None or not stands:
        return [
            ValueRow(text, before, item, None, None, _UNCLEAR, relation) for item in _wordings(fact)
        ]
    old = found[0]
    quote = text.find(normalised(new.quote))
    inside = [at for at in stands if quote >= 0 and quote <= at.start < quote + len(new.quote)]
    rows = []
    written = normalised(fact.statement)
    for item in _wordings(fact):
        places = [old] if item == written else _stands(written[slice(*old)], item)
        if len(places) == 1:
            mine, its = widened(item, places[0], text, (inside or stands)[-1])
            rows.append(ValueRow(text, before, item, mine, its, 1.0, relation))
    return rows


def _wordings(fact: WrittenFact) -> list[str]:
    """The statement, and what the reader makes of the speaker's words, or these."""
    return list(dict.fromkeys(normalised(one) for one in (fact.statement, fact.item or fact.quote)))


def one_value(old: str, new: str) -> tuple[Span, str] | None:
    """Where the old statement has another value than the new one, and that value; None where they
    differ in nothing, in more, or in how they begin."""
    mine, its = list(_WORD.finditer(old)), list(_WORD.finditer(new))
    ours, theirs = [m[0].casefold() for m in mine], [m[0].casefold() for m in its]
    shorter = min(len(ours), len(theirs))
    same = next((n for n in range(shorter) if ours[n] != theirs[n]), shorter)
    behind = next(
        (n for n in range(shorter - same) if ours[-1 - n] != theirs[-1 - n]), shorter - same
    )
    gone, come = mine[same : len(mine) - behind], its[same : len(its) - behind]
    if not (same and same + behind > 1 and gone and come):
        return None
    return Span(gone[0].start(), gone[-1].end()), new[come[0].start() : come[-1].end()]


def _stands(value: str, text: str) -> list[Span]:
    """Where a value stands as whole words."""
    first = r"(?<![A-Za-z\d])" if re.match(r"[A-Za-z\d]", value) else ""
    last = r"(?![A-Za-z\d])" if re.search(r"[A-Za-z\d]$", value) else ""
    return [
        Span(*found.span())
        for found in re.finditer(first + re.escape(value) + last, text, re.IGNORECASE)
    ]


def widened(item: str, old: Span, message: str, new: Span) -> tuple[Span, Span]:
    """Both spans with the Chinese characters at their edges that both texts have: 中 of 吴中区
    and 江 of 吴江区 are 吴中区 and 吴江区, so that a value begins in one place alone."""
    (a, b), (c, d) = old, new
    while a and c and item[a - 1] == message[c - 1] and is_chinese(item[a - 1]):
        a, c = a - 1, c - 1
    while b < len(item) and d < len(message) and item[b] == message[d] and is_chinese(item[b]):
        b, d = b + 1, d + 1
    return Span(a, b), Span(c, d)


@dataclass(frozen=True)
class SeenRow:
    """A row with what the encoder makes of it; tokens: of the old and of the new value, first and
    last, or None."""

    row: ValueRow
    seen: ValuesSeen
    tokens: tuple[int, int, int, int] | None


def seen_rows(model: RelationModel, rows: Sequence[ValueRow]) -> list[SeenRow]:
    """The rows as the pointer sees them, without those whose values do not fit."""
    found = []
    for row in rows:
        seen = model.values_seen(row.message, row.before, row.item)
        tokens = None
        if row.old is not None and row.new is not None:
            mine = _tokens(row.old, seen.item_places, seen.item.start)
            its = _tokens(row.new, seen.places, seen.message.start)
            if mine is None or its is None:
                continue
            tokens = (*mine, *its)
        half = ValuesSeen(
            seen.vectors.astype(np.float16),
            seen.parts,
            seen.message,
            seen.item,
            seen.places,
            seen.item_places,
        )
        found.append(SeenRow(row, half, tokens))
    return found


def _tokens(span: Span, places: Sequence[tuple[int, int]], first: int) -> tuple[int, int] | None:
    inside = [n for n, (a, b) in enumerate(places) if a < span.end and b > span.start and b > a]
    return (first + inside[0], first + inside[-1]) if inside else None


class PointerNetwork(nn.Module):
    """What `ValuePointer` computes, in torch."""

    def __init__(self, hidden: int, *, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(len(DEPTHS) * hidden)
        self.enter = nn.Linear(len(DEPTHS) * hidden, width)
        self.parts = nn.Embedding(3, width)
        self.layers = nn.ModuleList(_PointerLayer(width, dropout) for _ in range(layers))
        self.none = nn.Linear(2 * width, 1)
        self.point = nn.Linear(width, 6)
        self._dropout = dropout

    def forward(self, batch: _Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores `[B, T, 6]`, and the log-odds `[B]` that no value is replaced."""
        x = functional.dropout(self.norm(batch.vectors), self._dropout, self.training)
        x = self.enter(x) + self.parts(batch.parts)
        for layer in self.layers:
            x = layer(x, batch.hide)

        def mean(of: torch.Tensor) -> torch.Tensor:
            total: torch.Tensor = (x * of[..., None]).sum(1) / of.sum(1, keepdim=True)
            return total

        none = self.none(torch.cat([mean(batch.message), mean(batch.item)], 1))[:, 0]
        return self.point(x), none


class _PointerLayer(nn.Module):
    """Attention and a feed-forward part, each behind a norm."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self._drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, hide: torch.Tensor) -> torch.Tensor:
        rows, tokens, width = x.shape
        mixed = self.mix(self.first(x)).view(rows, tokens, 3, HEADS, -1)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query @ key.transpose(-1, -2) * (width // HEADS) ** -0.5 + hide, -1)
        attended = (self._drop(weights) @ value).transpose(1, 2).reshape(rows, tokens, width)
        x = x + self._drop(self.out(attended))
        wide = self._drop(torch.relu(self.wide(self.second(x))))
        left: torch.Tensor = x + self._drop(self.narrow(wide))
        return left


@dataclass(frozen=True)
class _Batch:
    """vectors `[B, T, 3 hidden]`, parts `[B, T]`; hide: what padding adds to attention; message,
    item, old, new: 1 for the tokens of each `[B, T]`; ends: the four tokens `[B, 4]`, or -100;
    given: bool `[B]`; counts `[B]`."""

    vectors: torch.Tensor
    parts: torch.Tensor
    hide: torch.Tensor
    message: torch.Tensor
    item: torch.Tensor
    old: torch.Tensor
    new: torch.Tensor
    ends: torch.Tensor
    given: torch.Tensor
    counts: torch.Tensor


def _batch_of(rows: Sequence[SeenRow]) -> _Batch:
    size = len(rows), max(len(one.seen.parts) for one in rows)
    width = rows[0].seen.vectors.shape[1]
    vectors, parts = torch.zeros(*size, width), torch.zeros(size, dtype=torch.long)
    marks = torch.zeros(4, *size)
    hide = torch.full(size, -1e4)
    ends = torch.full((size[0], 4), -100)
    for n, one in enumerate(rows):
        length = len(one.seen.parts)
        vectors[n, :length] = torch.from_numpy(one.seen.vectors.astype(np.float32))
        parts[n, :length] = torch.tensor(one.seen.parts)
        hide[n, :length] = 0
        marks[0, n, slice(*one.seen.message)] = 1
        marks[1, n, slice(*one.seen.item)] = 1
        if one.tokens is not None:
            a, b, c, d = one.tokens
            marks[2, n, a : b + 1] = 1
            marks[3, n, c : d + 1] = 1
            ends[n] = torch.tensor(one.tokens)
    given = torch.tensor([one.tokens is not None for one in rows])
    counts = torch.tensor([one.row.counts for one in rows])
    message, item, old, new = marks
    return _Batch(vectors, parts, hide[:, None, None], message, item, old, new, ends, given, counts)


_RATE: Final = 1e-3  # of the optimiser, at its peak


def train_pointer(
    rows: Sequence[SeenRow],
    *,
    seed: int,
    passes: int = 5,
    width: int = 192,
    layers: int = 2,
    dropout: float = 0.3,
    size: int = 32,
) -> ValuePointer:
    """A pointer of these rows. Raises BadInput where in none of them a value is replaced."""
    if not any(one.tokens for one in rows):
        raise BadInput("No message of the dialogues replaces one value of a fact: name more files.")
    torch.manual_seed(seed)
    rng = random.Random(f"values:{seed}:order")
    hidden = rows[0].seen.vectors.shape[1] // len(DEPTHS)
    network = PointerNetwork(hidden, width=width, layers=layers, dropout=dropout)
    optimiser = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, _RATE, total_steps=passes * -(-len(rows) // size) + 1
    )
    for _ in range(passes):
        order = sorted(rows, key=lambda one: len(one.seen.parts) + 8 * rng.random())
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        rng.shuffle(batches)
        for batch in batches:
            loss = _loss(network, _batch_of(batch))
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    state = {name: tensor.detach().numpy() for name, tensor in network.state_dict().items()}
    return ValuePointer({name: tensor.astype(np.float32) for name, tensor in state.items()})


_WITHIN: Final = 0.3  # what the tokens of a value count beside its ends


def _loss(network: PointerNetwork, batch: _Batch) -> torch.Tensor:
    scores, none = network(batch)
    wrong = functional.binary_cross_entropy_with_logits(
        none, (~batch.given).float(), reduction="none"
    )
    loss: torch.Tensor = (wrong * batch.counts).sum() / batch.counts.sum()
    if not batch.given.any():
        return loss
    for column, of in enumerate((batch.item, batch.item, batch.message, batch.message)):
        points = scores[..., column].masked_fill(of == 0, -1e4)
        loss = loss + functional.cross_entropy(points[batch.given], batch.ends[batch.given, column])
    for column, of, wanted in ((4, batch.item, batch.old), (5, batch.message, batch.new)):
        within = functional.binary_cross_entropy_with_logits(
            scores[..., column], wanted, reduction="none"
        )
        loss = loss + _WITHIN * (within * of)[batch.given].sum() / batch.given.sum()
    return loss
