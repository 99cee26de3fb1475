"""What an attempt was worth: pure functions of a conversation and its row, for `--rewards`.

    memograd.tasks.sql.rewards:execution:1,evidence:0.5,valid_sql:0.1      (`DEFAULT_REWARDS`)

- `execution` 0 or 1: the last statement that ran reads a table and gives the gold result (`compare`
  says what that forgives) because of what the table holds (`other_contents`).
- `evidence` from 0 to 1: how much of what the gold rows say is said in the final answer, in its own
  words and to the point. It is a product of three:
  - recall: the share of a quote's character pairs (of words, for words in Latin letters) that the
    answer has, mean over the quotes. Those that stand in no piece of the quote (`PIECE` letters on
    end, or all between two signs) count for `CRUMB` only, so crumbs of a row earn little in
    whatever order. Pairs that stand in the question are not counted, so repeating it earns nothing;
    pairs in a pasted stretch count in part.
  - precision: the share of the answer's pairs that are not pasted; and of those that it takes from
    the rows that were found, the share that the evidence has: 1 from `PRECISE` on, falling below.
  - length: 1 up to `ROOM` units and twice the evidence's, falling with the length beyond.
- `valid_sql` from 0 to 1: the share of tool calls whose statement ran and found something out
  about the tables (`other_contents.tells`).

All three are 0 without a final answer, and where no statement found anything, so an agent that
always says nothing, asks nothing or finds nothing scores 0. Any other reward may stand beside them
in the specification, a learned reward model too.

An answer that names a fact uses the row's words, and has to; an answer that pastes the row says
nothing that the row did not. The two differ in how much stands there unbroken:

- A passage is copied where every `PASSAGE` units of it (Chinese characters, words, numbers) stand
  so in a row. Signs, tags and line breaks are no units, so a list of the pieces is copied too.
- Copied passages that are no further apart than the shorter one is long make one stretch; fillers
  between pieces do not break it. All copied passages of `LONG` units or more are together as well,
  wherever they stand, so what is said between them does not break them either.
- `QUOTABLE` units of a stretch are quotation; of a longer one, the rest is pasted, and its units
  count for that share only.

Invariants: every value lies in [0, 1] and is a function of the conversation, the row and the
database alone. No text of at most `QUOTABLE` units has anything pasted, nor has one that shares no
passage with the rows; the cost grows with the lengths of both, not with their product.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from memograd.tasks.sql.other_contents import earns
from memograd.tasks.sql.tool import Attempt, read_attempt

PRECISE = 0.5
ROOM = 1_000
READ = 100_000
"""Characters of what was found that an answer is compared with, at most: each statement has an even
share of them, and a cell a quarter of it, so that finding much beside hides nothing."""

Completion = Sequence[Mapping[str, str]] | str


def execution(
    completions: Sequence[Completion],
    database: Sequence[str],
    gold_sql: Sequence[str],
    columns: Sequence[Sequence[str] | None],
) -> list[float]:
    """1 where the last statement that ran gives the gold result."""
    return [
        score_execution(read_attempt(said, place), place, sql, asked)
        for said, place, sql, asked in zip(completions, database, gold_sql, columns, strict=True)
    ]


def evidence(
    completions: Sequence[Completion],
    database: Sequence[str],
    evidence: Sequence[Sequence[str]],
    question: Sequence[str],
) -> list[float]:
    """How much of the evidence the final answer covers."""
    return [
        score_evidence(read_attempt(said, place), quotes, asked)
        for said, place, quotes, asked in zip(
            completions, database, evidence, question, strict=True
        )
    ]


def valid_sql(completions: Sequence[Completion], database: Sequence[str]) -> list[float]:
    """The share of tool calls that ran and found something out about the tables."""
    return [
        score_valid_sql(read_attempt(said, place))
        for said, place in zip(completions, database, strict=True)
    ]


def score_execution(
    attempt: Attempt, database: str, gold_sql: str, columns: Sequence[str] | None
) -> float:
    """1 or 0; see the module."""
    if not attempt.answer or not attempt.ran:
        return 0.0
    return float(earns(database, *attempt.ran[-1], gold_sql, columns))


def score_evidence(attempt: Attempt, quotes: Sequence[str], question: str) -> float:
    """From 0 to 1; see the module."""
    if not any(attempt.found):
        return 0.0
    return covered(attempt.answer, quotes, question, _read_by(attempt))


def score_valid_sql(attempt: Attempt) -> float:
    """From 0 to 1; see the module."""
    if not attempt.answer or not attempt.calls:
        return 0.0
    return sum(attempt.found) / len(attempt.calls)


def _read_by(attempt: Attempt) -> list[str]:
    """The texts that were found, each once, up to `READ` characters; see there."""
    texts: dict[str, None] = {}
    share = READ // max(1, len(attempt.ran))
    for _, result in attempt.ran:
        room = share
        for cell in (cell for row in result.rows for cell in row):
            if isinstance(cell, str) and room > 0:
                text = cell[: min(room, share // 4)]
                room -= len(text)
                texts[text] = None
    return list(texts)


def covered(answer: str, quotes: Sequence[str], question: str, rows: Sequence[str] = ()) -> float:
    """How well `answer` says what `quotes` say, from 0 to 1; see `evidence` in the module.

    `rows`: texts of what else the agent read, from which it could have pasted.
    """
    runs, known = runs_of(answer), _pairs(runs_of(question))
    quoted = [_pairs(runs_of(quote)) for quote in quotes]
    wanted = [pairs for found in quoted if (pairs := found.keys() - known)]
    units = sum(map(len, runs))
    if not wanted or not units:
        return 0.0
    grams = _grams([*quotes, *rows])
    shares = counted_share(runs, grams)
    said = _pairs(runs, shares)
    told = _pairs(runs, shares, _in_pieces(runs, quotes))
    told = {pair: max(told.get(pair, 0.0), CRUMB * share) for pair, share in said.items()}
    recall = fmean(sum(told.get(pair, 0.0) for pair in pairs) / len(pairs) for pairs in wanted)
    written = fmean(said.values()) if said else 1.0
    asked = {pair for pairs in wanted for pair in pairs}
    read = {pair for row in rows for pair in _pairs(runs_of(row))} - known.keys()
    taken = said.keys() & (read | asked)
    precise = min(1.0, len(taken & asked) / len(taken) / PRECISE) if taken else 1.0
    room = ROOM + 2 * sum(sum(map(len, runs_of(quote))) for quote in quotes)
    return recall * written * precise * min(1.0, room / units)


def _pairs(
    runs: Runs, shares: Sequence[float] | None = None, pieces: Sequence[int] | None = None
) -> dict[str, float]:
    """Words, numbers, and all neighbours (Chinese characters, words) of a text, each with the share
    for which it counts: 1, or by `shares`, one a unit. With `pieces`, one a unit, only what stands
    in a piece (`_in_pieces`)."""
    found: dict[str, float] = {}
    place = 0
    for run in runs:
        counts = [1.0] * len(run) if shares is None else shares[place : place + len(run)]
        ends = [len(run)] * len(run)
        if pieces is not None:
            ends = [end - place for end in pieces[place : place + len(run)]]
        place += len(run)
        for at, (unit, share, end) in enumerate(zip(run, counts, ends, strict=True)):
            if at < end and (len(unit) > 1 or unit.isdigit()):
                found[unit] = max(found.get(unit, 0.0), share)
        for at, ((first, one), (second, other)) in enumerate(
            pairwise(zip(run, counts, strict=True))
        ):
            if at + 1 < ends[at]:
                pair = first + second
                found[pair] = max(found.get(pair, 0.0), min(one, other))
    return found


PIECE = 4
"""Letters that must stand together to be taken for a part of a quote."""
CRUMB = 0.25
"""For how much a pair counts that stands in no piece."""


def _in_pieces(runs: Runs, quotes: Iterable[str]) -> list[int]:
    """For each unit of the answer, where the piece of a quote that it stands in ends, at the
    latest; the unit's own place where it stands in none."""
    pieces: set[tuple[str, ...]] = set()
    for quote in quotes:
        parts = runs_of(quote)
        pieces.update(tuple(part) for part in parts if sum(map(len, part)) < PIECE)
        pieces.update(_pieces_of([unit for part in parts for unit in part]))
    lengths = {len(piece) for piece in pieces} - {0}
    said = [unit for run in runs for unit in run]
    ends = list(range(len(said)))
    for begin in range(len(said)):
        for length in lengths:
            piece = tuple(said[begin : begin + length])
            if len(piece) == length and piece in pieces:
                for place in range(begin, begin + length):
                    ends[place] = max(ends[place], begin + length)
    return ends


def _pieces_of(units: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """From each unit on, and up to each unit, as few as have `PIECE` letters."""
    for place in range(len(units)):
        for step in (1, -1):
            letters, other = 0, place
            while 0 <= other < len(units) and letters < PIECE:
                letters += len(units[other])
                other += step
            if letters < PIECE:
                continue
            yield tuple(units[place:other] if step > 0 else units[other + 1 : place + 1])
    yield from (pair for pair in pairwise(units) if max(map(len, pair)) >= PIECE)


PASSAGE = 4
LONG = 8
QUOTABLE = 24
_NEAR = 2
"""Copied passages that are this near make one stretch, however short they are."""

_TAG = re.compile(r"<[^<>]*>")
_UNITS = re.compile(r"[a-z]+|\d+(?:\.\d+)?|[^\W_a-z\d]")
_SIGNS = re.compile(r"[^\w\s.%]+")

Runs = list[list[str]]
"""The units of a text, in the order said, those between two signs together."""


class Passage(NamedTuple):
    """Units `begin` to `end` of an answer, which are copied."""

    begin: int
    end: int

    @property
    def length(self) -> int:
        """Units of it."""
        return self.end - self.begin


def runs_of(text: str) -> Runs:
    """The text as units, without tags; signs part runs, white space does not."""
    plain = unicodedata.normalize("NFKC", _TAG.sub(" ", text)).lower()
    return [_UNITS.findall(run) for run in _SIGNS.split(plain)]


def counted_share(runs: Runs, grams: Collection[tuple[str, ...]]) -> list[float]:
    """The share for which each unit of an answer counts: 1, less where it stands in a pasted
    stretch, of passages in `grams`. One number a unit, in the order said."""
    said = [unit for run in runs for unit in run]
    shares = [1.0] * len(said)
    if len(said) <= QUOTABLE:
        return shares
    passages = _copied(said, grams)
    for stretch in _stretches(passages):
        _lower(shares, stretch, [Passage(stretch[0].begin, stretch[-1].end)])
    quoted = [passage for passage in passages if passage.length >= LONG]
    _lower(shares, quoted, quoted)
    return shares


def _lower(shares: list[float], copied: Sequence[Passage], places: Sequence[Passage]) -> None:
    """Let units at `places` count for as much as may be quoted of what is copied there."""
    length = sum(passage.length for passage in copied)
    if length <= QUOTABLE:
        return
    for place in places:
        for at in range(place.begin, place.end):
            shares[at] = min(shares[at], QUOTABLE / length)


def _grams(rows: Iterable[str]) -> set[tuple[str, ...]]:
    grams: set[tuple[str, ...]] = set()
    for text in rows:
        grams.update(_windows([unit for run in runs_of(text) for unit in run]))
    return grams


def _windows(units: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(units[start:] for start in range(PASSAGE)), strict=False)


def _copied(said: Sequence[str], grams: Collection[tuple[str, ...]]) -> list[Passage]:
    found: list[Passage] = []
    for begin, gram in enumerate(_windows(said)):
        if gram not in grams:
            continue
        if found and begin <= found[-1].end:
            found[-1] = Passage(found[-1].begin, begin + PASSAGE)
        else:
            found.append(Passage(begin, begin + PASSAGE))
    return found


def _stretches(passages: Sequence[Passage]) -> list[list[Passage]]:
    """The passages, those that are near each other together."""
    found: list[list[Passage]] = []
    for passage in passages:
        if found:
            earlier = found[-1][-1]
            if passage.begin - earlier.end <= max(_NEAR, min(passage.length, earlier.length)):
                found[-1].append(passage)
                continue
        found.append([passage])
    return found
