"""Generated logs: the same from the same seed, complete texts, one turn a statement."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs
from memograd.errors import BadInput

LANGUAGES = ("en", "zh")
RELATIVE = re.compile(
    r"\b(yesterday|days ago|weeks? ago|last (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
    r"|this coming|in two (?:days|weeks))\b"
    r"|昨天|前天|[三四五六]天前|[一两]周前|上周[一二三四五六日]|下周|后天|两周后"
)


def chosen(language: str, split: str = "train") -> LifelogSettings:
    return LifelogSettings().with_pairs([f"language={language}", f"split={split}"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_seed_gives_the_same_logs_however_many_follow(language: str) -> None:
    few = generate_lifelogs(2, 5, chosen(language))
    many = generate_lifelogs(4, 5, chosen(language))
    assert many[:2] == few
    assert generate_lifelogs(1, 6, chosen(language))[0].turns != few[0].turns
    assert len({log.id for log in many}) == 4


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(LANGUAGES), st.sampled_from(["train", "test"]))
def test_texts_are_complete_and_dates_absolute(seed: int, language: str, split: str) -> None:
    log = generate_lifelogs(1, seed, chosen(language, split))[0]
    turns = {turn.id: turn for turn in log.turns}
    for statement in log.statements:
        turn = turns[statement.turn_id]
        assert (turn.time, turn.session > 0) == (statement.told_at, True)
        assert not RELATIVE.search(statement.text), statement.text
        for text in (statement.text, turn.text):
            assert not re.search(r"[\[\]{}|]|\bNone\b", text), text
            assert text[-1] in ".?!。？！", text
            if language == "zh":
                assert " " not in text and "." not in text.replace("Dr.", ""), text
            else:
                assert text[0].isupper() or not text[0].isalpha(), text
    for probe in log.probes:
        assert not re.search(r"[\[\]{}|]", probe.question.text), probe
    assert len(turns) == len(log.turns) == len(log.statements)
    assert len({probe.question.id for probe in log.probes}) == len(log.probes)


def relative_turns(log: Lifelog) -> int:
    return sum(bool(RELATIVE.search(turn.text)) for turn in log.turns)


@pytest.mark.parametrize("language", LANGUAGES)
def test_people_speak_of_days_as_people_do(language: str) -> None:
    assert sum(map(relative_turns, generate_lifelogs(5, 0, chosen(language)))) > 10


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_usual_size(language: str) -> None:
    for log in generate_lifelogs(10, 3, chosen(language)):
        assert len(log.statements) == 144
        assert 55 <= len(log.probes) <= 90
        assert (log.turns[-1].time - log.turns[0].time).days > 60  # type: ignore[operator]


@pytest.mark.parametrize("language", LANGUAGES)
def test_more_questions_are_different_ones(language: str) -> None:
    few = generate_lifelogs(3, 1, chosen(language))
    many = generate_lifelogs(3, 1, chosen(language).with_pairs(["questions=1"]))
    assert sum(len(log.probes) for log in many) > 2.5 * sum(len(log.probes) for log in few)
    for log in many:
        asked = [(one.question.asked_at, one.question.text) for one in log.probes]
        assert len(set(asked)) == len(asked)


def test_small_logs_and_extreme_shares() -> None:
    small = LifelogSettings(sessions=2, statements_per_session=4, people=2)
    assert len(generate_lifelogs(1, 0, small)[0].statements) == 8
    for name in ("small_talk", "changes", "hearsay", "repeats", "forgets"):
        others = {"small_talk": 0.0, "changes": 0.0, "hearsay": 0.0, "repeats": 0.0, "forgets": 0.0}
        extreme = LifelogSettings(sessions=20, **(others | {name: 0.9}))  # type: ignore[arg-type]
        assert len(generate_lifelogs(1, 1, extreme)[0].statements) == 240


def test_less_than_one_log_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one"):
        generate_lifelogs(0, 0)
