"""LoCoMo's files, and whether the memory finds in a real one what its questions need."""

from __future__ import annotations

import json
import logging
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memograd.data import NOT_MENTIONED, load_locomo, load_locomo_with_report, select_conversations
from memograd.errors import BadInput
from memograd.memory import RawTurn, TurnMemory, load_embedder


def _record() -> dict[str, Any]:
    """A small file with every trap of the format."""
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "王芳",
            "speaker_b": "Bob",
            "session_10_date_time": "12:09 am on 13 September, 2023",
            "session_10": [{"speaker": "Bob", "dia_id": "D10:1", "text": "Late."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "王芳", "dia_id": "D2:1", "text": "我养了一只猫。"},
                {
                    "speaker": "Bob",
                    "dia_id": "D2:2",
                    "text": "Look!",
                    "blip_caption": "a photo of a dog",
                    "img_url": ["ignored"],
                },
            ],
            "session_11_date_time": "9:00 am on 1 October, 2023",
        },
        "qa": [
            {"question": "How many cats?", "answer": 1, "evidence": ["D2:1"], "category": 1},
            {
                "question": "Did Bob adopt a cat?",
                "adversarial_answer": "Yes",
                "evidence": ["D2:1"],
                "category": 5,
            },
            {
                "question": "Is it Bob's?",
                "adversarial_answer": "Yes",
                "answer": "No",
                "evidence": ["D2:1"],
                "category": 5,
            },
            {
                "question": "What animals? ",
                "answer": " cat, dog",
                "evidence": ["D2:1; D2:2", "D10:01", "D2:2"],
                "category": 4,
            },
            {
                "question": "Why?",
                "answer": "unknown",
                "evidence": ["D2:1, D9:9", "D", ""],
                "category": 2,
            },
            {"question": "Would Bob?", "answer": "Yes", "evidence": [], "category": 3},
        ],
    }


def _write(path: Path, payload: Any) -> Path:
    path.write_text(json.dumps(payload, ensure_ascii=False), encoding="utf-8")
    return path


def test_sessions_in_numerical_order_with_parsed_dates_and_captions(tmp_path: Path) -> None:
    [conversation] = load_locomo(_write(tmp_path / "f.json", [_record()]))
    afternoon, night = datetime(2023, 5, 8, 13, 56), datetime(2023, 9, 13, 0, 9)
    assert conversation.turns == (
        RawTurn("D2:1", "王芳", "我养了一只猫。", afternoon, 2),
        RawTurn("D2:2", "Bob", "Look!", afternoon, 2, "a photo of a dog"),
        RawTurn("D10:1", "Bob", "Late.", night, 10),
    )
    assert conversation.speakers == ("王芳", "Bob")


def test_questions_keep_their_place_in_their_ids(tmp_path: Path) -> None:
    [conversation] = load_locomo(_write(tmp_path / "f.json", [_record()]))
    assert [(q.id, q.category) for q in conversation.questions] == [
        ("conv-1/q0", "multi-hop"),
        ("conv-1/q3", "single-hop"),
        ("conv-1/q4", "temporal"),
        ("conv-1/q5", "open-domain"),
    ]
    assert [q.answer for q in conversation.questions] == ["1", "cat, dog", "unknown", "Yes"]
    assert conversation.questions[1].text == "What animals?"


def test_adversarial_questions_are_kept_apart(tmp_path: Path) -> None:
    [conversation] = load_locomo(_write(tmp_path / "f.json", [_record()]))
    unanswerable, negated = conversation.adversarial_questions
    assert (unanswerable.id, unanswerable.category) == ("conv-1/q1", "adversarial")
    assert (unanswerable.answer, unanswerable.adversarial_answer) == (NOT_MENTIONED, "Yes")
    assert (negated.answer, negated.adversarial_answer) == ("No", "Yes")
    assert unanswerable.adversarial and negated.adversarial
    assert not any(question.adversarial for question in conversation.questions)


def test_evidence_resolves_and_the_rest_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = _write(tmp_path / "f.json", [_record()])
    [conversation], report = load_locomo_with_report(path)
    assert conversation.questions[1].evidence == ("D2:1", "D2:2", "D10:1")
    assert conversation.questions[2].evidence == ("D2:1",)
    assert tuple(report.unresolved) == (
        ("conv-1/q4", "D2:1, D9:9"),
        ("conv-1/q4", "D"),
        ("conv-1/q4", ""),
    )
    assert report.without_evidence == ["conv-1/q5"]
    with caplog.at_level(logging.WARNING):
        load_locomo(path)
    dropped, kept = (record.getMessage() for record in caplog.records)
    assert "dropped 3 pieces of evidence that name no turn" in dropped
    assert "1 questions name no evidence and are kept (first: conv-1/q5)" in kept


def test_missing_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no file"):
        load_locomo(tmp_path / "none.json")
    with pytest.raises(BadInput, match="cannot be read"):
        load_locomo(tmp_path)
    text = json.dumps([_record()])
    for number, cut in enumerate((0, 1, len(text) // 2, len(text) - 1)):
        path = tmp_path / f"{number}.json"
        path.write_text(text[:cut], encoding="utf-8")
        with pytest.raises(BadInput, match="is not valid JSON"):
            load_locomo(path)
    path.write_bytes(b'["\xff"]')
    with pytest.raises(BadInput, match="not UTF-8"):
        load_locomo(path)


def _without(key: str) -> dict[str, Any]:
    record = _record()
    del record[key]
    return record


def _changed(*path: str | int, to: Any) -> dict[str, Any]:
    record: Any = _record()
    place = record
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return record  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        ({}, "is dict, not list"),
        (["text"], "conversation 0 is str, not dict"),
        ([_without("sample_id")], "conversation 0 has no 'sample_id'"),
        ([_without("qa")], r"\(conv-1\) has no 'qa'"),
        ([_record(), _record()], "two conversations with the id 'conv-1'"),
        ([_changed("conversation", "session_2", 0, "text", to=3)], "'text' in .* is int, not str"),
        ([_changed("conversation", "session_2", 1, "dia_id", to="D2:1")], "two turns .* 'D2:1'"),
        (
            [_changed("conversation", "session_2_date_time", to="8.5.2023")],
            "session_2 has the date '8.5.2023': write it like",
        ),
        ([_changed("qa", 0, "category", to=6)], "q0 has the category 6"),
        ([_changed("qa", 0, "category", to=True)], "'category' in .*q0 is bool, not int"),
        ([_changed("qa", 0, "answer", to=["a"])], "q0 needs 'answer' as a text"),
        ([_changed("qa", 0, to={"question": "?", "evidence": [], "category": 1})], "q0 needs"),
        ([_changed("qa", 0, "evidence", to="D2:1")], "'evidence' in .* is str, not list"),
        ([_changed("qa", 0, "evidence", to=[1])], "evidence of .*q0 is int, not str"),
    ],
)
def test_wrong_shapes_are_named_in_one_sentence(
    tmp_path: Path, payload: Any, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        load_locomo(_write(tmp_path / "f.json", payload))
    assert "\n" not in str(caught.value)


def test_the_real_file_has_the_published_counts(locomo_file: Path) -> None:
    conversations, report = load_locomo_with_report(locomo_file)
    assert conversations == load_locomo(locomo_file)
    counts = {
        conversation.id: (
            len(conversation.turns),
            dict(Counter(question.category for question in conversation.questions)),
            len(conversation.adversarial_questions),
        )
        for conversation in conversations
    }
    assert counts == {
        "conv-26": (
            419,
            {"multi-hop": 32, "temporal": 37, "open-domain": 13, "single-hop": 70},
            47,
        ),
        "conv-30": (369, {"multi-hop": 11, "temporal": 26, "single-hop": 44}, 24),
    }
    assert report.unresolved == []
    assert report.without_evidence == ["conv-26/q30", "conv-26/q46"]
    first = conversations[0].questions[0]
    assert (first.id, first.answer, first.evidence) == ("conv-26/q0", "7 May 2023", ("D1:3",))
    assert conversations[0].questions[1].answer == "2022"
    for conversation in conversations:
        turn_ids = {turn.id for turn in conversation.turns}
        for question in (*conversation.questions, *conversation.adversarial_questions):
            assert set(question.evidence) <= turn_ids


@pytest.mark.slow
def test_evidence_recall_at_ten_on_half_of_conversation_30(
    locomo_file: Path, tmp_path: Path
) -> None:
    [conversation] = select_conversations(load_locomo(locomo_file), ["conv-30"])
    # The first half of the sessions: enough to tell, at half the embedding.
    half = [turn for turn in conversation.turns if turn.session <= 9]
    told = {turn.id for turn in half}
    asked = [one for one in conversation.questions if told.issuperset(one.evidence)]
    with TurnMemory.open(tmp_path / "m.db", load_embedder("minilm")) as memory:
        memory.add_turns(conversation.id, half)
        results = memory.search_many(
            [question.text for question in asked],
            scope=conversation.id,
            top_k=10,
            token_budget=10**6,
            count_tokens=len,
        )
    recalls = []
    for question, found in zip(asked, results, strict=True):
        assert len(found) == 10
        ids = {one.turn.id for one in found}
        recalls.append(len(ids & set(question.evidence)) / len(question.evidence))
    recall = sum(recalls) / len(recalls)
    print(f"evidence recall@10 over {len(recalls)} questions: {recall:.3f}")
    assert len(recalls) == 40 and recall > 0.4
