"""Operation accuracy and confusion by hand, and what a constant answer cannot gain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from memograd.errors import BadInput
from memograd.evaluation.confusion import (
    KINDS,
    ChosenOp,
    compare_operations,
    confusion_to_markdown,
    plot_confusion,
)
from memograd.memory.records.operations import OpKind

ADD, UPDATE, DELETE, NONE = OpKind.ADD, OpKind.UPDATE, OpKind.DELETE, OpKind.NONE
GOLD = [
    *(ChosenOp(ADD), ChosenOp(ADD), ChosenOp(ADD), ChosenOp(NONE, "s1")),
    *(ChosenOp(UPDATE, "s1"), ChosenOp(UPDATE, "s2"), ChosenOp(UPDATE, "s3")),
]
CHOSEN = [
    *(ChosenOp(ADD), ChosenOp(ADD), ChosenOp(NONE), ChosenOp(NONE)),
    *(ChosenOp(UPDATE, "s1"), ChosenOp(UPDATE, "s9"), ChosenOp(ADD)),
]


def test_by_hand() -> None:
    found = compare_operations(GOLD, CHOSEN)
    assert found.kind_hits == (1, 1, 0, 1, 1, 1, 0)
    assert found.strict_hits == (1, 1, 0, 1, 1, 0, 0)  # a NONE needs no target
    assert found.kind_accuracy == 5 / 7
    assert found.strict_accuracy == 4 / 7
    assert found.balanced_accuracy == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)  # no DELETE occurs
    assert (found.recall(UPDATE), found.recall(DELETE)) == (2 / 3, None)
    assert (found.precision(ADD), found.precision(DELETE)) == (2 / 3, None)


def test_markdown() -> None:
    assert confusion_to_markdown(compare_operations(GOLD, CHOSEN), "规则 a|b") == (
        "**规则 a|b**: 7 operations, strict accuracy 57.1, kind only 71.4, balanced over kinds "
        "77.8. Rows: gold, columns: chosen.\n\n"
        "| gold | ADD | UPDATE | DELETE | NONE | recall | right target |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| ADD | 2 | 0 | 0 | 1 | 66.7 |  |\n"
        "| UPDATE | 1 | 2 | 0 | 0 | 66.7 | 1 of 2 |\n"
        "| DELETE | 0 | 0 | 0 | 0 | - | 0 of 0 |\n"
        "| NONE | 0 | 0 | 0 | 1 | 100.0 |  |\n"
        "| precision | 66.7 | 100.0 | - | 50.0 |  |  |\n"
    )


OPS = st.builds(ChosenOp, st.sampled_from(KINDS), st.sampled_from(["a", "b", None]))
PAIRS = st.lists(st.tuples(OPS, OPS), min_size=1, max_size=12)


@given(PAIRS)
def test_strict_is_never_above_kind_and_rows_sum_up(pairs: list[tuple[ChosenOp, ChosenOp]]) -> None:
    gold, chosen = [g for g, _ in pairs], [c for _, c in pairs]
    found = compare_operations(gold, chosen)
    assert all(s <= k for s, k in zip(found.strict_hits, found.kind_hits, strict=True))
    for kind in KINDS:
        assert sum(found.counts[kind, other] for other in KINDS) == sum(
            op.kind is kind for op in gold
        )
    own = compare_operations(gold, gold)
    assert own.strict_accuracy == own.kind_accuracy == own.balanced_accuracy == 1


@given(st.lists(OPS, min_size=1, max_size=12), st.sampled_from(KINDS))
def test_always_the_same_gains_nothing_in_balance(gold: list[ChosenOp], kind: OpKind) -> None:
    found = compare_operations(gold, [ChosenOp(kind)] * len(gold))
    assert found.balanced_accuracy <= 1 / len({op.kind for op in gold})


def test_heat_map(tmp_path: Path) -> None:
    out = tmp_path / "new" / "confusion.png"
    plot_confusion(compare_operations(GOLD, CHOSEN), out, title="held-out forms")
    image = np.rint(imread(out)[..., :3] * 255).astype(int)
    assert image.shape == (640, 736, 3)
    darkest, lightest = (8, 48, 107), (247, 251, 255)  # a share of 1 (NONE) and of 0
    for colour in (darkest, lightest):
        assert (np.abs(image - np.array(colour)).max(axis=-1) < 3).sum() > 2000


def test_nothing_to_compare() -> None:
    with pytest.raises(BadInput, match="got 0 and 0"):
        compare_operations([], [])
    with pytest.raises(BadInput, match="got 7 and 6"):
        compare_operations(GOLD, CHOSEN[1:])
