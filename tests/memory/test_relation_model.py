"""The relation model as it is served: one layer of e5 with heads of chance, so that it is quick."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.memory.embedders.e5_weights import read_e5
from memograd.memory.embedders.quantised_graph import start_session
from memograd.memory.relations import CLOSING, RELATIONS, WORTHS, RelationModel, load_relation_model
from memograd.memory.relations.graph import build_graph, skips_first
from memograd.memory.relations.rows import (
    BEFORE as BEFORE_PART,
)
from memograd.memory.relations.rows import (
    BEFORE_TOKENS,
    MAX_CHARACTERS,
    MAX_TOKENS,
    RowBuilder,
    Span,
)
from memograd.memory.relations.thresholds import NAMES, Thresholds, changed
from memograd.memory.relations.weights import (
    About,
    Weights,
    quantised,
    read_weights,
    write_weights,
)

MESSAGE = "guess who's a Montrealer now! 周六搬的家。"
BEFORE = [("user", "I live in Ottawa"), ("assistant", "A lovely place.")]
ITEMS = ["User lives in Ottawa.", "用户养了一只猫。", "User's car is a Skoda."]


def small_weights() -> Weights:
    e5 = read_e5()
    tensors, chance = e5.state_dict(word_embeddings=False), np.random.default_rng(0)
    names = {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "attended": "attention.output.dense",
        "wide": "intermediate.dense",
        "narrow": "output.dense",
    }
    norms = {"attended": "attention.output.LayerNorm", "narrow": "output.LayerNorm"}
    matrices, vectors = {}, {}
    for name, theirs in names.items():
        matrices[f"layers.0.{name}"] = quantised(tensors[f"encoder.layer.0.{theirs}.weight"])
        vectors[f"layers.0.{name}.bias"] = tensors[f"encoder.layer.0.{theirs}.bias"]
    for end in ("weight", "bias"):
        for name, theirs in norms.items():
            vectors[f"layers.0.{name}.norm.{end}"] = tensors[f"encoder.layer.0.{theirs}.{end}"]
        vectors[f"embeddings.norm.{end}"] = tensors[f"embeddings.LayerNorm.{end}"]
    vectors["embeddings.positions"] = tensors["embeddings.position_embeddings.weight"]
    vectors["embeddings.parts"] = chance.normal(size=(3, 384)).astype(np.float32)
    for head, labels in (("relations", len(RELATIONS)), ("worths", len(WORTHS))):
        for part, rows, columns in (("inner", 32, 768), ("outer", labels, 32)):
            shape = (rows, columns)
            vectors[f"{head}.{part}.weight"] = (0.05 * chance.normal(size=shape)).astype(np.float32)
            vectors[f"{head}.{part}.bias"] = np.zeros(rows, dtype=np.float32)
    return Weights(About(384, 1, 12, 1e-12), matrices, vectors)


@pytest.fixture(scope="module")
def model() -> RelationModel:
    return RelationModel(small_weights())


@pytest.fixture(scope="module")
def builder() -> RowBuilder:
    return RowBuilder(read_e5())


def test_every_row_is_a_distribution(model: RelationModel) -> None:
    related = model.relate(MESSAGE, BEFORE, ITEMS)
    valued = model.worth(MESSAGE, BEFORE, ["guess who's a Montrealer now!", "周六搬的家。"])
    assert related.shape == (3, len(RELATIONS)) and valued.shape == (2, len(WORTHS))
    assert np.allclose(related.sum(axis=1), 1) and np.allclose(valued.sum(axis=1), 1)
    assert set(CLOSING) < set(RELATIONS)


def test_nothing_is_asked(model: RelationModel) -> None:
    assert model.relate("", [], []).shape == (0, len(RELATIONS))
    assert model.worth("Hello", [], []).shape == (0, len(WORTHS))
    assert np.allclose(model.relate("", [], ["User has a cat."]).sum(axis=1), 1)


def test_it_reads_message_context_item_and_role(model: RelationModel) -> None:
    base = model.relate(MESSAGE, BEFORE, ITEMS[:1])
    assert not np.allclose(base, model.relate("I sold it", BEFORE, ITEMS[:1]))
    assert not np.allclose(base, model.relate(MESSAGE, BEFORE[:1], ITEMS[:1]))
    assert not np.allclose(base, model.relate(MESSAGE, BEFORE, ITEMS[1:2]))
    assert not np.allclose(base, model.relate(MESSAGE, BEFORE, ITEMS[:1], role="tool"))


def test_what_came_before_is_cut_as_the_whole_of_it(builder: RowBuilder) -> None:
    talk = [
        ("assistant", "Here is a plan for your week in Lisbon, by day.\n\n- 1 lime " * 40),
        ("user", "这是一份关于里斯本一周行程的长计划。" * 60),
        ("assistant", "x" * 900 + " and so on " * 20),
        ("user", "ok"),
    ]
    for end in range(1, len(talk) + 1):
        row = builder.row("thanks", role="user", before=talk[:end])
        whole: list[int] = []
        for who, text in talk[:end]:
            whole += [*builder.tokens(f"{who}: {text[-MAX_CHARACTERS:]}"), row.tokens[-1]]
        assert row.tokens[1 : 1 + BEFORE_TOKENS] == whole[-BEFORE_TOKENS:]
        assert row.parts.count(BEFORE_PART) == 1 + BEFORE_TOKENS


def test_the_last_layer_leaves_out_what_nobody_asks_for() -> None:
    weights = load_relation_model()._weights
    whole = start_session(build_graph(weights, range(weights.layers), signed_weights=False))
    rest = range(2, weights.layers)
    assert skips_first(weights, rest)
    begun = start_session(build_graph(weights, range(2), signed_weights=False))
    ended = start_session(build_graph(weights, rest, signed_weights=False))
    entered = np.random.default_rng(0).normal(size=(60, 384)).astype(np.float32)
    expected = whole.run(None, {"entered": entered})[0]
    [half] = begun.run(None, {"entered": entered})
    for first in (0, 49):
        left = ended.run(None, {"entered": half, "first": np.array([first])})[0]
        np.testing.assert_allclose(left, expected[first:], atol=1e-6)


def test_a_row_goes_through_no_layer_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_relation_model()
    runs: list[int] = []

    class Noting:
        def __init__(self, number: int, session: Any) -> None:
            self.number, self.session = number, session

        def run(self, *given: Any) -> Any:
            runs.append(self.number)
            return self.session.run(*given)

    noting = [Noting(n, session) for n, session in enumerate(model._encoder._sessions)]
    monkeypatch.setattr(model._encoder, "_sessions", noting)
    model.drop_texts()
    item = "User's room is 508."
    model.relate("wait, it's 580", [], [item])
    assert model.other_value("wait, it's 580", [], item) is not None
    assert runs == [0, 1, 2, 3]
    model.drop_texts()
    runs.clear()
    model.other_value("no, it's 581", [], item)
    assert runs == [0, 1, 2]
    model.relate("no, it's 581", [], [item])
    assert runs == [0, 1, 2, 3]


def test_more_items_than_a_row_holds_are_read_in_several(model: RelationModel) -> None:
    many = [f"User owns {number} books." for number in range(19)]
    found = model.relate(MESSAGE, [], many)
    assert np.allclose(found[8:16], model.relate(MESSAGE, [], many[8:16]))
    assert np.allclose(found[16:], model.relate(MESSAGE, [], many[16:]))


def test_a_long_message_counts_by_the_part_that_speaks_of_the_item_most(
    model: RelationModel, builder: RowBuilder
) -> None:
    parts = ["I bought bread and milk and eggs. " * 14, "I moved to Montreal. " * 12]
    found = model.relate("".join(parts), [], ITEMS)
    windows = [window.text for window in builder.windows("".join(parts))]
    each = np.stack([model.relate(window, [], ITEMS) for window in windows])
    assert len(windows) > 1 and "".join(windows) == "".join(parts)
    assert np.allclose(found[:, 0], each[:, :, 0].min(axis=0))


def test_all_segments_of_a_long_message_are_valued(model: RelationModel) -> None:
    sentences = [f"In year {number} I lived in town number {number}." for number in range(120)]
    found = model.worth(" ".join(sentences), [], sentences)
    assert found.shape[0] == 120 and np.allclose(found.sum(axis=1), 1)
    assert len(np.unique(found.round(5), axis=0)) > 60


def test_a_segment_that_is_not_in_the_message_is_read_alone(model: RelationModel) -> None:
    found = model.worth(MESSAGE, BEFORE, ["User lives in Montreal."])
    alone = model.worth("User lives in Montreal.", BEFORE, ["User lives in Montreal."])
    assert np.allclose(found, alone)


def test_text_that_is_not_unicode_is_refused(model: RelationModel) -> None:
    with pytest.raises(BadInput, match="not valid Unicode"):
        model.relate("\ud800", [], ITEMS)


def test_threads_get_the_same_numbers(model: RelationModel) -> None:
    alone = model.relate(MESSAGE, BEFORE, ITEMS)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: model.relate(MESSAGE, BEFORE, ITEMS), range(16)))
    assert all(np.array_equal(alone, one) for one in found)


def _in_child(model: RelationModel, queue: multiprocessing.queues.Queue[np.ndarray]) -> None:
    queue.put(model.relate(MESSAGE, BEFORE, ITEMS))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
def test_a_forked_child_gets_the_same_numbers(model: RelationModel) -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(model, queue))
    child.start()
    found = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert np.array_equal(found, model.relate(MESSAGE, BEFORE, ITEMS))


def test_a_file_is_read_as_it_was_written(tmp_path: Path, model: RelationModel) -> None:
    write_weights(small_weights(), tmp_path / "model.npz")
    again = load_relation_model(tmp_path / "model.npz")
    assert again.about == small_weights().about
    expected = model.relate(MESSAGE, BEFORE, ITEMS)
    assert np.array_equal(again.relate(MESSAGE, BEFORE, ITEMS), expected)


def test_a_damaged_or_foreign_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with pytest.raises(BadInput, match="no relation model"):
        read_weights(path)
    write_weights(small_weights(), path)
    whole = path.read_bytes()

    def refused(wrong: str) -> None:
        """In words of ours: what numpy says of a foreign file is advice about pickled objects."""
        with pytest.raises(BadInput) as found:
            read_weights(path)
        said = str(found.value)
        assert said.startswith(f"{path} is not a whole relation model ({wrong}"), said
        assert "give a file that `memograd train relations` wrote" in said

    pickled = pickle.dumps({"weights": [1.0]})
    for spoilt in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"x" * 100, pickled):
        path.write_bytes(spoilt)
        refused("it is empty, cut off, or a file of another kind")
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    path.write_bytes(bytes(flipped))
    refused("it is damaged, or holds other things than numbers")
    for about, wrong in (
        (np.array([{}], dtype=object), "it is damaged, or holds other things than numbers"),
        (np.array("{}"), "it lacks 'format'"),
        (np.array("no JSON"), "it does not say what it is"),
        (np.array("[1]"), "it does not say what it is"),
    ):
        np.savez(path, about=about, other=np.zeros(3))
        refused(wrong)
    np.savez(path, other=np.zeros(3))
    refused("it lacks 'about'")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("about", "a text")
    refused("it holds other things than numbers")


texts = st.text(max_size=300)


@settings(max_examples=60, deadline=None)
@given(texts, st.lists(texts, max_size=8), st.lists(texts, max_size=3), st.data())
def test_a_row_fits_whatever_it_is_made_of(
    builder: RowBuilder, message: str, items: list[str], before: list[str], data: st.DataObject
) -> None:
    cuts = st.integers(0, len(message))
    pairs = data.draw(st.lists(st.tuples(cuts, cuts), max_size=5))
    segments = [Span(min(pair), max(pair)) for pair in pairs]
    row = builder.row(
        message * 9,
        role="user",
        before=[("assistant", text) for text in before],
        items=items,
        segments=segments,
    )
    assert len(row.tokens) == len(row.parts) <= MAX_TOKENS
    assert len(row.items) == len(items) and len(row.segments) == len(segments)
    assert all(0 <= start < end <= len(row.tokens) for start, end in [*row.items, *row.segments])
    assert {row.parts[start] for start, _ in row.items} <= {2}
    assert {row.parts[start] for start, _ in row.segments} <= {1}


@given(st.lists(st.floats(1e-6, 1 - 1e-6), min_size=len(NAMES), max_size=len(NAMES)))
@settings(max_examples=10, deadline=None)
def test_thresholds_are_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float]
) -> None:
    numbers[:5] = sorted(numbers[:5], reverse=True)  # closed above, doubted below
    numbers[3], numbers[4] = numbers[4], numbers[3]
    numbers[0], numbers[3] = (one + (1 - one) / 2 for one in (numbers[0], numbers[3]))
    numbers[4] = min(numbers[4], numbers[3] / 2)
    thresholds = Thresholds(*numbers)
    weights = small_weights()
    about = replace(weights.about, thresholds=thresholds)
    path = tmp_path_factory.mktemp("weights") / "model.npz"
    write_weights(replace(weights, about=about), path)
    assert read_weights(path).about == about


def without_thresholds(path: Path, **changed: object) -> Path:
    """The weights with `thresholds` of the file removed, or with what is given in its place."""
    write_weights(small_weights(), path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    about = json.loads(str(arrays["about"]))
    about.pop("thresholds")
    np.savez(path, **(arrays | {"about": np.array(json.dumps(about | changed))}))
    return path


def test_a_file_without_thresholds_means_the_defaults(tmp_path: Path) -> None:
    assert read_weights(without_thresholds(tmp_path / "old.npz")).about.thresholds == Thresholds()


def test_a_threshold_that_nothing_reads_any_more_is_read_over(tmp_path: Path) -> None:
    values = asdict(Thresholds(keep_above=0.4)) | {"faint_above": 0.2}
    path = without_thresholds(tmp_path / "old.npz", thresholds=values)
    assert read_weights(path).about.thresholds == Thresholds(keep_above=0.4)
    with pytest.raises(BadInput, match="faint_above decides nothing any more"):
        changed(Thresholds(), {"faint_above": 0.2})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "threshold close_above is missing"),
        (asdict(Thresholds()) | {"close": 0.5}, "no threshold 'close'"),
        (asdict(Thresholds()) | {"keep_above": "much"}, "keep_above is 'much'"),
        (asdict(Thresholds()) | {"keep_above": 1.5}, "above 0 and below 1"),
        (asdict(Thresholds()) | {"keep_above": True}, "keep_above is True"),
        (asdict(Thresholds()) | {"doubt_above": 0.8}, "less sure than what is closed"),
        (asdict(Thresholds()) | {"crowded_doubt_above": 0.8}, "less sure than what is closed"),
        ([0.5], "dictionary of numbers by name"),
    ],
)
def test_wrong_thresholds_are_refused(tmp_path: Path, values: object, said: str) -> None:
    path = without_thresholds(tmp_path / "wrong.npz", thresholds=values)
    with pytest.raises(BadInput, match=said) as refused:
        read_weights(path)
    assert str(path) in str(refused.value)
