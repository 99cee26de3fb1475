from __future__ import annotations

import pytest

from memograd.data import Conversation, select_conversations, split_by_conversation
from memograd.errors import BadInput

ALL = [Conversation(f"conv-{number}", ("Ann", "Bob"), (), (), ()) for number in (26, 30, 41)]


def test_split_by_ids() -> None:
    split = split_by_conversation(ALL, train=["conv-41", "conv-26"], eval=["conv-30"])
    assert [one.id for one in split.train] == ["conv-41", "conv-26"]
    assert [one.id for one in split.eval] == ["conv-30"]


def test_a_conversation_is_on_one_side_only() -> None:
    with pytest.raises(BadInput, match="'conv-26' is named more than once"):
        split_by_conversation(ALL, train=["conv-26"], eval=["conv-30", "conv-26"])
    with pytest.raises(BadInput, match="'conv-30' is named more than once"):
        split_by_conversation(ALL, train=["conv-30", "conv-30"], eval=[])


def test_an_unknown_conversation_is_named_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"no conversation 'conv-99'.*conv-26, conv-30, conv-41"):
        select_conversations(ALL, ["conv-26", "conv-99"])
