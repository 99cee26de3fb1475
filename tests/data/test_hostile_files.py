"""Whatever stands in a file, it is loaded or refused in one sentence; nothing else is raised."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memograd.data import load_any
from memograd.data.lifelog import (
    LifelogSettings,
    generate_lifelogs,
    lifelog_of,
    read_lifelogs,
    write_lifelogs,
)
from memograd.errors import BadInput

DEEP = "[" * 100_000 + "]" * 100_000
HALF = "\ud83d"  # the first half of an emoji
VALUES: tuple[Any, ...] = (None, True, -1, 1.5, "", "x", [], {}, [None], HALF, 10**400)

CONVERSATION = {
    "id": "a",
    "turns": [{"speaker": "Ann", "text": "I moved to Oslo.", "time": "2024-06-02"}],
    "questions": [{"question": "Where?", "answer": "Oslo", "evidence": ["t1"]}],
}
LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "A",
        "speaker_b": "B",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"dia_id": "D1:1", "speaker": "A", "text": "hi"}],
    },
    "qa": [{"question": "q", "answer": "a", "evidence": ["D1:1"], "category": 1}],
}
LONGMEMEVAL = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "How many cats?",
    "answer": 2,
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_dates": ["2023/05/21 (Sun) 01:02"],
    "haystack_session_ids": ["s"],
    "haystack_sessions": [[{"role": "user", "content": "我又养了一只猫。", "has_answer": True}]],
}
MEMDAILY = {
    "tid": 7,
    "message_list": [{"mid": 0, "message": "我叫李雷。", "time": "2024年04月02日 周二 08:04"}],
    "question_list": [
        {
            "question": "我叫什么？",
            "answer": "李雷",
            "target_step_id": [0],
            "choices": {"A": "李雷"},
            "ground_truth": "A",
            "time": "2024年04月05日 周五 11:59",
        }
    ],
}


def _lifelog(folder: Path) -> dict[str, Any]:
    path = folder / "log.jsonl"
    write_lifelogs(generate_lifelogs(1, 0, LifelogSettings(sessions=2)), path)
    log: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return log


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value; of a list the first two entries."""
    yield above
    entries = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for key, entry in entries if isinstance(value, dict | list) else ():
        yield from (
            _places(entry, (*above, key)) if isinstance(entry, dict | list) else [(*above, key)]
        )


def _changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    document = copy.deepcopy(document)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return document


def _written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _everything(path: Path) -> None:
    """Load the file, and write every text that came out of it as a database would."""
    for conversation in load_any(path):
        repr(conversation).encode()
        lifelog_of(conversation, "en")


@pytest.mark.parametrize("name", ["conversation", "locomo", "longmemeval", "memdaily", "lifelog"])
def test_a_wrong_value_anywhere_is_loaded_or_one_sentence(name: str, tmp_path: Path) -> None:
    documents = {
        "conversation": lambda: CONVERSATION,
        "locomo": lambda: [LOCOMO],
        "longmemeval": lambda: [LONGMEMEVAL],
        "memdaily": lambda: [MEMDAILY],
        "lifelog": lambda: _lifelog(tmp_path),
    }
    document = documents[name]()
    refused = 0
    for place in _places(document):
        for value in VALUES:
            path = _written(tmp_path / "file.jsonl", _changed(document, place, value))
            try:
                _everything(path)
            except BadInput as error:
                refused += 1
                assert "\n" not in str(error)
    assert refused > len(VALUES)


@pytest.mark.parametrize(
    "text", [DEEP, '{"id": ' + DEEP + "}", json.dumps(CONVERSATION) + "\n" + DEEP]
)
def test_nesting_without_end_is_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="not valid JSON"):
        load_any(path)
    with pytest.raises(BadInput):
        read_lifelogs(path)


@pytest.mark.parametrize("document", [[LOCOMO], [LONGMEMEVAL], [MEMDAILY]])
def test_half_a_character_is_one_sentence(document: list[dict[str, Any]], tmp_path: Path) -> None:
    text = json.dumps(document).replace('"question": "', '"question": "\\ud83d', 1)
    path = tmp_path / "half.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="surrogates not allowed"):
        load_any(path)
    whole = text.replace("\\ud83d", "\\ud83d\\ude00")
    path.write_text(whole, encoding="utf-8")
    assert load_any(path)[0].questions[0].text.startswith("😀")


def test_a_question_with_a_time_zone_about_turns_without_times() -> None:
    path_free = copy.deepcopy(CONVERSATION)
    del path_free["turns"][0]["time"]  # type: ignore[index, arg-type]
    path_free["questions"][0]["asked_at"] = "2024-07-01T00:00:00+08:00"  # type: ignore[index, call-overload]
    from memograd.data.conversations_jsonl import _parse

    log = lifelog_of(_parse(path_free, "here"), "en")
    assert log.probes[0].asked_at.utcoffset() is not None


def _add_turn_again(log: dict[str, Any]) -> None:
    log["turns"].append(log["turns"][0])


def _ask_again(log: dict[str, Any]) -> None:
    log["probes"].append(log["probes"][0])


def _forget_target(log: dict[str, Any]) -> None:
    log["statements"][3]["gold"] = {"kind": "UPDATE"}


def _name_no_turn(log: dict[str, Any]) -> None:
    log["probes"][0]["evidence"] = ["D9:99"]


def _mix_times(log: dict[str, Any]) -> None:
    log["probes"][0]["asked_at"] += "+08:00"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_add_turn_again, "two turns with the same id"),
        (_ask_again, "two questions with the same id"),
        (_forget_target, "UPDATE without a target"),
        (_name_no_turn, "names 'D9:99', which is the id of no turn"),
        (_mix_times, "with and without a time zone"),
    ],
)
def test_a_life_log_that_contradicts_itself(change: Any, message: str, tmp_path: Path) -> None:
    log = _lifelog(tmp_path)
    change(log)
    with pytest.raises(BadInput, match=message):
        read_lifelogs(_written(tmp_path / "changed.jsonl", log))
