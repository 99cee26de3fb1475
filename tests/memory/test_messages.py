from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from memograd.errors import BadInput
from memograd.memory.messages import to_moment, to_turns

NOW = datetime(2024, 5, 7, 18, 30, tzinfo=UTC)


def test_a_text_is_what_the_user_said() -> None:
    [turn] = to_turns("我搬到了波士顿。", heard_at=NOW)
    assert (turn.speaker, turn.text, turn.time) == ("user", "我搬到了波士顿。", NOW)


def test_messages_keep_their_order_speakers_and_times() -> None:
    turns = to_turns(
        [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "name": "Alice", "content": "Hi", "timestamp": "2023-01-02T03:04:05"},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
            {"role": "assistant", "content": None, "tool_calls": []},
        ],
        heard_at=NOW,
    )
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("Alice", "Hi"),
        ("assistant", "Hello"),
    ]
    assert [turn.time for turn in turns] == [datetime(2023, 1, 2, 3, 4, 5, tzinfo=UTC), NOW]
    assert len({turn.id for turn in turns}) == 2
    assert turns[1].session - turns[0].session == (date(2024, 5, 7) - date(2023, 1, 2)).days


def test_one_message_may_come_alone() -> None:
    [turn] = to_turns({"role": "user", "content": "x"}, heard_at=NOW)
    assert turn.text == "x"


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (7, "not int"),
        ([7], "message 1"),
        ([{"role": "user", "content": "x"}, {"role": 3, "content": "x"}], "message 2"),
        ([{"role": "user", "content": 5}], "message 1"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "u"}]}], "describe"),
        ([{"role": "user", "content": "x", "timestamp": "soon"}], "timestamp of message 1"),
        ([{"role": "user", "content": "\ud83d"}], "Unicode"),
        ([{"role": "user", "name": 3, "content": "x"}], "name in message 1"),
    ],
)
def test_what_cannot_be_understood_names_the_message(bad: object, named: str) -> None:
    with pytest.raises(BadInput, match=named):
        to_turns(bad, heard_at=NOW)  # type: ignore[arg-type]


def test_moments_come_in_several_forms_and_end_in_utc() -> None:
    east = timezone(timedelta(hours=8))
    assert to_moment("2024-05-08T02:30:00+08:00", "x") == NOW
    assert to_moment(NOW.astimezone(east), "x") == NOW
    assert to_moment(datetime(2024, 5, 7, 18, 30), "x") == NOW
    assert to_moment(NOW.timestamp(), "x") == NOW
    assert to_moment(date(2024, 5, 7), "x") == datetime(2024, 5, 7, tzinfo=UTC)


@pytest.mark.parametrize("bad", ["soon", True, None, [], 1e300, float("nan")])
def test_a_moment_that_is_none_is_refused(bad: object) -> None:
    with pytest.raises(BadInput, match="as_of"):
        to_moment(bad, "as_of")
