"""Rows and pairs to learn from: what is read, implied, left out, refused and where."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.warm_start.rows import (
    EMPTY,
    IDENTICAL,
    NOT_ONE_ANSWER,
    REPEATED,
    PreferenceRow,
    read_preference_rows,
    read_sft_rows,
)

USER = {"role": "user", "content": "Who?"}
ANN = {"role": "assistant", "content": "Ann"}
BOB = {"role": "assistant", "content": "Bob"}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def test_messages_and_prompts_of_both_forms(tmp_path) -> None:
    file = write(
        tmp_path / "rows.jsonl",
        {"messages": [USER, ANN, USER, {"role": "assistant", "content": "Bob"}], "extra": 1},
        {"prompt": [USER, ANN, USER], "completion": "Bob"},
        {"prompt": [USER], "completion": [ANN]},
        {"prompt": "2+2=", "completion": " 4"},
        {"messages": [{"from": "human", "value": "谁?"}, {"from": "gpt", "value": "安"}, USER]},
    )
    rows = read_sft_rows(file).used
    assert [row.place for row in rows] == ["1", "2", "3", "4", "5"]
    assert [row.learnt for row in rows] == [[1, 3], [3], [1], [0], [1]]
    assert [row.text for row in rows] == [None, None, None, "2+2=", None]
    assert rows[4].messages == (
        {"role": "user", "content": "谁?"},
        {"role": "assistant", "content": "安"},
    )


def test_a_text_can_be_a_users_message(tmp_path) -> None:
    file = write(tmp_path / "rows.jsonl", {"prompt": "2+2=", "completion": "4"})
    [row] = read_sft_rows(file, "chat").used
    assert row.text is None and row.learnt == [1]
    assert row.messages[0] == {"role": "user", "content": "2+2="}


def test_every_row_is_used_or_listed(tmp_path) -> None:
    good, empty = {"prompt": "a", "completion": "b"}, {"prompt": "a", "completion": " \n"}
    file = write(tmp_path / "rows.jsonl", good, empty, good, {"prompt": "c", "completion": "b"})
    rows = read_sft_rows(file)
    assert [row.place for row in rows.used] == ["1", "4"]
    assert rows.left_out == {EMPTY: ["2"], REPEATED: ["3"]}
    assert rows.total == 4


def test_one_chat_with_other_tools_is_no_repetition(tmp_path) -> None:
    """The chat template shows the tools, so the prompts differ."""
    tools = [[{"type": "function", "function": {"name": name}}] for name in ("find", "list")]
    rows = [{"messages": [USER, ANN], "tools": shown} for shown in (None, *tools, tools[1])]
    read = read_sft_rows(write(tmp_path / "rows.jsonl", *rows))
    assert [row.place for row in read.used] == ["1", "2", "3"]
    assert read.left_out == {REPEATED: ["4"]}


def test_one_chat_learnt_in_different_places_is_no_repetition(tmp_path) -> None:
    chat = [USER, ANN, USER, {"role": "assistant", "content": "Bob"}]
    last = {"prompt": chat[:3], "completion": "Bob"}
    same = {"prompt": chat[:3], "completion": chat[3:]}
    rows = read_sft_rows(write(tmp_path / "rows.jsonl", {"messages": chat}, last, same))
    assert rows.left_out == {REPEATED: ["3"]}


def test_gzip_blank_lines_and_a_byte_order_mark(tmp_path) -> None:
    line = json.dumps({"prompt": "a", "completion": "b"})
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(("\ufeff" + line + "\r\n\r\n").encode()))
    assert len(read_sft_rows(path).used) == 1


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ([1], "rows.jsonl:2 is not an object"),
        ({"prompt": "a"}, "rows.jsonl:2 has neither messages nor prompt and completion"),
        ({"prompt": " ", "completion": "b"}, "prompt in .*rows.jsonl:2 is empty"),
        ({"prompt": "a", "completion": [ANN]}, "its completion must be a text too"),
        ({"prompt": [USER], "completion": 4}, "completion in .*:2 must be a list of messages"),
        ({"messages": []}, "messages in .*:2 must be a list"),
        ({"messages": [USER]}, ":2 has no message of the assistant"),
        ({"messages": [ANN, USER, ANN]}, ":2 begins with the assistant"),
        ({"messages": [USER, {"role": "tool", "content": "x"}]}, "a role .system, user or"),
        ({"messages": [USER, {"role": "assistant", "content": None}]}, "a text as content"),
        ({"messages": [USER, {**ANN, "tool_calls": [{}]}]}, "a text as content"),
    ],
)
def test_a_row_that_is_none_is_named(tmp_path, row, sentence) -> None:
    file = write(tmp_path / "rows.jsonl", {"prompt": "a", "completion": "b"}, row)
    with pytest.raises(BadInput, match=sentence):
        read_sft_rows(file)


def test_a_line_that_is_no_json_is_named(tmp_path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "a", "completion": "b"}\n{"prompt": ')
    with pytest.raises(BadInput, match=r"rows\.jsonl:2 is not JSON"):
        read_sft_rows(file)


def test_files_without_rows(tmp_path) -> None:
    with pytest.raises(BadInput, match="There is no file"):
        read_sft_rows(tmp_path / "gone.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(BadInput, match=r"holds no row to learn from \(it is empty"):
        read_sft_rows(tmp_path / "empty.jsonl")
    with pytest.raises(BadInput, match="1 rows: an answer is empty"):
        read_sft_rows(write(tmp_path / "blank.jsonl", {"prompt": "a", "completion": ""}))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}" * 999)[:20])
    with pytest.raises(BadInput, match="was it cut off"):
        read_sft_rows(tmp_path / "cut.jsonl.gz")
    (tmp_path / "latin.jsonl").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_sft_rows(tmp_path / "latin.jsonl")


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": [USER], "chosen": "Ann", "rejected": "Bob"},
        {"prompt": [USER], "chosen": [ANN], "rejected": [BOB]},
        {"prompt": [USER], "chosen": [USER, ANN], "rejected": [USER, BOB]},
        {"chosen": [USER, ANN], "rejected": [USER, BOB]},
        {"conversations": [{"from": "human", "value": "Who?"}], "chosen": "Ann", "rejected": "Bob"},
        {
            "chosen": "\n\nHuman: Who?\n\nAssistant: Ann",
            "rejected": "\n\nHuman: Who?\n\nAssistant: Bob",
        },
        {
            "prompt": [USER],
            "chosen": "\n\nHuman: Who?\n\nAssistant: Ann",
            "rejected": "\n\nHuman: Who?\n\nAssistant: Bob",
        },
        {
            "prompt": "Who?",
            "chosen": "\n\nHuman: Who?\n\nAssistant: Ann",
            "rejected": "\n\nHuman: Who?\n\nAssistant: Bob",
        },
        {
            "prompt": "\n\nHuman: Who?\n\nAssistant:",
            "chosen": "\n\nHuman: Who?\n\nAssistant: Ann",
            "rejected": "\n\nHuman: Who?\n\nAssistant: Bob",
        },
        {"prompt": "\n\nHuman: Who?\n\nAssistant:", "chosen": " Ann", "rejected": " Bob"},
        {"prompt": "Who?", "chosen": [USER, ANN], "rejected": [USER, BOB]},
        {"prompt": "Who?", "chosen": ANN, "rejected": [BOB]},
    ],
)
def test_one_pair_in_all_its_forms(tmp_path, row) -> None:
    [pair] = read_preference_rows(write(tmp_path / "pairs.jsonl", row)).used
    assert pair == PreferenceRow("1", (USER,), "Ann", "Bob")


def test_texts_and_the_words_they_share(tmp_path) -> None:
    file = write(
        tmp_path / "pairs.jsonl",
        {"prompt": "2+2=", "chosen": " 4", "rejected": " 5"},
        {"chosen": "Two and two are four.", "rejected": "Two and two are five."},
        {"chosen": "So: yes", "rejected": "So: yes indeed"},
    )
    pairs = read_preference_rows(file).used
    assert [(pair.prompt, pair.chosen, pair.rejected) for pair in pairs] == [
        ("2+2=", " 4", " 5"),
        ("Two and two are", " four.", " five."),
        ("So:", " yes", " yes indeed"),
    ]
    chats = read_preference_rows(file, "chat").used
    assert chats[0].prompt == ({"role": "user", "content": "2+2="},)


def test_every_pair_is_used_or_listed(tmp_path) -> None:
    good = {"prompt": "a", "chosen": "b", "rejected": "c"}
    file = write(
        tmp_path / "pairs.jsonl",
        good,
        {"prompt": "a", "chosen": "b", "rejected": "b"},
        {"prompt": "a", "chosen": "b", "rejected": " "},
        good,
        {"chosen": [USER, ANN], "rejected": [USER, BOB, USER, ANN]},
        {"chosen": [USER, ANN], "rejected": [USER, ANN]},
        {"chosen": "same words", "rejected": "same words"},
    )
    rows = read_preference_rows(file)
    assert [row.place for row in rows.used] == ["1"]
    assert rows.left_out == {
        IDENTICAL: ["2", "6", "7"],
        EMPTY: ["3"],
        REPEATED: ["4"],
        NOT_ONE_ANSWER: ["5"],
    }


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"prompt": "a", "chosen": "b"}, ":1 has no 'rejected'"),
        ({"chosen": [USER, ANN], "rejected": [ANN]}, ":1 has no prompt, and chosen and rejected"),
        ({"chosen": "yes", "rejected": "no"}, ":1 has no prompt"),
        ({"chosen": "abc", "rejected": "abc def"}, ":1 has no prompt"),
        ({"prompt": "", "chosen": "b", "rejected": "c"}, "prompt in .*:1 is empty"),
        ({"prompt": [USER], "chosen": 1, "rejected": "c"}, "an answer in .*:1 must be a list"),
    ],
)
def test_a_pair_that_is_none_is_named(tmp_path, row, sentence) -> None:
    with pytest.raises(BadInput, match=sentence):
        read_preference_rows(write(tmp_path / "pairs.jsonl", row))


@pytest.mark.parametrize(
    ("name", "used", "left_out"),
    [
        ("medical_pairs_dev", 555, {}),
        ("dpo_zh_400", 400, {}),
        ("hh_harmless_1800", 1793, {EMPTY: 4, NOT_ONE_ANSWER: 3}),
    ],
)
def test_real_files(shared_data, name, used, left_out) -> None:
    """Counted apart from this code: rows of each file, empty answers, chats that part early."""
    rows = read_preference_rows(shared_data / "preference" / f"{name}.jsonl.gz")
    repeated = len(rows.left_out.pop(REPEATED, []))
    assert {reason: len(places) for reason, places in rows.left_out.items()} == left_out
    assert len(rows.used) + repeated == used
    assert all(
        isinstance(row.prompt, tuple) and row.prompt[-1]["role"] == "user" for row in rows.used
    )
