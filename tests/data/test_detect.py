from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

import pytest

from memograd.data import (
    Question,
    construction_case_of,
    load_any,
    load_locomo,
    load_longmemeval,
    load_memdaily,
    write_conversations_jsonl,
)
from memograd.data.lifelog import Lifelog, Probe, ToldStatement, write_lifelogs
from memograd.errors import BadInput
from memograd.memory import RawTurn


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("locomo/locomo_conv26_conv30.json", load_locomo),
        ("longmemeval/longmemeval_oracle_sample.json", load_longmemeval),
        ("memdaily/01_simple_roles.json.gz", load_memdaily),
    ],
)
def test_the_real_files_are_recognised(shared_data: Path, name: str, load) -> None:
    path = shared_data / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside this checkout (it may not be bundled)")
    assert load_any(path) == load(path)


def test_recognised_by_content_and_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "01_simple_roles.jsonl"
    said = {"speaker": "Ann", "dia_id": "D1:1", "text": "I moved to Bergen."}
    about = {"speaker_a": "Ann", "speaker_b": "Bo", "session_1": [said]}
    about["session_1_date_time"] = "1:56 pm on 8 May, 2023"
    asked = {"question": "Where does Ann live?", "answer": "Bergen", "evidence": ["D1:1"]}
    record = {"sample_id": "conv-1", "conversation": about, "qa": [asked | {"category": 4}]}
    path.write_text(json.dumps([record]), encoding="utf-8")
    told = load_locomo(path)
    assert [question.text for question in told[0].questions] == ["Where does Ann live?"]
    assert load_any(path) == told
    gzipped = tmp_path / "longmemeval.gz"
    gzipped.write_bytes(gzip.compress(b"\xef\xbb\xbf \n" + path.read_bytes()))
    assert load_any(gzipped) == told
    write_conversations_jsonl(told, path)
    assert load_any(path) == told


def test_life_logs_become_conversations(tmp_path: Path) -> None:
    day = datetime(2024, 5, 7)
    question = Question(
        "log/q0", "小红住在哪里？", "上海", "单跳", ("t1",), asked_at=day, accepted=("上海市",)
    )
    log = Lifelog(
        id="log",
        language="zh",
        speakers=("小红", "助手"),
        turns=(RawTurn("t1", "小红", "我搬到了上海。", day, 1),),
        statements=(ToldStatement("s1", "t1", "小红住在上海。", day),),
        probes=(Probe(question, ("s1",)),),
    )
    write_lifelogs([log], tmp_path / "logs.jsonl")
    assert load_any(tmp_path / "logs.jsonl") == [log.conversation()]
    assert construction_case_of(log) == construction_case_of(log.conversation())


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", "[1]", '[{"id": "a", "turns": []}]', '{"question_id": "q"}', '{"messages": []}'],
)
def test_no_known_format_lists_those_that_are(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(content)
    with pytest.raises(BadInput) as caught:
        load_any(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    for name in ("LoCoMo", "LongMemEval", "MemDaily", "life logs", "conversations (a line"):
        assert name in sentence
    for key in json.loads(content) if content.startswith("{") else ():
        assert key in sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PAR1....", "load_mem_alpha or load_memory_agent_bench"),
        (b"hello", "not valid JSON"),
        (b"", "is empty"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_what_is_no_json(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=words):
        load_any(path)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no file"):
        load_any(tmp_path / "none")
    with pytest.raises(BadInput, match="cannot be read"):
        load_any(tmp_path)
