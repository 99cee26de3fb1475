"""Bystanders are read no further than they can matter, and nothing else is decided by it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from memograd.memory.manager import RelationManager
from memograd.memory.manager.crowded import bound, evidence, log_odds, stand_out, weighed
from memograd.memory.reader.fact import Fact, Heard
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


NOW = datetime(2025, 2, 3, tzinfo=UTC)
ITEMS = [MemoryItem(str(n), text, Scope(user_id="derek"), NOW, NOW) for n, text in enumerate(TEXTS)]


def test_what_can_matter_is_weighed_as_by_all_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_relation_model()
    assert model.crowded is not None
    relate, read = model.relate, 0

    def counting(*given: Any) -> np.ndarray:
        nonlocal read
        read += 1
        return relate(*given)

    monkeypatch.setattr(model, "relate", counting)
    saved = mattered = 0
    for text in SAID:
        heard = Heard(RawTurn("t", "user", text, NOW, 0), BEFORE, own=text, whole=text)
        found = relate(text, BEFORE, TEXTS)
        places = stand_out(found[:, [RELATIONS.index(name) for name in CLOSING]].sum(1))
        seen = (model, heard, ITEMS, frozenset[str](), found, places)
        read = 0
        full = model.crowded.scores(evidence(*seen))
        saved += read
        read = 0
        some = weighed(model, model.crowded, *seen[1:-1], dict.fromkeys(places, LEAST))
        saved -= read
        assert ((some >= LEAST) == (full >= LEAST)).all()
        assert (some[full >= LEAST] == full[full >= LEAST]).all()
        mattered += int((full >= LEAST).sum())
        whole = weighed(model, model.crowded, *seen[1:-1], dict.fromkeys(places, bound(0.0)))
        assert (whole == full).all()
    assert mattered and saved > 0


def test_what_was_just_told_is_read_as_far_as_it_may_be_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, read = load_relation_model(), 0
    manager, relate = RelationManager(model), model.relate

    def counting(*given: Any) -> np.ndarray:
        nonlocal read
        read += 1
        return relate(*given)

    monkeypatch.setattr(model, "relate", counting)
    saved = changed = 0
    for text in (SAID[1], SAID[2], "No, sorry, the cat is a dog", "Not Leeds. Bradford."):
        fact = Fact(text, ("t",), told_at=NOW)
        turn = RawTurn("t", "user", text, NOW, 0)
        heard = Heard(turn, BEFORE, (fact,), (text,), own=text, whole=text)
        seen = (heard, ITEMS, frozenset(item.id for item in ITEMS))
        read = 0
        some = manager.decide_heard(*seen)
        saved -= read
        read = 0
        with monkeypatch.context() as patch:
            patch.setattr(manager, "_least_taken_back", lambda heard: 0.0)
            assert manager.decide_heard(*seen) == some
        saved += read
        changed += sum(change.decision.op.item_id is not None for change in some)
    assert changed and saved > 0
