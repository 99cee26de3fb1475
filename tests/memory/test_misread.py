"""What an assistant misunderstood is set right without a loss of what the user has said."""

from __future__ import annotations

import pytest

from memograd import Memory

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """The memory as it ships; each case has a user of its own."""
    folder = tmp_path_factory.mktemp("memory")
    with Memory.open(folder, reader="trained", manager="trained", env_file=None) as opened:
        yield opened


def talked(memory: Memory, told: str, answer: str, denied: str) -> str:
    """All items after the user told something, the assistant answered, the user denied."""
    roles = ("user", "assistant", "user")
    said = [{"role": r, "content": c} for r, c in zip(roles, (told, answer, denied), strict=True)]
    memory.add(said, user_id=told, timestamp=WHEN)
    return "\n".join(one["memory"] for one in memory.get_all(user_id=told)["results"])


@pytest.mark.parametrize(
    ("told", "answer", "denied", "stays", "more"),
    [
        (
            "I'm a scrub nurse in theatre at Hawke, nine years now",
            "How lovely! Do you enjoy performing on stage?",
            "lol no, operating theatre. never been on a stage in my life",
            "User is a scrub nurse in theatre at Hawke",
            "operating theatre",
        ),
        (
            "My sister Oona lives in Cork",
            "So your daughter Oona is in Cork. Does she like it?",
            "sister! not my daughter, I have no kids",
            "User's sister Oona lives in Cork.",
            "no kids",
        ),
        (
            "我在苏州一家律所做前台",
            "好的，您在苏州做律师，打什么官司比较多？",
            "前台前台，不是律师，你别搞混",
            "用户在苏州一家律所做前台。",
            "前台",
        ),
        (
            "I need a running plan",
            "How old are you, about 30?",
            "nope, 52",
            "User needs a running plan.",
            'User, asked "How old are you?", answered: 52.',
        ),
        (
            "我对坚果过敏",
            "记下了，您对海鲜过敏。",
            "不是海鲜，是坚果",
            "用户对坚果过敏。",
            "坚果",
        ),
    ],
)
def test_a_misread_statement_stays(memory, told, answer, denied, stays, more):
    items = talked(memory, told, answer, denied)
    assert stays in items and more in items and "mistake" not in items and "误说" not in items


def test_a_denial_that_says_nothing_new_is_not_kept(memory):
    items = talked(memory, "我在宁波做外贸", "您在宁德做外贸。", "宁波！不是宁德")
    assert "宁波" in items and "宁德" not in items


@pytest.mark.parametrize(
    ("told", "answer", "denied", "gone"),
    [
        (
            "I've got a pet tiger",
            "Wow, what does your tiger eat?",
            "just kidding, there's no tiger",
            "User has got a pet tiger.",
        ),
        (
            "My dentist is on Monday at the clinic",
            "Noted: the dentist at the clinic.",
            "no wait, not Monday, Tuesday",
            "on Monday",
        ),
    ],
)
def test_what_the_user_takes_back_is_gone(memory, told, answer, denied, gone):
    assert gone not in talked(memory, told, answer, denied)
