"""Settings of a life log: what cannot be is refused with the setting's name."""

from __future__ import annotations

import pytest

from memograd.data.lifelog import LifelogSettings
from memograd.errors import BadInput


def test_pairs_win_over_defaults() -> None:
    made = LifelogSettings().with_pairs(["language=zh", "sessions=3", "hearsay=0.2"])
    assert made == LifelogSettings(language="zh", sessions=3, hearsay=0.2)


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        ("language=fr", "language is 'fr'"),
        ("split=dev", "split is 'dev'"),
        ("sessions=1", "sessions is 1: it must be from 2"),
        ("statements_per_session=99", "statements_per_session is 99"),
        ("people=0", "people is 0"),
        ("questions=0", "questions is 0.0: it must be above 0"),
        ("questions=nan", "questions is nan"),
        ("hearsay=-0.1", "hearsay is -0.1: a share"),
        ("small_talk=0.8", "add up to 1.20"),
        ("repeats=nan", "repeats is nan"),
        ("sessions=many", "sessions must be a number"),
        ("sessions", "no setting of a life log"),
        ("colour=red", "no setting of a life log"),
    ],
)
def test_what_cannot_be_is_refused(pair: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        LifelogSettings().with_pairs([pair])
