"""What words find to be touched among some items, they find of one of these alone."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import pytest

from memograd.memory.manager.by_words import may_touch_by_words, touches_by_words
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn

NOW = datetime(2025, 2, 3, tzinfo=UTC)
STATEMENTS = {
    "en": (
        "User lives in Boston.",
        "User lives in Boston, Massachusetts.",
        "User lives in Rome and works there.",
        "User no longer lives in Boston.",
        "User likes cats and dogs.",
        "User does not like cats.",
        "User's cat is called Momo.",
        "User went to a concert in Rome.",
        "User drives a Golf (until May 2024).",
    ),
    "zh": (
        "用户住在北京。",
        "用户住在北京市朝阳区。",
        "用户现在住在上海，在那里工作。",
        "用户不再住在北京了。",
        "用户喜欢猫和狗。",
        "用户不喜欢猫。",
        "用户的猫叫团团。",
        "用户在上海看了演唱会。",
    ),
}


@pytest.mark.parametrize("language", list(STATEMENTS))
def test_what_no_item_alone_is_touched_by_touches_none_of_them_together(language: str) -> None:
    texts = STATEMENTS[language]
    items = [MemoryItem(text, text, Scope(user_id="u"), NOW, NOW) for text in texts]
    touched = untouched = 0
    for text in texts:
        turn = RawTurn("t", "user", text, NOW, 0)
        heard = Heard(turn, facts=(Fact(text, ("t",), told_at=NOW),), quotes=(text,), own="Well.")
        for count in (1, 2, 3):
            for near in permutations(items, count):
                if touches_by_words(heard, near):
                    touched += 1
                    assert may_touch_by_words(heard, near)
                    assert may_touch_by_words(heard, items)
                else:
                    untouched += 1
    assert touched and untouched
