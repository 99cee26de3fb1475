"""Raw preference files into one format: nothing lost, nothing unlisted, real files too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.warm_start.reward_model_rows import conversation, convert, read_pairs
from memograd.warm_start.rows import read_preference_rows

ASKED = [{"role": "user", "content": "药怎么吃？"}]


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


FORMATS = {
    "strings": {"prompt": "药怎么吃？", "chosen": "饭后服用", "rejected": "不知道"},
    "messages": {"chosen": [*ASKED, said("饭后服用")], "rejected": [*ASKED, said("不知道")]},
    "prompt and messages": {
        "prompt": ASKED,
        "chosen": [said("饭后服用")],
        "rejected": [said("不知道")],
    },
    "conversations": {
        "conversations": [{"from": "human", "value": "药怎么吃？"}],
        "chosen": "饭后服用",
        "rejected": "不知道",
    },
    "whole chats after the prompt": {
        "prompt": "药怎么吃？",
        "chosen": [*ASKED, said("饭后服用")],
        "rejected": [*ASKED, said("不知道")],
    },
    "answers as lists after the prompt": {
        "prompt": "药怎么吃？",
        "chosen": [said("饭后服用")],
        "rejected": [said("不知道")],
    },
    "conversations, each answer one message": {
        "conversations": [{"from": "human", "value": "药怎么吃？"}],
        "chosen": {"from": "gpt", "value": "饭后服用"},
        "rejected": {"from": "gpt", "value": "不知道"},
    },
    "HH text after its prompt": {
        "prompt": "\n\nHuman: 药怎么吃？\n\nAssistant:",
        "chosen": " 饭后服用",
        "rejected": " 不知道",
    },
    "HH text": {
        "chosen": "\n\nHuman: 药怎么吃？\n\nAssistant: 饭后服用",
        "rejected": "\n\nHuman: 药怎么吃？\n\nAssistant: 不知道",
    },
}


def write(path: Path, *records: object) -> Path:
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_becomes_the_same_row(tmp_path, name) -> None:
    convert(write(tmp_path / "raw.jsonl", FORMATS[name]), tmp_path / "out.jsonl")
    [line] = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {
        "prompt": ASKED,
        "chosen": [said("饭后服用")],
        "rejected": [said("不知道")],
    }
    assert "药怎么吃" in line


def test_text_prompts_stay_texts_if_told(tmp_path) -> None:
    raw = write(tmp_path / "raw.jsonl", FORMATS["strings"])
    convert(raw, tmp_path / "out.jsonl", string_prompts="text")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == FORMATS["strings"]


def test_what_is_wrong_is_listed_by_line(tmp_path) -> None:
    good = FORMATS["strings"]
    raw = write(
        tmp_path / "raw.jsonl",
        good,
        {**good, "rejected": "饭后服用"},
        good,
        {**good, "chosen": ""},
        {**good, "chosen": "不知道", "rejected": "饭后服用"},
        {**good, "prompt": "held out"},
    )
    test = write(tmp_path / "test.jsonl", {**good, "prompt": "HELD out"})
    done = convert(raw, tmp_path / "out.jsonl", apart_from=test)
    assert done.rows == 6 and done.written == {str(tmp_path / "out.jsonl"): 1}
    assert done.left_out == {
        "chosen and rejected are the same": ["2"],
        "the same as an earlier row": ["3"],
        "an answer is empty": ["4"],
        "the opposite of an earlier row": ["5"],
        "its conversation is held out": ["6"],
    }
    assert "1 left out: an answer is empty (line 4)" in done.lines()
    assert json.loads(done.as_json())["left_out"] == done.left_out


def test_a_file_is_never_written_over(tmp_path) -> None:
    raw = write(tmp_path / "raw.jsonl", FORMATS["strings"])
    with pytest.raises(BadInput, match="must all be different"):
        convert(raw, raw)
    with pytest.raises(BadInput, match="must all be different"):
        convert(raw, tmp_path / "a", held_out=tmp_path / "a")
    kept = write(tmp_path / "kept.jsonl", FORMATS["messages"])
    before = kept.read_bytes()
    for files in ({"out": kept}, {"out": tmp_path / "b", "held_out": kept}):
        with pytest.raises(BadInput, match=r"kept\.jsonl is there already"):
            convert(raw, **files)
    assert kept.read_bytes() == before and not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    "name, used, left_out",
    [
        ("medical_pairs_dev", 555, {}),
        ("dpo_zh_400", 400, {}),
        (
            "hh_harmless_1800",
            1793,
            {
                "an answer is empty": 4,
                "chosen and rejected differ in more than their last message": 3,
            },
        ),
    ],
)
def test_real_files(tmp_path, shared_data, name, used, left_out) -> None:
    source = shared_data / "preference" / f"{name}.jsonl.gz"
    out, test = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    done = convert(source, out, held_out=test, fraction=0.2)
    assert {reason: len(lines) for reason, lines in done.left_out.items()} == left_out
    assert sum(done.written.values()) == used == done.rows - sum(left_out.values())
    parts = [read_preference_rows(path) for path in (out, test)]
    assert [len(part.used) for part in parts] == list(done.written.values())
    before = {(str(r.prompt), r.chosen, r.rejected) for r in read_pairs(source, "chat").used}
    after = {(str(r.prompt), r.chosen, r.rejected) for part in parts for r in part.used}
    assert before == after
    sides = [{conversation(row) for row in part.used} for part in parts]
    assert not sides[0] & sides[1]


def test_half_characters_are_listed_and_the_rest_is_written(tmp_path) -> None:
    """Files that were cut in the middle of an emoji hold them; no file can be written of them."""
    good = FORMATS["strings"]
    lines = [json.dumps({**good, "chosen": "\ud83d"}), json.dumps({**good, "prompt": "a\udc00"})]
    raw = tmp_path / "raw.jsonl"
    raw.write_text("\n".join([*lines, json.dumps(good)]))
    done = convert(raw, tmp_path / "out.jsonl")
    assert done.written == {str(tmp_path / "out.jsonl"): 1}
    [places] = done.left_out.values()
    assert places == ["1", "2"] and "half a character" in done.lines()[-1]


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.jsonl", b"[" * 100_000, "a.jsonl:1 is not JSON"),
        ("a.jsonl", b'{"a":' * 5_000, "a.jsonl:1 is not JSON"),
        ("a.jsonl.gz", b"\x1f\x8b\x08" + bytes(7) + b"\x07" * 20, "cannot be unpacked"),
        ("a.jsonl", b'{"prompt": "q", "chosen": 7, "rejected": "b"}', "must both be texts"),
        ("a.jsonl", b'{"prompt": "q", "chosen": "a", "rejected": [7]}', "must both be texts"),
    ],
)
def test_hostile_files_are_one_sentence(tmp_path, name, data, sentence) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(BadInput, match=sentence):
        convert(file, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
