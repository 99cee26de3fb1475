"""A message that says that two things were taken for each other takes none of them away."""

from __future__ import annotations

from pathlib import Path

import pytest

from memograd import Memory
from memograd.memory.manager.cues import only_swaps

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.mark.parametrize(
    ("message", "swaps"),
    [
        ("oops, other way round", True),
        ("gah, I mixed them up", True),
        ("哎说反了", True),
        ("说反了，是右膝", False),
        ("other way round: 8 vans, 3 bikes", False),
        ("can you swap that for a shorter one", False),
        ("I have a dog", False),
        ("", False),
    ],
)
def test_what_only_says_that_two_things_were_swapped(message: str, swaps: bool) -> None:
    assert only_swaps(message) is swaps


@pytest.mark.parametrize(
    "said",
    [
        ("My girls: Ana is 6 and Bea is 9", "oops, other way round"),
        ("我妈属龙", "我爸属虎", "说反了"),
    ],
)
def test_what_was_just_told_is_in_doubt_and_kept(tmp_path: Path, said: tuple[str, ...]) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for text in said:
            memory.add(text, user_id="u", timestamp=WHEN)
        texts = " ".join(one["memory"] for one in memory.get_all(user_id="u")["results"])
    assert all(word in texts for word in (("龙", "虎") if "属" in said[0] else ("Ana is 6", "Bea")))
    assert "或已不再" in texts or "perhaps no longer" in texts
