"""Pairs of answers: written out, implied by a shared beginning, and as real files have them."""

from __future__ import annotations

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
)

USER = {"role": "user", "content": "Who?"}
ANN = {"role": "assistant", "content": "Ann"}
BOB = {"role": "assistant", "content": "Bob"}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


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
