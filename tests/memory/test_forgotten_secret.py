"""What was never kept is not looked for, and what asks for everything waits for a yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memograd import Memory
from memograd.memory.relations.model import SHIPPED

pytestmark = pytest.mark.skipif(
    not SHIPPED.is_file(), reason="the relation model's weights are not there"
)


@pytest.fixture
def memory(tmp_path: Path):
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as opened:
        yield opened


def items(memory: Memory) -> list[str]:
    return [one["memory"] for one in memory.get_all(user_id="alice")["results"]]


def test_forgetting_a_secret_that_was_never_kept_takes_nothing_else(memory: Memory) -> None:
    for said in ("I like green tea.", "My PIN is 4711.", "Forget my PIN."):
        memory.add(said, user_id="alice")
    assert items(memory) == ["User likes green tea."]


@pytest.mark.parametrize(
    ("said", "kept", "secret"),
    [
        ("my laptop login is Marzipan!88, and I start at the Oslo office in June", "Oslo", "Marzi"),
        ("login for the portal is marrow!39 and it wont work. im a gas engineer", "gas", "marrow"),
        (
            "Not for the record: the shop alarm goes off with 7719. For the record: the boiler"
            " man's coming Thursday.",
            "boiler",
            "7719",
        ),
        ("这个别记哈:我炒股亏了二十万。我是佛山做陶瓷设计的,想学建模用啥软件", "佛山", "炒股"),
    ],
)
def test_what_stands_beside_a_secret_is_kept(
    memory: Memory, said: str, kept: str, secret: str
) -> None:
    memory.add(said, user_id="alice")
    remembered = "\n".join(items(memory))
    assert kept in remembered and secret not in remembered


def test_a_secret_told_in_two_sentences_is_not_kept(memory: Memory) -> None:
    memory.add("Off the record: I was fired. My boss Pat did it. Can he?", user_id="alice")
    assert items(memory) == []


def test_what_is_to_stay_does_not_hide_what_is_to_go(memory: Memory) -> None:
    memory.add("I take sertraline. I work for the Ordnance Survey.", user_id="alice")
    memory.add("don't keep the part about the medication, the Survey is fine", user_id="alice")
    assert items(memory) == ["User works for the Ordnance Survey."]


def test_deleting_everything_waits_to_be_confirmed(memory: Memory) -> None:
    memory.add("I'm allergic to shellfish.", user_id="alice")
    asked = memory.add("Delete everything you know about me.", user_id="alice")
    assert [one["action"] for one in asked["pending"]] == ["delete_all"]
    assert items(memory) == ["User is allergic to shellfish."]


def test_a_new_value_leaves_the_other_part_of_an_item(memory: Memory) -> None:
    memory.add("我住在北京,我喜欢喝绿茶。", user_id="alice")
    memory.add("总算搬完家了,以后就是上海人啦", user_id="alice")
    kept = "\n".join(items(memory))
    assert "绿茶" in kept and "上海" in kept
    assert "北京" not in kept or "此前：用户住在北京" in kept
