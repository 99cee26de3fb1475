"""A long message is searched as a whole a few times, not once for each of its sentences."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from memograd.memory.reader import sentences, trained
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations.model import load_relation_model


class Counting:
    """A pattern that counts how many characters were given to it to search."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern, self.searched = pattern, 0

    def search(self, text: str) -> re.Match[str] | None:
        self.searched += len(text)
        return self._pattern.search(text)


def test_what_a_message_costs_grows_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = [(trained, "MAY_ASK"), (trained, "WANTS_TEXT"), (sentences, "_CODE_TOLD")]
    patterns = []
    for module, name in watched:
        patterns.append(Counting(getattr(module, name)))
        monkeypatch.setattr(module, name, patterns[-1])
    reader = trained.TrainedReader(load_relation_model())
    told = " ".join(f"My friend number {n} is called Name{n}." for n in range(60))
    now = datetime(2026, 5, 7, tzinfo=UTC)
    [heard] = reader.hear([RawTurn("1", "user", told, now, 1, role="user")], ())
    assert len(heard.facts) > 30
    for pattern in patterns:
        assert pattern.searched <= 4 * len(told)
