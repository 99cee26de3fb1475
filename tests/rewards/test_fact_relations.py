"""Same, contradictory, or neither: a table in both languages, and what holds for any two texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.tasks.memory_ops.rewards import contradicts, says_already

CONTRARY = """
Ann lives in Oslo | Ann lives in Rome
Ann likes tea | Ann does not like tea
Ann plays chess | Ann no longer plays chess
Rex is 4 years old | Rex is 14 years old
Ann's dog is called Rex | Ann's dog is called Max
The dentist appointment is with Dr. Smith | The dentist appointment is with Dr. Jones
Ann ran 10 km along the river | Ann ran 12 km along the river
Ann adopted a puppy from the shelter | Ann adopted no puppy from the shelter
小明住在北京 | 小明住在上海
小明喜欢喝茶 | 小明不喜欢喝茶
小明对花生过敏 | 小明对花生不过敏
会议在3点开始 | 会议在4点开始
小明的电话是12345 | 小明的电话是54321
"""
COMPATIBLE = """
Ann lives in Oslo | Bob lives in Rome
Ann likes tea | Ann likes coffee
Ann lives in Boston | Ann lives in Boston, Massachusetts
Ann lives in Oslo | Ann lives in Oslo with her cat
Ann ran 10 km along the river | Bob ran 12 km along the river
Ann ran 10 km along the river | Ann ate 12 apples after lunch
小明喜欢喝茶 | 小红不喜欢喝茶
小明住在北京 | 小明养了一只猫
"""
SAID = """
Ann lives in Oslo | ann lives in Oslo.
Ann lives in Oslo with her cat | Ann lives in Oslo
Ann lives in Oslo | Ann moved to Oslo
小明住在北京。 | 小明住在北京
"""
NOT_SAID = """
Ann lives in Oslo | Ann lives in Oslo with her cat
Ann lives in Oslo | Bob lives in Oslo
Ann likes tea | Ann no longer likes tea
Bob bit Ann | Ann bit Bob
小明有3只猫 | 小明有4只猫
"""


def pairs(table: str) -> list[tuple[str, str]]:
    rows = [line.split(" | ") for line in table.splitlines() if line]
    return [(first, second) for first, second in rows]


@pytest.mark.parametrize(("first", "second"), pairs(CONTRARY))
def test_contrary(first: str, second: str) -> None:
    assert contradicts(first, second) and contradicts(second, first)


@pytest.mark.parametrize(("first", "second"), pairs(COMPATIBLE))
def test_compatible(first: str, second: str) -> None:
    assert not contradicts(first, second) and not contradicts(second, first)


@pytest.mark.parametrize(("known", "fact"), pairs(SAID))
def test_said_already(known: str, fact: str) -> None:
    assert says_already(known, fact)


@pytest.mark.parametrize(("known", "fact"), pairs(NOT_SAID + CONTRARY))
def test_not_said(known: str, fact: str) -> None:
    assert not says_already(known, fact)


SENTENCES = st.sampled_from(
    [text for pair in pairs(CONTRARY + COMPATIBLE + SAID + NOT_SAID) for text in pair]
)


@given(SENTENCES | st.text(max_size=40), SENTENCES | st.text(max_size=40))
def test_symmetric_exclusive_and_reflexive(first: str, second: str) -> None:
    contrary = contradicts(first, second)
    assert contrary == contradicts(second, first)
    assert not (contrary and says_already(first, second))
    assert says_already(first, first) and not contradicts(first, first)
