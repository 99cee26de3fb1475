"""Which value of an item a message replaces, and by which of its words."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from memograd import Memory
from memograd.errors import BadInput
from memograd.memory.records.archives import read_arrays, write_arrays
from memograd.memory.relations import load_relation_model
from memograd.memory.relations.extents import of_one_extent
from memograd.memory.relations.model import SHIPPED
from memograd.memory.relations.rows import Span
from memograd.memory.relations.values import (
    LONGEST,
    ValuePointer,
    _spans,
    read_pointer,
    values_file,
    write_pointer,
)
from memograd.memory.relations.weights import read_weights

WHEN = "2024-05-07T18:30:00+00:00"


def spans(item: str, old: str, message: str, new: str) -> tuple[Span, Span]:
    """Where the two values stand."""
    a, b = item.index(old), message.rindex(new)
    return Span(a, a + len(old)), Span(b, b + len(new))


@pytest.mark.parametrize("tokens", [1, 2, 9, 40, 112])
@pytest.mark.parametrize("digits", [0, 6])  # of few digits many are equal
def test_the_likeliest_spans_are_those_of_looking_at_each(tokens: int, digits: int) -> None:
    random = np.random.default_rng(tokens)
    begins, ends, within = random.standard_normal((3, tokens)).astype(np.float32).round(digits)
    begin = begins - begins.max() - np.log(np.exp(begins - begins.max()).sum())
    end = ends - ends.max() - np.log(np.exp(ends - ends.max()).sum())
    sums = np.concatenate([[0.0], np.cumsum(within)])
    every = [
        (float(begin[i] + end[j] + sums[j + 1] - sums[i]), float(np.exp(begin[i] + end[j])), i, j)
        for i in range(tokens)
        for j in range(i, min(i + LONGEST, tokens))
    ]
    best = sorted(every, key=lambda one: -one[0])[:8]
    found = _spans(begins, ends, within)
    assert [(one.score, one.sure, one.first, one.last) for one in found] == best


@pytest.mark.parametrize(
    ("item", "old", "message", "new", "right"),
    [
        ("due on the 30th of June", "30", "it says the 13th", "13th", ("30th", "13th")),
        ("at half past two", "two", "Half past three", "Half past three", ("two", "three")),
        ("parks on level -2", "-2", "-3, sorry", "3", ("-2", "-3")),
        ("goes to St. Brigid's", "St. Brigid's", "it's St. Anne's", "Anne", ("Brigid", "Anne")),
        ("works at Brigid's", "Brigid", "no, Anne's", "Anne's", ("Brigid", "Anne")),
        ("手机尾号6620", "尾号6620", "尾号是6602", "6602", ("6620", "6602")),
        ("妻子姓欧阳", "姓欧阳", "姓司徒,看错了", "司徒", ("欧阳", "司徒")),
        ("开客栈,十二间房", "十二间", "能住人的,十一", "十一", ("十二", "十一")),
        ("有两个哥哥", "两个哥哥", "是弟弟", "弟弟", ("哥哥", "弟弟")),
        ("is A negative", "A negative", "is A positive", "positive", ("negative", "positive")),
        ("under Katarina Voss", "Katarina Voss", "Katharina. Voss is right", "Katharina",
         ("Katarina", "Katharina")),
        ("under Katarina Voss", "Katarina Voss", "Joan Hill. Voss was his mother", "Joan Hill",
         ("Katarina Voss", "Joan Hill")),
        ("去绍兴,住两晚", "两晚", "是嘉兴", "嘉兴", None),
        ("周六开业", "六", "周日才对", "日", ("六", "日")),
        # Whole on both sides: no "negative+", no "2 quid 20".
        ("is blood type B+.", "B", "the card says B negative", "negative", ("B+", "B negative")),
        ("is A-.", "A", "checked, it's A+", "+", ("A-", "A+")),
        ("codes in C++.", "C", "sorry, C#", "#", ("C++", "C#")),
        ("is B negative", "B negative", "sorry, positive", "positive", ("negative", "positive")),
        ("is B+", "+", "sorry, negative", "negative", None),
        ("B型阴性血", "阴性", "看错了,A型阳性", "阳性", ("B型阴性", "A型阳性")),
        ("pays 2 quid 40.", "40", "sorry 4 quid 20, swapped", "20", ("2 quid 40", "4 quid 20")),
        ("is 5 foot 10.", "10", "actually 6 foot", "6", ("5 foot 10", "6 foot")),
        ("闺女叫梓萱", "梓萱", "*紫萱 紫色的紫", "紫", ("梓萱", "紫萱")),
        ("身高一米七八", "七八", "是一米六九", "六九", ("一米七八", "一米六九")),
    ],
)  # fmt: skip
def test_both_values_have_one_extent(
    item: str, old: str, message: str, new: str, right: tuple[str, str] | None
) -> None:
    mine, its = spans(item, old, message, new)
    found = of_one_extent(item, mine, message, its)
    assert right == (found and (item[slice(*found[0])], message[slice(*found[1])]))


@pytest.mark.parametrize(
    ("item", "message", "old", "new"),
    [
        ("User's gate is B14.", "it's C14, read it wrong", "B14", "C14"),
        ("User said: the vet opens at 8.30.", "she says quarter to nine, 8.45", "8.30", "8.45"),
        (
            "User's niece is called Annika.",
            "Anneke! my sister will kill me",
            "Annika",
            "Anneke",
        ),
        ("User's choir meets on Mondays.", "we've moved it to Thursdays", "Mondays", "Thursdays"),
        ("用户的快递单号尾数是3381。", "看错了,是3318", "3381", "3318"),
        ("用户的姐姐嫁到了绵阳。", "德阳,说快了", "绵阳", "德阳"),
        ("用户说：停车费一个月三百五。", "又涨了,这个月起四百二", "三百五", "四百二"),
    ],
)  # fmt: skip
def test_the_model_points_at_both_values(item: str, message: str, old: str, new: str) -> None:
    found = load_relation_model().other_value(message, [("user", item)], item)
    assert found is not None
    assert (item[slice(*found.old)], found.new) == (old, new) and found.sure >= 0.2


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("User's dog is called Bramble.", "Bramble ate nine sausages off the grill"),
        ("User lives in Hull.", "The ferry to Rotterdam was three hours late"),
        ("User's bike is a Genesis.", "I also bought a Brompton for the train"),
        ("用户的女儿五岁。", "她今天画了三张画,贴得满墙都是"),
        ("用户在宁波上班。", "我表弟在福州上班"),
    ],
)
def test_what_replaces_nothing_points_at_nothing_surely(item: str, message: str) -> None:
    found = load_relation_model().other_value(message, [], item)
    assert found is None or found.sure < 0.2


def test_values_as_written_are_given_and_what_cannot_be_placed_is_not() -> None:
    """The model reads normalised text, in which one character may become several."""
    model = load_relation_model()
    item, message = "用户的车位是Ｂ１２，在地下二层。", "写错了，是Ｂ２１"
    found = model.other_value(message, [], item)
    assert found is not None and item[slice(*found.old)] == "Ｂ１２"
    assert model.other_value("wait, 580", [], "User pays ½ of the rent ㈱ for 508.") is None
    assert model.other_value("word " * 400, [], "User's room is 508.") is None


@pytest.mark.parametrize(
    ("said", "item"),
    [
        (
            [
                "The wedding is on 4 May in Ripon, 90 guests, my aunt bakes the cake",
                "oops, 14 May. rest is right",
            ],
            "The wedding is on 14 May in Ripon, 90 guests, User's aunt bakes the cake.",
        ),
        (
            ["我在扬州开修脚店,店里六个师傅,每天十点开门", "说错了,七个师傅"],
            "用户在扬州开修脚店,店里七个师傅,每天十点开门。",
        ),
        (
            ["我儿子在二中上初三,住校,周五回家", "打错了,是三中"],
            "用户的儿子在三中上初三,住校,周五回家。",
        ),
    ],
)
def test_of_several_things_one_value_changes(tmp_path: Path, said: list[str], item: str) -> None:
    assert remembered(tmp_path, said) == [item]


@pytest.mark.parametrize(
    ("said", "item"),
    [
        (
            [
                "The book club meets on Mondays.",
                "Mondays had become too crowded, it's Thursdays from now on.",
            ],
            "formerly: User said: The book club meets on Mondays",
        ),
        (
            ["车位租金一个月三百", "物业又涨了,车位现在一个月三百六"],
            "此前：用户说：车位租金一个月三百，",
        ),
    ],
)
def test_a_new_value_beside_a_word_for_more_is_no_addition(
    tmp_path: Path, said: list[str], item: str
) -> None:
    [line] = remembered(tmp_path, said)
    assert item in line


def test_a_correction_of_one_thing_ends_no_other(tmp_path: Path) -> None:
    """ "No, the fifth floor" seemed to replace the dentist's hours, too, with nothing."""
    said = [
        "My desk is 12",
        "no, desk 21, sorry",
        "My dentist opens at 8.15",
        "8.45, misread it",
        "牙医在三楼,姓阎",
        "不对,五楼",
    ]
    assert sorted(remembered(tmp_path, said, embedder="e5")) == [
        "User's dentist opens at 8.45.",
        "User's desk is 21.",
        "用户说：牙医在五楼,姓阎。",
    ]


def test_what_may_be_no_correction_is_kept_beside_the_value(tmp_path: Path) -> None:
    [line, *_] = remembered(
        tmp_path,
        ["My surname is Okeover.", "Autocorrect told the whole office it is Overcoat. I let it."],
    )
    assert "Okeover" in line


def remembered(path: Path, said: list[str], **settings: str) -> list[str]:
    """The items after these messages."""
    settings |= {"reader": "trained", "manager": "trained"}
    with Memory.open(path, env_file=None, **settings) as memory:
        for minute, text in enumerate(said):
            memory.add(text, user_id="u", timestamp=f"2024-05-07T18:{minute:02}:00+00:00")
        return [item["memory"] for item in memory.get_all(user_id="u")["results"]]


def test_a_pointer_is_read_as_it_was_written_and_refused_beside_others(tmp_path: Path) -> None:
    weights = read_weights(SHIPPED)
    pointer = read_pointer(values_file(SHIPPED), weights)
    assert pointer is not None and read_pointer(tmp_path / "none.npz", weights) is None
    file = tmp_path / "x.values.npz"
    write_pointer(pointer, weights, file)
    again = read_pointer(file, weights)
    assert again is not None
    assert all(np.array_equal(again.tensors[n], t) for n, t in pointer.tensors.items())
    shutil.copy(file, tmp_path / "y.values.npz")
    for name, change in (
        ("of", lambda of: np.array("0" * 16)),
        ("norm.weight", lambda of: of * np.float16("nan")),
        ("enter.weight", lambda of: of[:, :7]),
    ):
        arrays = dict(np.load(file))
        arrays[name] = change(arrays[name])
        np.savez(tmp_path / "y.values.npz", **arrays)
        with pytest.raises(BadInput, match="is not the value pointer"):
            read_pointer(tmp_path / "y.values.npz", weights)
    (tmp_path / "y.values.npz").write_bytes(b"PK\x03\x04 half of it")
    with pytest.raises(BadInput, match="is not the value pointer"):
        read_pointer(tmp_path / "y.values.npz", weights)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    write_arrays(file, {"a": np.arange(3)})
    with pytest.raises(TypeError):
        write_arrays(file, {"a": np.arange(4), 5: np.arange(2)})  # type: ignore[dict-item]
    assert list(read_arrays(file)["a"]) == [0, 1, 2]
    assert [one.name for one in tmp_path.iterdir()] == ["x.npz"]


def test_a_model_without_a_pointer_leaves_values_to_rules(tmp_path: Path) -> None:
    shutil.copy(SHIPPED, tmp_path / "relations.npz")
    model = load_relation_model(tmp_path / "relations.npz")
    assert not model.points
    assert model.other_value("wait, 580", [], "User's room is 508.") is None
    with Memory.open(tmp_path / "m", relations=tmp_path / "relations.npz", env_file=None) as memory:
        for text in ("My interview is on Tuesday.", "*Thursday, I meant Thursday"):
            memory.add(text, user_id="u", timestamp=WHEN)
        lines = [item["memory"] for item in memory.get_all(user_id="u")["results"]]
    assert any("Thursday" in line for line in lines)


def test_scores_are_finite_for_any_length() -> None:
    pointer = read_pointer(values_file(SHIPPED), read_weights(SHIPPED))
    assert isinstance(pointer, ValuePointer)
    vectors = np.random.default_rng(0).normal(size=(9, 3 * 384)).astype(np.float32)
    scores, none = pointer.scores(vectors, [1] * 6 + [2] * 3, Span(1, 5), Span(6, 8))
    assert scores.shape == (9, 6) and np.isfinite(scores).all() and np.isfinite(none)
