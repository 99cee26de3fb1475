from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.data import (
    NOT_MENTIONED,
    Conversation,
    Question,
    load_conversations_jsonl,
    load_locomo,
    load_longmemeval,
    load_memdaily,
    write_conversations_jsonl,
)
from memograd.errors import BadInput
from memograd.memory import RawTurn

SHORT = {
    "id": "a",
    "turns": [{"speaker": "Ann", "text": "I moved to Oslo."}, {"speaker": "Ben", "text": "Nice!"}],
    "questions": [{"question": " Where? ", "answer": "Oslo", "evidence": ["t1"]}],
}


def _write(folder: Path, *records: Any, name: str = "mine.jsonl") -> Path:
    path = folder / name
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    (told,) = load_conversations_jsonl(_write(tmp_path, SHORT))
    assert told == Conversation(
        id="a",
        speakers=("Ann", "Ben"),
        turns=(
            RawTurn("t1", "Ann", "I moved to Oslo.", None, 1),
            RawTurn("t2", "Ben", "Nice!", None, 1),
        ),
        questions=(Question("a/q0", "Where?", "Oslo", "question", ("t1",)),),
        adversarial_questions=(),
    )


def test_everything_that_can_be_said_in_chinese(tmp_path: Path) -> None:
    record = {
        "id": "小红",
        "speakers": ["小红", "助手"],
        "turns": [
            {
                "id": "一",
                "speaker": "小红",
                "text": "我五月搬到了上海。",
                "time": "2024-05-07T18:30",
                "session": 2,
                "caption": "外滩",
            },
            {"speaker": "助手", "text": "好的。", "time": "2024-05-07"},
        ],
        "questions": [
            {
                "id": "问一",
                "question": "小红住在哪里？",
                "answer": "上海",
                "category": "单跳",
                "evidence": ["一"],
                "asked_at": "2024-06-01 09:00",
                "choices": ["上海", "北京"],
                "accepted": ["上海市"],
            },
            {"question": "她有猫吗？", "adversarial": True, "adversarial_answer": "有"},
            {"question": "几月？", "answer": 5},
        ],
    }
    (told,) = load_conversations_jsonl(_write(tmp_path, record))
    assert told.turns == (
        RawTurn("一", "小红", "我五月搬到了上海。", datetime(2024, 5, 7, 18, 30), 2, "外滩"),
        RawTurn("t2", "助手", "好的。", datetime(2024, 5, 7), 2),
    )
    assert told.questions == (
        Question(
            "问一",
            "小红住在哪里？",
            "上海",
            "单跳",
            ("一",),
            asked_at=datetime(2024, 6, 1, 9),
            choices=("上海", "北京"),
            accepted=("上海市",),
        ),
        Question("小红/q2", "几月？", "5", "question", ()),
    )
    assert told.adversarial_questions == (
        Question("小红/q1", "她有猫吗？", NOT_MENTIONED, "question", (), True, "有"),
    )


@pytest.mark.parametrize(("text", "listener"), [("我搬家了。", "助手"), ("I moved.", "assistant")])
def test_who_speaks_alone_speaks_to_the_assistant(tmp_path: Path, text: str, listener: str) -> None:
    path = _write(tmp_path, {"id": "a", "turns": [{"speaker": "A", "text": text}]})
    assert load_conversations_jsonl(path)[0].speakers == ("A", listener)


def test_empty_lines_a_byte_order_mark_gzip_and_odd_separators(tmp_path: Path) -> None:
    odd = {"id": "b", "turns": [{"speaker": "Ann\u2028", "text": "a\u2028b\x85c\r\nd"}]}
    lines = [json.dumps(SHORT), "", " ", json.dumps(odd, ensure_ascii=False)]
    path = tmp_path / "mine.jsonl.gz"
    path.write_bytes(gzip.compress("\r\n".join(lines).encode("utf-8-sig")))
    told = load_conversations_jsonl(path)
    assert [one.id for one in told] == ["a", "b"]
    assert told[1].turns[0].text == "a\u2028b\x85c\r\nd"


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
SAID = TEXT.map(str.strip)
TIME = st.none() | st.datetimes()


@st.composite
def conversations(draw: st.DrawFn, name: str = "c") -> Conversation:
    turns = tuple(
        RawTurn(turn_id, draw(TEXT), draw(TEXT), draw(TIME), draw(st.integers(1, 4)), draw(caption))
        for turn_id in draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))
        for caption in [st.none() | TEXT]
    )
    ids = draw(st.lists(TEXT | st.sampled_from([f"{name}/q0", f"{name}/q1"]), unique=True))
    questions = tuple(
        Question(
            id=identity,
            text=draw(SAID),
            answer=draw(SAID),
            category=draw(TEXT),
            evidence=tuple(
                draw(st.lists(st.sampled_from([turn.id for turn in turns]), max_size=3))
            ),
            adversarial=draw(st.booleans()),
            adversarial_answer=draw(st.none() | SAID),
            asked_at=draw(TIME),
            choices=tuple(draw(st.lists(TEXT, max_size=3))),
            accepted=tuple(draw(st.lists(TEXT, max_size=2))),
        )
        for identity in ids
    )
    return Conversation(
        name,
        (draw(TEXT), draw(TEXT)),
        turns,
        tuple(one for one in questions if not one.adversarial),
        tuple(one for one in questions if one.adversarial),
    )


@given(conversations("甲"), conversations("b"))
def test_what_is_written_is_read_back_equal(
    tmp_path_factory: pytest.TempPathFactory, one: Conversation, other: Conversation
) -> None:
    path = tmp_path_factory.mktemp("written") / "mine.jsonl"
    write_conversations_jsonl([one, other], path)
    assert load_conversations_jsonl(path) == [one, other]


def test_the_public_sets_go_through_it_without_loss(shared_data: Path, tmp_path: Path) -> None:
    for told in (
        load_locomo(shared_data / "locomo" / "locomo_conv26_conv30.json"),
        load_longmemeval(shared_data / "longmemeval" / "longmemeval_oracle_sample.json"),
        load_memdaily(shared_data / "memdaily" / "06_noisy_roles.json.gz"),
    ):
        write_conversations_jsonl(told, tmp_path / "mine.jsonl")
        assert load_conversations_jsonl(tmp_path / "mine.jsonl") == told


def test_what_does_not_fit_is_not_written(tmp_path: Path) -> None:
    (told,) = load_conversations_jsonl(_write(tmp_path, SHORT))
    path = tmp_path / "out.jsonl"
    misplaced = replace(told, adversarial_questions=told.questions, questions=())
    for bad, words in (
        ([misplaced], "without loss"),
        ([told, told], "the same id"),
        ([replace(told, turns=())], "no turns"),
        ([replace(told, id="\ud800")], "half of a character"),
    ):
        with pytest.raises(BadInput, match=words):
            write_conversations_jsonl(bad, path)
        assert not path.exists()
    with pytest.raises(BadInput, match="cannot be written"):
        write_conversations_jsonl([told], tmp_path)


TURN = {"speaker": "A", "text": "x"}


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ([], ["line 2", "list, not dict"]),
        ({"turns": [TURN]}, ["line 2", "no 'id'"]),
        ({"id": "b", "turns": []}, ["line 2", "no turns"]),
        ({"id": "a", "turns": [TURN]}, ["line 2", "'a'", "line above"]),
        ({"id": "b", "turns": [TURN], "question": []}, ["unknown key 'question'", "questions"]),
        ({"id": "b", "turns": [TURN, {"speaker": "A"}]}, ["turns[1]", "no 'text'"]),
        ({"id": "b", "turns": [TURN | {"role": "x"}]}, ["turns[0]", "unknown key 'role'"]),
        (
            {"id": "b", "turns": [TURN | {"session": "1"}]},
            ["'session'", "turns[0]", "str, not int"],
        ),
        ({"id": "b", "turns": [TURN | {"id": "t2"}, TURN]}, ["turns[1]", "'t2'"]),
        (
            {"id": "b", "turns": [TURN | {"time": "7 May"}]},
            ["'time'", "turns[0]", "'7 May'", "2024-05-07T18:30"],
        ),
        (
            {
                "id": "b",
                "turns": [TURN | {"time": "2024-05-07"}, TURN | {"time": "2024-05-07T08:00Z"}],
            },
            ["line 2", "time zone"],
        ),
        ({"id": "b", "turns": [TURN], "speakers": ["A"]}, ["'speakers'", "two names, not 1"]),
        (
            {"id": "b", "turns": [TURN], "questions": [{"question": "q", "answer": True}]},
            ["questions[0]", "'answer'", "a text"],
        ),
        (
            {
                "id": "b",
                "turns": [TURN],
                "questions": [{"question": "q", "answer": "a", "evidence": ["t9"]}],
            },
            ["'evidence'", "questions[0]", "'t9'"],
        ),
        (
            {
                "id": "b",
                "turns": [TURN],
                "questions": [{"question": "q", "answer": "a", "evidences": []}],
            },
            ["questions[0]", "unknown key 'evidences'", "evidence,"],
        ),
        (
            {
                "id": "b",
                "turns": [TURN],
                "questions": [{"id": "x", "question": "q", "answer": "a"}] * 2,
            },
            ["line 2", "two questions"],
        ),
    ],
)
def test_what_is_wrong_names_line_and_field(tmp_path: Path, record: Any, words: list[str]) -> None:
    path = _write(tmp_path, SHORT, record)
    with pytest.raises(BadInput) as caught:
        load_conversations_jsonl(path)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"id": ', ":1: not valid JSON"),
        (rb'{"id": "\ud800"}', ":1: not valid JSON"),
        (b"\n\n", "holds no conversation"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_files_that_are_no_jsonl(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=words):
        load_conversations_jsonl(path)
