from __future__ import annotations

import gzip
import json
import logging
from collections import Counter
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memograd.data import load_longmemeval, load_longmemeval_with_report
from memograd.errors import BadInput
from memograd.memory import RawTurn


@pytest.fixture(scope="module")
def sample(shared_data: Path) -> Path:
    path = shared_data / "longmemeval" / "longmemeval_oracle_sample.json"
    if not path.is_file():
        pytest.skip("the LongMemEval sample is not beside this checkout (it is not bundled)")
    return path


def _record(**changes: Any) -> dict[str, Any]:
    """A question with every trap of the format."""
    return {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": " How many cats? ",
        "answer": 2,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/21 (Sun) 01:02", "2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["later", "earlier"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "我又养了一只猫。", "has_answer": True},
                {"role": "assistant", "content": "Lovely!", "has_answer": False},
            ],
            [{"role": "user", "content": "Hello"}],
        ],
        "answer_session_ids": ["later"],
    } | changes


def _file(folder: Path, payload: Any) -> Path:
    path = folder / "questions.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    return path


def test_every_field_arrives_and_sessions_are_sorted_by_time(tmp_path: Path) -> None:
    (conversation,) = load_longmemeval(_file(tmp_path, [_record()]))
    assert conversation.id == "q1"
    assert conversation.speakers == ("user", "assistant")
    assert conversation.turns == (
        RawTurn("earlier_1", "user", "Hello", datetime(2023, 5, 20, 2, 21), 1),
        RawTurn("later_1", "user", "我又养了一只猫。", datetime(2023, 5, 21, 1, 2), 2),
        RawTurn("later_2", "assistant", "Lovely!", datetime(2023, 5, 21, 1, 2), 2),
    )
    (question,) = conversation.questions
    assert (question.id, question.text, question.answer) == ("q1/q0", "How many cats?", "2")
    assert question.category == "multi-session"
    assert question.evidence == ("later_1",)
    assert question.asked_at == datetime(2023, 5, 30, 23, 40)


def test_a_session_that_stands_twice_is_heard_twice(tmp_path: Path) -> None:
    """As in 13 of the official questions of LongMemEval S, 1d4da289 among them."""
    once = _record()
    record = _record(
        haystack_dates=[*once["haystack_dates"], "2023/05/22 (Mon) 09:00"],
        haystack_session_ids=["later", "earlier", "later"],
        haystack_sessions=[*once["haystack_sessions"], once["haystack_sessions"][0]],
    )
    (conversation,) = load_longmemeval(_file(tmp_path, [record]))
    ids = [turn.id for turn in conversation.turns]
    assert ids == ["earlier_1", "later_1", "later_2", "later~2_1", "later~2_2"]
    assert conversation.questions[0].evidence == ("later_1", "later~2_1")


def test_abstentions_are_adversarial(tmp_path: Path) -> None:
    (conversation,) = load_longmemeval(_file(tmp_path, [_record(question_id="q1_abs")]))
    assert conversation.questions == ()
    assert [question.adversarial for question in conversation.adversarial_questions] == [True]


def test_a_question_without_evidence_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bare = [[{"role": "user", "content": "Hi"}], [{"role": "user", "content": "Ho"}]]
    file = _file(
        tmp_path,
        [
            _record(haystack_sessions=bare),
            _record(haystack_sessions=bare, question_id="q2_abs"),
        ],
    )
    _, report = load_longmemeval_with_report(file)
    assert report.without_evidence == ["q1/q0"]
    with caplog.at_level(logging.WARNING):
        load_longmemeval(file)
    assert "1 questions name no evidence" in caplog.text


def _without(key: str) -> dict[str, Any]:
    record = _record()
    del record[key]
    return record


def _with_message(**changes: Any) -> dict[str, Any]:
    record = deepcopy(_record())
    record["haystack_sessions"][0][1] |= changes
    return record


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({}, ["questions.json", "dict, not list"]),
        ([1], ["question 0", "int, not dict"]),
        ([_record(), _record()], ["two questions", "'q1'"]),
        ([_record(), _without("question_id")], ["question 1", "no 'question_id'"]),
        ([_without("haystack_sessions")], ["question 0 (q1)", "no 'haystack_sessions'"]),
        ([_record(haystack_dates=[])], ["2 session ids, 0 dates"]),
        ([_record(haystack_dates=["2023/05/20", "x"])], ["session 0", "'2023/05/20'"]),
        ([_record(haystack_dates=[5, 6])], ["the date of", "session 0", "int, not str"]),
        ([_record(question_date="soon")], ["'question_date'", "'soon'", "2023/05/30"]),
        ([_record(answer=None)], ["'answer'"]),
        ([_record(answer=True)], ["'answer'"]),
        ([_with_message(role="robot")], ["session 'later', message 2", "'robot'"]),
        ([_with_message(content=None)], ["session 'later', message 2", "'content'", "NoneType"]),
        ([_with_message(has_answer="yes")], ["session 'later', message 2", "'has_answer'"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    tmp_path: Path, payload: Any, words: list[str]
) -> None:
    with pytest.raises(BadInput) as caught:
        load_longmemeval(_file(tmp_path, payload))
    sentence = str(caught.value)
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


def test_files_that_are_no_files(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text('[{"question_id": ', encoding="utf-8")
    cut_gzip = tmp_path / "cut.json.gz"
    cut_gzip.write_bytes(gzip.compress(b"[" + b"1," * 999 + b"1]")[:-12])
    for path, words in [
        (tmp_path / "absent.json", "There is no file"),
        (cut, "not valid JSON"),
        (cut_gzip, "cut off"),
        (tmp_path, "cannot be read"),
    ]:
        with pytest.raises(BadInput, match=words):
            load_longmemeval(path)


def test_the_real_sample(sample: Path) -> None:
    conversations, report = load_longmemeval_with_report(sample)
    assert report.without_evidence == []
    assert sum(len(conversation.turns) for conversation in conversations) == 563
    assert Counter(
        question.category
        for conversation in conversations
        for question in (*conversation.questions, *conversation.adversarial_questions)
    ) == {
        "knowledge-update": 5,
        "multi-session": 5,
        "single-session-user": 5,
        "temporal-reasoning": 5,
        "single-session-assistant": 4,
        "single-session-preference": 4,
    }
    for conversation in conversations:
        ids = {turn.id for turn in conversation.turns}
        times = [turn.time for turn in conversation.turns if turn.time]
        assert len(times) == len(conversation.turns)
        assert times == sorted(times)
        for question in (*conversation.questions, *conversation.adversarial_questions):
            assert set(question.evidence) <= ids
            assert question.adversarial == conversation.id.endswith("_abs")
