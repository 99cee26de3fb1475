"""Dividing a text into clauses that stand alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.statements import clauses

DIVIDED = """
Ann lives in Boston and Ann loves jazz. | Ann lives in Boston | Ann loves jazz
Ann lives in Boston and loves jazz. | Ann lives in Boston | Ann loves jazz
Ann lives in Boston. Bob works at Google. | Ann lives in Boston | Bob works at Google
Ann loves tea and coffee, and Bob hates tea | Ann loves tea and coffee | Bob hates tea
张三住在北京，喜欢爵士乐。 | 张三住在北京 | 张三喜欢爵士乐
张三住在北京，张三喜欢爵士乐。 | 张三住在北京 | 张三喜欢爵士乐
"""

WHOLE = [
    "Ann lives in Boston", "Ann loves rock and roll", "Bob and Ann live in Rome",
    "Ann lives in Boston because Ann loves jazz", "Ann bought a car and Ann loves it",
    "Ann thinks Bob lives in Rome and Carl lives in Oslo", "Ann has a cat. It is called Tom.",
    "Ann switched hobbies! Ann took up chess.", "张三住在北京，因为张三喜欢爵士乐",
    "张三有一只猫，喜欢睡觉", "张三住在北京，它很大", "", "...",
]  # fmt: skip


@pytest.mark.parametrize("line", DIVIDED.strip().splitlines())
def test_independent_clauses(line: str) -> None:
    text, *wanted = (part.strip() for part in line.split("|"))
    assert [clause.said for clause in clauses(text)] == wanted


@pytest.mark.parametrize("text", WHOLE)
def test_what_belongs_together(text: str) -> None:
    [clause] = clauses(text)
    assert (clause.start, clause.end, clause.said) == (0, len(text), text)


TEXTS = st.lists(
    st.sampled_from(
        ["Ann", "lives", "in Rome", "and", ",", " ", ".", "loves", "tea", "I", "张三", "住在北京",
         "，", "喜欢茶", "我", "it"]
    ),
    max_size=14,
).map(" ".join)  # fmt: skip


@given(TEXTS | st.text(max_size=80))
def test_clauses_are_stretches_in_order(text: str) -> None:
    found = clauses(text)
    assert found
    for clause, following in pairwise(found):
        assert 0 <= clause.start <= clause.end <= following.start <= len(text)
    for clause in found:
        assert clause.said.endswith(text[clause.start : clause.end].rsplit(" ", 1)[-1][-2:])
