"""The table of methods: the same estimates in JSON, Markdown and picture, item by item."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from memograd.errors import BadInput
from memograd.evaluation.bootstrap import bootstrap_interval, paired_bootstrap_difference
from memograd.evaluation.memory_table import (
    MethodResult,
    compare_methods,
    plot_table,
    table_to_json,
    table_to_markdown,
    write_table,
)

KEEP_ALL = MethodResult(
    "keep all", {"recall@10": [1.0, 1.0, 0.0, 0.0], "op accuracy": [0.0, 1.0]}, {"tokens": 20000}
)
RECENCY = MethodResult("最近 a|b", {"recall@10": [0.0, 1.0, 0.0, 0.0]}, {"seconds": 0.0123456})
TRAINED = MethodResult(
    "trained", {"recall@10": [1.0, 1.0, 1.0, 0.0], "op accuracy": [1.0, 1.0]}, {"tokens": 1234.5}
)
TABLE = compare_methods([KEEP_ALL, RECENCY, TRAINED], baseline="keep all")


def test_estimates_and_differences_are_the_bootstraps() -> None:
    found = TABLE.estimates["recall@10"]["trained"]
    assert (found.mean, found.n) == (0.75, 4)
    assert (found.low, found.high) == bootstrap_interval([1.0, 1.0, 1.0, 0.0])
    difference = TABLE.differences["recall@10"]["trained"]
    assert (difference.mean, difference.low, difference.high) == paired_bootstrap_difference(
        KEEP_ALL.per_item["recall@10"], TRAINED.per_item["recall@10"]
    )
    assert list(TABLE.differences["op accuracy"]) == ["trained"]


def test_markdown() -> None:
    assert table_to_markdown(TABLE) == (
        "points (0 to 100), mean [95% bootstrap interval over items]; totals as they are\n\n"
        "| method | recall@10 (n=4) | op accuracy (n=2) | tokens | seconds |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| keep all | 50.0 [0.0, 100.0] | 50.0 [0.0, 100.0] | 20000 | - |\n"
        "| 最近 a\\|b | 25.0 [0.0, 75.0] | - | - | 0.0123 |\n"
        "| trained | 75.0 [25.0, 100.0] | 100.0 [100.0, 100.0] | 1234 | - |\n\n"
        "Difference to keep all over the same items, in points:\n\n"
        "| method | recall@10 | op accuracy |\n"
        "| --- | ---: | ---: |\n"
        "| 最近 a\\|b | -25.0 [-75.0, +0.0] | - |\n"
        "| trained | +25.0 [+0.0, +75.0] | +50.0 [+0.0, +100.0] |\n"
    )
    alone = table_to_markdown(compare_methods([RECENCY]))
    assert "Difference" not in alone


def test_json_holds_all_of_it() -> None:
    text = table_to_json(TABLE)
    assert "最近" in text
    document = json.loads(text)
    assert document["baseline"] == "keep all"
    trained = document["methods"][2]
    assert trained["totals"] == {"tokens": 1234.5}
    assert trained["metrics"]["recall@10"]["scores"] == [1.0, 1.0, 1.0, 0.0]
    assert trained["metrics"]["recall@10"]["mean"] == 0.75
    assert document["differences"]["recall@10"]["trained"]["mean"] == 0.25
    assert "op accuracy" not in document["methods"][1]["metrics"]


BLUE_BAR = (91, 138, 240)  # at alpha 0.75 on white


def blue(path: Path) -> np.ndarray:
    """Which pixels are a bar's [height, width] bool."""
    image = np.rint(imread(path)[..., :3] * 255).astype(int)
    return np.asarray(np.abs(image - np.array(BLUE_BAR)).max(axis=-1) < 8)


@pytest.mark.filterwarnings("ignore:Glyph")  # a machine without a Chinese font
def test_bars_are_as_long_as_the_means(tmp_path: Path) -> None:
    methods = [
        MethodResult("trained", {"hits": [1, 1, 1, 0]}),
        MethodResult("最近 a|b", {"hits": [1, 0, 0, 0]}),
    ]
    plot_table(compare_methods(methods), tmp_path / "bars.png")
    lengths = blue(tmp_path / "bars.png").sum(axis=1)
    rows = np.flatnonzero(lengths)
    first_gap = int(np.argmax(np.diff(rows) > 1)) + 1
    upper, lower = lengths[rows[:first_gap]].sum(), lengths[rows[first_gap:]].sum()
    assert upper / lower == pytest.approx(3, rel=0.1)  # 75 points above 25


@pytest.mark.filterwarnings("ignore:Glyph")
def test_three_files(tmp_path: Path) -> None:
    paths = write_table(TABLE, tmp_path / "new", "table")
    assert [path.name for path in paths] == ["table.json", "table.md", "table.png"]
    assert paths[1].read_text(encoding="utf-8") == table_to_markdown(TABLE)
    assert json.loads(paths[0].read_text(encoding="utf-8")) == json.loads(table_to_json(TABLE))
    assert blue(paths[2]).sum() > 1000
    only_totals = compare_methods([MethodResult("x", {}, {"tokens": 1})])
    assert [path.suffix for path in write_table(only_totals, tmp_path)] == [".json", ".md"]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"same items in every method; got \{'keep all': 4, 'x': 1\}"
    ):
        compare_methods([KEEP_ALL, MethodResult("x", {"recall@10": [1.0]})])
    with pytest.raises(BadInput, match="each name once"):
        compare_methods([KEEP_ALL, KEEP_ALL])
    with pytest.raises(BadInput, match="each name once"):
        compare_methods([])
    with pytest.raises(BadInput, match='no method "none"'):
        compare_methods([KEEP_ALL], baseline="none")
    for scores in ([], [1.5], [math.nan]):
        with pytest.raises(BadInput, match='"f1" of "x" needs'):
            MethodResult("x", {"f1": scores})
    with pytest.raises(BadInput, match='total "seconds" of "x" is nan'):
        MethodResult("x", {}, {"seconds": math.nan})
    with pytest.raises(BadInput, match="no metric to plot"):
        plot_table(compare_methods([MethodResult("x", {}, {"tokens": 1})]), tmp_path / "x.png")


def test_groups_and_weights_change_intervals_and_means() -> None:
    scores = [1.0] * 6 + [0.0] * 6
    groups = {"hits": ["a"] * 6 + ["b"] * 6}
    plain = compare_methods([MethodResult("m", {"hits": scores})]).estimates["hits"]["m"]
    grouped = MethodResult("m", {"hits": scores}, groups=groups)
    table = compare_methods([MethodResult("none", {"hits": [0.0] * 12}), grouped], baseline="none")
    found = table.estimates["hits"]["m"]
    assert (found.mean, found.low, found.high) == (0.5, 0.0, 1.0)
    assert plain.low > 0.1 and plain.high < 0.9
    assert table.differences["hits"]["m"] == found
    assert "over conversations and their items" in table_to_markdown(table)
    weighted = MethodResult("m", {"hits": [1.0, 0.0]}, weights={"hits": [3.0, 1.0]})
    assert compare_methods([weighted]).estimates["hits"]["m"].mean == 0.75
