from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory import Memory
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
        ([{"role": "user", "content": [{"type": "input_audio", "input_audio": "u"}]}], "describe"),
        ([{"role": "user", "content": "x", "timestamp": "soon"}], "timestamp of message 1"),
        ([{"role": "user", "content": "\ud83d"}], "Unicode"),
        ([{"role": "user", "name": 3, "content": "x"}], "name in message 1"),
    ],
)
def test_what_cannot_be_understood_names_the_message(bad: object, named: str) -> None:
    with pytest.raises(BadInput, match=named):
        to_turns(bad, heard_at=NOW)  # type: ignore[arg-type]


def test_a_picture_leaves_its_text_and_its_address() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    inside = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = {"type": "text", "text": "my new bike"}
    [turn] = to_turns({"role": "user", "content": [picture, said]}, heard_at=NOW)
    assert (turn.text, turn.images) == ("my new bike", ("https://example.org/a.png",))
    [turn] = to_turns({"role": "user", "content": [said, inside]}, heard_at=NOW)
    digest = hashlib.sha256(b"\0\0\0").hexdigest()
    assert (turn.text, turn.images) == ("my new bike", (f"sha256:{digest}",))
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    [same] = to_turns({"content": [{"type": "image", "source": source}]}, heard_at=NOW)
    assert (same.text, same.images, same.caption) == ("", turn.images, None)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_are_no_conversation(role: str) -> None:
    assert to_turns([{"role": role, "content": "I live in Bergen."}], heard_at=NOW) == []


def test_a_turn_keeps_its_role_beside_its_name() -> None:
    [turn] = to_turns({"role": "tool", "name": "weather", "content": "rain"}, heard_at=NOW)
    assert (turn.speaker, turn.said_as) == ("weather", "tool")


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


@pytest.mark.parametrize(
    ("said", "timestamp", "told"),
    [
        ("昨天我去看了牙医。", "2024-05-07T07:00:00+08:00", "2024年5月6日用户去看了牙医。"),
        ("I went to the dentist yesterday.", "2024-05-06T20:00:00-07:00", "on 5 May 2024"),
        ("I went to the dentist yesterday.", "2024-05-06T20:00:00", "on 5 May 2024"),
    ],
)
def test_yesterday_is_counted_where_it_was_said(
    tmp_path: Path, trigrams: Any, said: str, timestamp: str, told: str
) -> None:
    with Memory.open(tmp_path / "m", embedder=trigrams(), env_file=None) as memory:
        memory.add(said, user_id="a", timestamp=timestamp)
        memory.add([{"role": "user", "content": said, "timestamp": timestamp}], user_id="b")
        for user in "ab":
            [item] = memory.get_all(user_id=user)["results"]
            assert told in item["memory"]
            text = memory.context("dentist", user_id=user).text
            noted = 6 if told[0] == "o" else 7  # the day of the telling, where it was told
            assert told in text and f"[noted {noted} May 2024]" in text
            earlier = {"user_id": user, "valid_from": {"lt": timestamp}}
            assert memory.get_all(filters=earlier)["results"] == [item]
