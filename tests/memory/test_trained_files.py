"""A trained head on disk: the same to the bit, or refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.memory.manager.trained.files import TrainedHead, load_head, save_head
from memograd.memory.manager.trained.network import Shape


def some_head(seed: int = 0) -> TrainedHead:
    rng = np.random.default_rng(seed)
    weights = {name: rng.normal(size=(3, 4)).astype(np.float32) for name in ("b.weight", "a")}
    return TrainedHead(weights, Shape(8, 16, 1, 2), "trigram", {"step": 3, "说明": "好"})


def without_version(path: Path) -> None:
    about = json.loads(path.read_text(encoding="utf-8"))
    del about["version"]
    path.write_text(json.dumps(about), encoding="utf-8")


def test_comes_back_to_the_bit(tmp_path: Path) -> None:
    head = some_head()
    save_head(head, tmp_path / "final")
    for folder in (tmp_path / "final", tmp_path):  # a run's folder stands for its final
        back = load_head(folder)
        assert (back.version, back.shape, back.embedder) == (
            head.version,
            head.shape,
            head.embedder,
        )
        assert back.about == head.about
        assert all(np.array_equal(back.weights[name], head.weights[name]) for name in head.weights)


def test_saving_again_replaces(tmp_path: Path) -> None:
    save_head(some_head(0), tmp_path)
    save_head(some_head(1), tmp_path)
    assert load_head(tmp_path).version == some_head(1).version
    assert sorted(path.name for path in tmp_path.iterdir()) == ["head.json", "head.npz"]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda folder: (folder / "head.json").unlink(), "no trained head in"),
        (lambda folder: (folder / "head.npz").unlink(), "cannot be read \\(No such file"),
        (lambda folder: (folder / "head.npz").write_bytes(b"PK\3\4"), "cannot be read"),
        (lambda folder: (folder / "head.npz").write_bytes(b""), "it is empty, cut off, or a file"),
        (lambda folder: (folder / "head.json").write_text("{"), "cannot be read"),
        (lambda folder: without_version(folder / "head.json"), "cannot be read"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, spoil, sentence: str) -> None:
    save_head(some_head(), tmp_path)
    spoil(tmp_path)
    with pytest.raises(BadInput, match=sentence):
        load_head(tmp_path)


def test_other_weights_than_written_down_are_refused(tmp_path: Path) -> None:
    save_head(some_head(0), tmp_path)
    about = (tmp_path / "head.json").read_text()
    save_head(some_head(1), tmp_path)
    (tmp_path / "head.json").write_text(about)
    with pytest.raises(BadInput, match="damaged"):
        load_head(tmp_path)


def test_features_of_another_version_are_refused(tmp_path: Path) -> None:
    save_head(some_head(), tmp_path)
    about = json.loads((tmp_path / "head.json").read_text())
    about["pair_features"] = about["pair_features"][:-1]
    (tmp_path / "head.json").write_text(json.dumps(about))
    with pytest.raises(BadInput, match="another version"):
        load_head(tmp_path)
