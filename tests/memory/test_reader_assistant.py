"""What an assistant said: statements alone, lists with what they answer."""

from __future__ import annotations

from typing import Any

import pytest

from memograd.memory.reader.assistant import LONGEST_LIST, Line, asks_for_ideas, say_kept
from memograd.memory.reader.setting import Setting
from memograd.memory.reader.trained import TrainedReader
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations import load_relation_model

SETTING = Setting(
    RawTurn("t", "assistant", "", None, 1, role="assistant"), ("user", "assistant"), True, None, ""
)


def kept(message: str, *sentences: str) -> list[Line]:
    places = [message.index(one) for one in sentences]
    return [Line(at, at + len(one), one) for at, one in zip(places, sentences, strict=True)]


def told(message: str, before: str, *sentences: str) -> list[str]:
    lines = kept(message, *sentences)
    made = say_kept(lines, message, (("user", before),), SETTING)
    assert all(quote in message for quote, _ in made)
    return [draft.text for _, draft in made]


LIST = (
    "Sure!\n1. **Casa Clarita**: on the river\n2. **Hotel Sorolla**.\nI booked the first for you."
)


def test_lines_of_a_list_are_one_item_with_the_question() -> None:
    assert told(
        LIST,
        "We fly on Friday. Any hotels in Valencia?",
        "1. **Casa Clarita**: on the river",
        "2. **Hotel Sorolla**.",
        "I booked the first for you.",
    ) == [
        'Asked "Any hotels in Valencia?", the assistant listed: Casa Clarita: on the river;'
        " Hotel Sorolla.",
        "The assistant said: the assistant booked the first for the user.",
    ]


def test_a_chinese_list_too() -> None:
    message = "可以：\n- 前埔，单身公寓\n- 软件园二期\n"
    assert told(message, "厦门租房住哪里好？", "- 前埔，单身公寓", "- 软件园二期") == [
        "用户问“厦门租房住哪里好？”，助手列出：前埔，单身公寓；软件园二期。"
    ]


def test_a_list_behind_a_colon_is_one_too() -> None:
    message = "Sure! Here are two:\n1. **Casa Clarita**: small\n2. **Hotel Sorolla**: central"
    assert told(message, "Any hotels in Valencia?", message[6:]) == [
        'Asked "Any hotels in Valencia?", the assistant listed: Casa Clarita: small;'
        " Hotel Sorolla: central."
    ]


@pytest.mark.parametrize("asked", ["Can you give me a few hotels in Valencia?", "帮我推荐几家酒店"])
def test_a_question_for_oneself_tells_nothing_of_oneself(asked: str) -> None:
    lines = ("1. **Casa Clarita**: on the river", "2. **Hotel Sorolla**.")
    assert told(LIST, asked, *lines)[0].startswith(f'Asked "{asked}", the assistant listed: Casa')


def test_what_only_names_the_lines_below_it_is_no_item() -> None:
    message = "Podcasts: 1. Night Rail has two seasons. Choosing a pram: your gate is 4: keep it."
    assert told(
        message,
        "what is there on sleepers",
        "Podcasts: 1.",
        "Night Rail has two seasons.",
        "Choosing a pram:",
        "your gate is 4: keep it.",
    ) == [
        "The assistant said: Night Rail has two seasons.",
        "The assistant said: the user's gate is 4: keep it.",
    ]


@pytest.mark.parametrize(
    ("asked", "ideas"),
    [
        ("Do you have any tips on varnish?", True),
        ("Can you recommend some good apps?", True),
        ("Any tips on how to tell my boss?", False),
        ("What can coeliacs eat in Seoul?", False),
    ],
)
def test_a_question_for_tips_tells_nothing(asked: str, ideas: bool) -> None:
    assert asks_for_ideas(asked) is ideas


def test_a_single_line_is_a_statement() -> None:
    assert told(LIST, "Any hotels?", "2. **Hotel Sorolla**.") == [
        "The assistant said: Hotel Sorolla."
    ]


@pytest.mark.parametrize(
    "asked",
    [
        "My PIN is 4321, what goes well with it?",
        "Forget that I asked you about hotels, any hotels?",
        "Don't save this: where can I hide from my sister?",
        "这句别记：去哪里躲我妹？",
        "I'm six weeks pregnant, any hotels?",
        "我怀孕六周，住哪里好？",
        "We fly on Friday.",
    ],
)
def test_what_holds_a_secret_or_asks_to_forget_is_not_quoted(asked: str) -> None:
    lines = ("1. **Casa Clarita**: on the river", "2. **Hotel Sorolla**.")
    assert told(LIST, asked, *lines) == [
        "The assistant listed: Casa Clarita: on the river; Hotel Sorolla."
    ]


def test_long_lists_are_several_items_and_long_questions_are_left_out() -> None:
    lines = [f"- Place number {n}, which is {'very ' * 20}good" for n in range(12)]
    message = "\n".join(lines)
    items = told(message, "word " * 60 + "?", *lines)
    assert 1 < len(items) < 12
    assert all(len(item) < LONGEST_LIST + 60 for item in items)
    assert all(item.startswith("The assistant listed: Place number") for item in items)


WEEK = "Here's a week:\n\nMon: pie\nTue: cod\nWed: rice\nThu: pasta\n\nNone of it has wheat."


def test_lines_with_labels_are_one_list_with_all_of_them() -> None:
    assert told(WEEK, "can you do me a list of teas", "Tue: cod", "Wed: rice", "Thu: pasta") == [
        'Asked "can you do me a list of teas", the assistant listed: Mon: pie; Tue: cod;'
        " Wed: rice; Thu: pasta."
    ]
    week = "好的：\n周一:沙拉\n周二:鲈鱼\n周三:豆腐"
    assert told(week, "给我排几天午餐", "周一:沙拉", "周二:鲈鱼", "周三:豆腐") == [
        "用户问“给我排几天午餐”，助手列出：周一:沙拉；周二:鲈鱼；周三:豆腐。"
    ]
    assert told("Size: 4. I booked it.", "Did you?", "Size: 4.", "I booked it.") == [
        "The assistant said: Size: 4.",
        "The assistant said: the assistant booked it.",
    ]


@pytest.mark.parametrize(
    "asked",
    [
        "Need a letter to the county about our road",
        "can you fix the grammar in this bit of my artist statement",
        "Draft me a flatmate ad, $185 a week",
        "need a gluten free bun recipe as well",
        "can you write me a text to my boss",
        "帮我写个祝福语发给她",
        "帮我把这段改得客气一点",
        "红烧肉的做法",
    ],
)
def test_a_text_that_was_asked_for_says_nothing(asked: str) -> None:
    assert told("My gran was a potter.", asked, "My gran was a potter.") == []
    assert told("My gran was a potter.", "Was she?", "My gran was a potter.") != []
    assert told("It's on the 9th.", "did you get the text from my mum", "It's on the 9th.") != []


@pytest.mark.parametrize(
    ("asked", "writes"),
    [("Any tables free on Friday?", False), ("Write me a short note for Bo.", True)],
)
def test_a_text_that_was_asked_for_is_not_read_by_the_model(
    monkeypatch: pytest.MonkeyPatch, asked: str, writes: bool
) -> None:
    model = load_relation_model()
    worth, read = model.worth, []

    def noting(message: str, before: Any, segments: Any, role: str = "user") -> Any:
        read.append(role)
        return worth(message, before, segments, role)

    monkeypatch.setattr(model, "worth", noting)
    said = "I booked you a table at Sora for Friday at eight."
    turns = [RawTurn("a", "user", asked, None, 0), RawTurn("b", "assistant", said, None, 1)]
    _, heard = TrainedReader(model).hear(turns, ())
    assert ("assistant" in read, heard.facts != ()) == (not writes, not writes)
    assert heard.own == said
