"""The words that find what was said of a property before."""

from __future__ import annotations

import pytest

from memograd.memory.analysis import analyse
from memograd.memory.statements import property_words


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Ann moved to Oslo", "is living in Rome"),
        ("Ann started as a welder", "is a lab technician"),
        ("Ann works at Meta", "got a job at Bosch"),
        ("Ann got divorced", "is married to Bob"),
        (
            "Ann switched instruments! Ann had their first oboe lesson",
            "is learning to play the cello",
        ),
        ("Ann switched hobbies! Ann took up chess", "has been spending their evenings on golf"),
        ("Ann switched from tea to coffee", "drinks tea"),
        ("Ann's favourite food is sushi", "has a new favorite food! Ann tried tacos"),
        ("张三搬到了上海", "住在北京"),
        ("张三从腾讯辞职了", "在百度上班"),
    ],
)
def test_they_share_a_word_with_the_older_statement(new: str, old: str) -> None:
    assert set(analyse(property_words(new))) & set(analyse(old))


def test_what_is_not_understood_has_none() -> None:
    assert property_words("What a lovely day it was at the lake") == ""
