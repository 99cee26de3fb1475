"""What an attempt was worth: pure functions of a conversation and its row, for `--rewards`.

    memograd.tasks.sql.rewards:execution:1,evidence:0.5,valid_sql:0.1      (`DEFAULT_REWARDS`)

- `execution` 0 or 1: the last statement that ran reads a table and gives the gold result (`compare`
  says what that forgives).
- `evidence` from 0 to 1: how much of what the gold rows say is said in the final answer: the share
  of a quote's character pairs (of words, for words in Latin letters) that the answer has, mean over
  the quotes. Pairs that stand in the question are not counted, so repeating it earns nothing.
- `valid_sql` from 0 to 1: the share of tool calls whose statement ran, read a table and found
  something.

All three are 0 without a final answer, and where no statement found anything, so an agent that
always says nothing, asks nothing or finds nothing scores 0. Any other reward may stand beside them
in the specification, a learned reward model too.

Invariant: every value lies in [0, 1] and is a function of the conversation, the row and the
database alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from memograd.tasks.sql.attempt import Attempt, read_attempt
from memograd.tasks.sql.compare import found_something, gold_of, matches

"""The rewards of a run that names none."""

Completion = Sequence[Mapping[str, str]] | str

_TAG = re.compile(r"<[^<>]*>")
_UNITS = re.compile(r"[a-z]+|\d+(?:\.\d+)?|[^\W_a-z\d]")


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
    """The share of tool calls that ran, read a table and found something."""
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
    gold = gold_of(database, gold_sql, None if columns is None else tuple(columns))
    return float(found_something(*attempt.ran[-1]) and matches(attempt.ran[-1][1], gold))


def score_evidence(attempt: Attempt, quotes: Sequence[str], question: str) -> float:
    """From 0 to 1; see the module."""
    if not any(found_something(sql, result) for sql, result in attempt.ran):
        return 0.0
    return covered(attempt.answer, quotes, question)


def score_valid_sql(attempt: Attempt) -> float:
    """From 0 to 1; see the module."""
    if not attempt.answer or not attempt.calls:
        return 0.0
    return sum(found_something(sql, result) for sql, result in attempt.ran) / len(attempt.calls)


def covered(answer: str, quotes: Sequence[str], question: str) -> float:
    """The share of the quotes' pairs that `answer` has, mean over quotes that have any."""
    known, said = _pairs(question), _pairs(answer)
    wanted = [pairs for quote in quotes if (pairs := _pairs(quote) - known)]
    return fmean(len(pairs & said) / len(pairs) for pairs in wanted) if wanted else 0.0


def _pairs(text: str) -> set[str]:
    """Words, numbers, and all neighbours (Chinese characters, words) of a text without tags.

    White space between neighbours does not count, punctuation does.
    """
    plain = unicodedata.normalize("NFKC", _TAG.sub(" ", text)).lower()
    found: set[str] = set()
    for run in re.split(r"[^\w\s.%]+", plain):
        units = _UNITS.findall(run)
        found.update(unit for unit in units if len(unit) > 1 or unit.isdigit())
        found.update(first + second for first, second in pairwise(units))
    return found
