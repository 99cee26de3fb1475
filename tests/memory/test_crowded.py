"""Bystanders are read no further than they can matter, and nothing else is decided by it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from memograd.memory.manager.crowded import evidence, log_odds, stand_out, weighed
from memograd.memory.reader.fact import Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations import CLOSING, RELATIONS, load_relation_model

LEAST = log_odds(0.25)
BEFORE = (("user", "Morning, it's me again"), ("assistant", "Good morning!"))
TEXTS = (
    "User drives a grey Skoda Octavia.",
    "User has an allotment with leeks.",
    "User's sister is called Maureen.",
    "User plays bowls on Thursdays.",
    "User has a cat and a budgie.",
    "User works at a bakery in Leeds.",
)
SAID = (
    "Flogged the Skoda on Saturday. Walking everywhere now.",
    "The leeks came up lovely. Maureen had four of them.",
    "Bowls has moved to Tuesdays now, worse luck",
    "the budgie died last night",
    "I don't work at the bakery any more, I'm at the post office",
)


def test_what_can_matter_is_weighed_as_by_all_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    model, now = load_relation_model(), datetime(2025, 2, 3, tzinfo=UTC)
    assert model.crowded is not None
    scope = Scope(user_id="derek")
    items = [MemoryItem(str(n), text, scope, now, now) for n, text in enumerate(TEXTS)]
    relate, read = model.relate, 0

    def counting(*given: Any) -> np.ndarray:
        nonlocal read
        read += 1
        return relate(*given)

    monkeypatch.setattr(model, "relate", counting)
    saved = mattered = 0
    for text in SAID:
        heard = Heard(RawTurn("t", "user", text, now, 0), BEFORE, own=text, whole=text)
        found = relate(text, BEFORE, TEXTS)
        places = stand_out(found[:, [RELATIONS.index(name) for name in CLOSING]].sum(1))
        seen = (model, heard, items, frozenset[str](), found, places)
        read = 0
        full = model.crowded.scores(evidence(*seen))
        saved += read
        read = 0
        some = weighed(model, model.crowded, *seen[1:], least=LEAST, to_the_end=())
        saved -= read
        assert ((some >= LEAST) == (full >= LEAST)).all()
        assert (some[full >= LEAST] == full[full >= LEAST]).all()
        mattered += int((full >= LEAST).sum())
        whole = weighed(model, model.crowded, *seen[1:], least=LEAST, to_the_end=places)
        assert (whole == full).all()
    assert mattered and saved > 0
