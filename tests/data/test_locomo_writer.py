from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.data import Conversation, Question, load_locomo, write_locomo
from memograd.errors import BadInput
from memograd.memory import RawTurn


def _small() -> Conversation:
    return Conversation(
        "小-1",
        ("王芳", "Bob"),
        (
            RawTurn("D1:1", "王芳", "我养了一只猫。", datetime(2023, 5, 8, 0, 5), 1, "一只猫"),
            RawTurn("D2:1", "Bob", 'A "quoted" \\ line.', datetime(2023, 6, 8, 12, 30), 2),
        ),
        (
            Question("小-1/q0", "什么宠物?", "猫", "single-hop", ("D1:1",)),
            Question("小-1/q2", "Who?", "Bob", "multi-hop", ("D1:1", "D2:1")),
        ),
        (
            Question("小-1/q1", "A dog?", "Not mentioned", "adversarial", (), True, "yes"),
            Question("小-1/q3", "His cat?", "No", "adversarial", ("D1:1",), True, "Yes"),
        ),
    )


def test_round_trip_in_the_official_format(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_locomo([_small()], path)
    assert load_locomo(path) == [_small()]
    [record] = json.loads(path.read_text(encoding="utf-8"))
    assert record["conversation"]["session_1_date_time"] == "12:05 am on 8 May, 2023"
    assert record["conversation"]["session_2_date_time"] == "12:30 pm on 8 June, 2023"
    assert "answer" not in record["qa"][1]
    assert record["qa"][3]["answer"] == "No"


def test_round_trip_of_the_real_file(locomo_file: Path, tmp_path: Path) -> None:
    conversations = load_locomo(locomo_file)
    write_locomo(conversations, tmp_path / "f.json")
    assert load_locomo(tmp_path / "f.json") == conversations


@given(minutes=st.integers(0, 60 * 24 * 365 * 3))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip_of_any_minute(minutes: int, tmp_path: Path) -> None:
    time = datetime.fromtimestamp(1_600_000_020 + 60 * minutes, UTC).replace(tzinfo=None)
    turn = replace(_small().turns[0], time=time)
    conversation = Conversation("c", ("王芳", "Bob"), (turn,), (), ())
    write_locomo([conversation], tmp_path / "f.json")
    assert load_locomo(tmp_path / "f.json") == [conversation]


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    small, path = _small(), tmp_path / "f.json"
    first, second = small.turns
    lossy = [
        replace(small, turns=(replace(first, time=datetime(2023, 5, 8, 0, 5, 59)), second)),
        replace(small, turns=(replace(first, time=datetime(2023, 5, 8, tzinfo=UTC)), second)),
        replace(small, turns=(first, replace(second, session=1))),
        replace(small, turns=(second, first)),
        replace(small, questions=(replace(small.questions[0], id="other"),)),
        replace(small, questions=(replace(small.questions[0], evidence=("D7:7",)),)),
    ]
    for conversation in lossy:
        with pytest.raises(BadInput, match="without loss"):
            write_locomo([conversation], path)
    with pytest.raises(BadInput, match="without a time"):
        write_locomo([replace(small, turns=(replace(first, time=None), second))], path)
    with pytest.raises(BadInput, match="category 'riddle'"):
        question = replace(small.questions[0], category="riddle")
        write_locomo([replace(small, questions=(question,))], path)
    assert not path.exists()


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        write_locomo([], tmp_path)
