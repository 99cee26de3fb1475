from __future__ import annotations

import gzip
import json
import logging
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memograd.data import load_memdaily, load_memdaily_with_report
from memograd.errors import BadInput
from memograd.memory import RawTurn


@pytest.fixture(scope="module")
def files(shared_data: Path) -> list[Path]:
    paths = sorted((shared_data / "memdaily").glob("*.json.gz"))
    if not paths:
        pytest.skip("MemDaily is not beside this checkout (no licence stated, it is not bundled)")
    return paths


def _message(mid: Any, text: Any, time: Any) -> dict[str, Any]:
    return {"mid": mid, "message": text, "time": time, "place": "广东深圳"}


def _question(**changes: Any) -> dict[str, Any]:
    return {
        "qid": 0,
        "question": "我的上司叫什么？",
        "answer": "赵雅琳",
        "target_step_id": [1, 0, 1],
        "choices": {"A": "李娜", "B": "赵雅琳"},
        "ground_truth": "B",
        "time": "2024年04月05日 周五 11:59",
    } | changes


def _stream(**changes: Any) -> dict[str, Any]:
    """A stream with every trap of the format."""
    return {
        "tid": 7,
        "message_list": [
            _message(0, "我的上司是银行行长。", "2024年04月02日 周二 08:04"),
            _message(1, "我的上司名叫赵雅琳。", "2024年04月02日 周二 07:21"),
            _message(2, "我同事就念到高中。", "2024年04月03日 周三 09:00"),
        ],
        "question_list": [
            _question(),
            _question(question="[ERRORQ]", answer=None, choices="[ERRORC]"),
        ],
    } | changes


def _file(folder: Path, payload: Any, name: str = "05_post_processing_roles.json.gz") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(json.dumps(payload).encode()))
    return path


def test_every_field_arrives_in_the_order_of_the_messages(tmp_path: Path) -> None:
    (conversation,), report = load_memdaily_with_report(_file(tmp_path, [_stream()]))
    name = "05_post_processing_roles/7"
    assert conversation.id == name
    assert conversation.turns == (
        RawTurn("m0", "用户", "我的上司是银行行长。", datetime(2024, 4, 2, 8, 4), 1),
        RawTurn("m1", "用户", "我的上司名叫赵雅琳。", datetime(2024, 4, 2, 7, 21), 1),
        RawTurn("m2", "用户", "我同事就念到高中。", datetime(2024, 4, 3, 9, 0), 2),
    )
    (question,) = conversation.questions
    assert question.id == f"{name}/q0"
    assert (question.text, question.answer) == ("我的上司叫什么？", "赵雅琳")
    assert question.category == "post_processing"
    assert question.evidence == ("m1", "m0")
    assert question.choices == ("李娜", "赵雅琳")
    assert question.asked_at == datetime(2024, 4, 5, 11, 59)
    assert report.unwritten == [f"{name}/q1"]
    assert report.backwards == [name]


def test_what_is_peculiar_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load_memdaily(_file(tmp_path, [_stream()]))
    assert "dropped 1 questions" in caplog.text
    assert "in 1 streams the clock runs backwards" in caplog.text


def test_files_that_are_not_gzipped_load_too(tmp_path: Path) -> None:
    path = tmp_path / "01_simple_roles.json"
    path.write_text(json.dumps([_stream()]), encoding="utf-8")
    (conversation,) = load_memdaily(path)
    assert conversation.questions[0].category == "simple"


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"roles": []}, ["05_post_processing_roles.json.gz", "dict, not list"]),
        ([_stream(), _stream()], ["two streams", "/7'"]),
        ([_stream(tid="x")], ["stream 0", "'tid'", "str, not int"]),
        ([_stream(), {"tid": 8}], ["stream 1", "no 'message_list'"]),
        ([_stream(message_list=[_message(0, 5, "x")])], ["message 0", "'x'", "2024年04月01日"]),
        (
            [_stream(message_list=[_message(0, 5, "2024年04月02日 周二 08:04")])],
            ["stream 0, message 0", "'message'", "int, not str"],
        ),
        (
            [_stream(message_list=[_message(0, "a", "2024年13月02日 周二 08:04")])],
            ["message 0", "2024年13月02日"],
        ),
        (
            [_stream(message_list=[_message(0, "a", "2024年04月02日 周二 08:04")] * 2)],
            ["two messages", "mid 0"],
        ),
        ([_stream(message_list=[_message(True, "a", "")])], ["'mid'", "bool, not int"]),
        ([_stream(question_list=[_question(target_step_id=[9])])], ["question 0", "message 9"]),
        ([_stream(question_list=[_question(target_step_id=["0"])])], ["'target_step_id'", "str"]),
        ([_stream(question_list=[_question(ground_truth="A")])], ["question 0", "'赵雅琳'", "'A'"]),
        ([_stream(question_list=[_question(choices="B")])], ["'choices'", "str, not dict"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    tmp_path: Path, payload: Any, words: list[str]
) -> None:
    with pytest.raises(BadInput) as caught:
        load_memdaily(_file(tmp_path, payload))
    sentence = str(caught.value)
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


def test_a_file_that_says_gzip_and_is_not(tmp_path: Path) -> None:
    path = tmp_path / "01_simple_roles.json.gz"
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(BadInput, match="cannot be unpacked"):
        load_memdaily(path)


def test_the_real_files_hold_what_the_paper_counts(files: list[Path]) -> None:
    """The numbers of trajectories with a question, by kind, in the makers' own table."""
    asked: Counter[str] = Counter()
    failed = 0
    for path in files:
        conversations, report = load_memdaily_with_report(path)
        failed += len(report.unwritten)
        for conversation in conversations:
            ids = {turn.id for turn in conversation.turns}
            for question in conversation.questions:
                asked[question.category] += 1
                assert question.evidence
                assert set(question.evidence) <= ids
                assert question.answer in question.choices
                assert len(question.choices) == 4
    assert failed == 46
    assert asked == {
        "simple": 500,
        "conditional": 500,
        "comparative": 492,
        "aggregative": 462,
        "post_processing": 500,
        "noisy": 500,
    }
