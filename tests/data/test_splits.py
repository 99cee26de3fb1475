from __future__ import annotations

import pytest

from memograd.data import Conversation, select_conversations, split_by_conversation
from memograd.data.splits import in_common, told_in
from memograd.errors import BadInput
from memograd.memory import RawTurn

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


def _saying(identity: str, *texts: str) -> Conversation:
    turns = tuple(RawTurn(f"{place}", "Ann", text, None, 1) for place, text in enumerate(texts))
    return Conversation(identity, ("Ann", "Bob"), turns, (), ())


def test_the_same_words_under_another_id_are_the_same_conversation() -> None:
    """A file that names each question's copy of a conversation anew leaks by every one of them."""
    known, again = (
        _saying("a", "我搬家了。", "Where  to?"),
        _saying("b", "我搬家了。 ", "Where to?"),
    )
    other = _saying("c", "我搬家了。")
    with pytest.raises(BadInput, match="'b' is there word for word under another id"):
        split_by_conversation([known, again, other], train=["a", "c"], eval=["b"])
    assert split_by_conversation([known, again, other], train=["a", "b"], eval=["c"])
    assert in_common(map(told_in, [known]), map(told_in, [again, other])) == ["b"]
    assert in_common([("x", [])], [("y", [])]) == []  # nothing said is not the same said
