"""Talk of months as training text: most messages change nothing of what was told before them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.memory.embedders.e5_weights import read_e5
from memograd.memory.relations.rows import ITEMS_A_ROW, RowBuilder
from memograd.memory.relations.weights import RELATIONS, WORTHS
from memograd.tasks.relations.rows import GROUPS, Examples, read_dialogues
from memograd.tasks.relations.settings import RelationsConfig
from memograd.tasks.relations.talks import Worded, nearest, read_talks


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    turns = [
        ["Ann", "I live in Leeds and my cat is called Wok"],
        ["Ben", "my cat is called Soot"],
        ["Ann", "the cat sat on my keyboard all morning"],
        ["Ann", "I moved to York last week"],
        ["Ben", "搬家累吗"],
    ]
    questions = [{"q": "Where does Ann live?", "a": "York", "evidence": ["1:4"], "kind": "updates"}]
    file = tmp_path / "en-x.jsonl"
    one = {
        "id": "en-x-01",
        "speakers": ["Ann", "Ben"],
        "sessions": [{"at": "2024-05-01T10:00", "turns": turns}],
        "questions": questions,
    }
    file.write_text(json.dumps(one, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def test_what_a_talk_tells_is_kept_and_a_change_is_left_out(talk: Path) -> None:
    found = read_talks([talk])
    texts = [turn.text for turn in found.turns]
    assert "the cat sat on my keyboard all morning" in texts
    assert "I moved to York last week" not in texts  # it changes something, and nobody wrote what
    assert texts == [turn.text for turn in read_talks([talk]).turns]
    [last] = [turn for turn in found.turns if turn.text == "搬家累吗"]
    assert any("Soot" in item.text for item in last.told)
    assert last.before[-1] == ("user", "I moved to York last week")
    assert all("Ben" in item.text or "Ann" in item.text for item in found.items[False])


def test_the_nearest_share_words() -> None:
    items = [Worded(text, frozenset(text.split())) for text in ("a red car", "a cat", "the sea")]
    assert nearest("cat", items, 1, random.Random(0)) == ["a cat"]


def test_a_pass_reads_talk_in_which_all_stays(talk: Path, tmp_path: Path) -> None:
    dialogues = tmp_path / "en-y.jsonl"
    case = {
        "k": "change",
        "t": [
            ["u", "I drive a Golf", [["car", "I drive a Golf", "User drives a Golf."]]],
            ["u", "sold it, it's a Fiat now", [], [["car", "replace"]]],
        ],
    }
    dialogues.write_text("\n".join([json.dumps(case)] * 6), encoding="utf-8")
    turns, builder = read_dialogues(dialogues), RowBuilder(read_e5())
    config = RelationsConfig(talk_share=1.0, crowded=1.0)
    plain = Examples(turns, builder, config).of_pass(0)
    crowded = Examples(turns, builder, config, read_talks([talk])).of_pass(0)
    stays = tuple(RELATIONS.index(name) for name in GROUPS["keep"])
    of_talk = [one for one in crowded if one.relations and one.relations[0][0] == stays]
    assert of_talk and len(crowded) == len(plain) + len(of_talk)
    assert all(right == stays for one in of_talk for right, _ in one.relations)
    asks_for_nothing = tuple(WORTHS.index(name) for name in ("fact", "nothing"))
    assert all(one.worths and set(one.worths) == {asks_for_nothing} for one in of_talk)
    assert max(len(one.relations) for one in crowded) <= ITEMS_A_ROW
    filled = sum(len(one.relations) for one in crowded[: len(plain)])
    assert filled > sum(len(one.relations) for one in plain)
    replaced = (RELATIONS.index("replace"),)
    assert sum(replaced in [r for r, _ in one.relations] for one in crowded) == 6


def test_a_file_that_is_no_talk_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "en-z.jsonl"
    file.write_text("{}\n", encoding="utf-8")
    with pytest.raises(BadInput):
        read_talks([file])
