"""A trained head on disk, and a folder of them of which one is current.

    policies/<version>/head.npz, head.json     every version that was adopted or refused

`head.npz` has the weights and `head.json` everything else; numpy alone reads them. How versions are
kept says `records/versions.py`. Invariant: what is loaded equals what was saved, to the bit, and a
folder that is damaged, half written or of another version is refused in one sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.manager.trained.network import Shape, Weights
from memograd.memory.manager.trained.observation import FACT_FEATURES, PAIR_FEATURES, SLOTS
from memograd.memory.records.archives import read_arrays, what_is_wrong
from memograd.memory.records.versions import VersionsFolder

FORMAT: Final = 1
WEIGHTS_FILE: Final = "head.npz"
ABOUT_FILE: Final = "head.json"


@dataclass(frozen=True)
class TrainedHead:
    """Weights by name, the shape of the network, and the embedder whose vectors it reads.

    about: what else is worth knowing (how it was trained), JSON values.
    """

    weights: Weights
    shape: Shape
    embedder: str
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """Twelve hexadecimal digits that name these very weights; the journal keeps them."""
        digest = hashlib.sha256()
        for name in sorted(self.weights):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.weights[name], np.float32).tobytes())
        return digest.hexdigest()[:12]


def save_head(head: TrainedHead, folder: Path) -> None:
    """Write the head into a folder, which is made; `head.json`, written last, makes it whole."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "format": FORMAT,
        "version": head.version,
        "embedder": head.embedder,
        "shape": head.shape.to_json(),
        "slots": SLOTS,
        "fact_features": list(FACT_FEATURES),
        "pair_features": list(PAIR_FEATURES),
        "about": dict(head.about),
    }
    (folder / ABOUT_FILE).unlink(missing_ok=True)
    # Without allow_pickle, which numpy below 2.1 would keep as one array more.
    _replace(
        folder / WEIGHTS_FILE,
        lambda file: np.savez(file, **head.weights),  # type: ignore[arg-type]
    )
    text = json.dumps(about, indent=2, ensure_ascii=False)
    _replace(folder / ABOUT_FILE, lambda file: file.write(text.encode("utf-8")))


def load_head(folder: Path) -> TrainedHead:
    """The head in a folder, or in the folder `final` of a run; raises BadInput if there is none."""
    if not (folder / ABOUT_FILE).is_file() and (folder / "final" / ABOUT_FILE).is_file():
        folder = folder / "final"
    if not (folder / ABOUT_FILE).is_file():
        raise BadInput(
            f"There is no trained head in {folder} ({ABOUT_FILE} is missing): name the folder"
            " `final` of a run of memograd train memory-ops."
        )
    try:
        about = json.loads((folder / ABOUT_FILE).read_text(encoding="utf-8"))
        same = (about["format"], about["slots"]) == (FORMAT, SLOTS)
        same = same and about["fact_features"] == list(FACT_FEATURES)
        same = same and about["pair_features"] == list(PAIR_FEATURES)
        if not same:
            raise BadInput(
                f"The head in {folder} was trained by another version of memograd: train it again."
            )
        weights = read_arrays(folder / WEIGHTS_FILE)
        head = TrainedHead(weights, Shape(**about["shape"]), about["embedder"], about["about"])
        version = about["version"]
    except BadInput:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"The trained head in {folder} cannot be read ({what_is_wrong(error)}): copy it again,"
            " or train it again with memograd train memory-ops."
        ) from None
    if head.version != version:
        raise BadInput(
            f"The trained head in {folder} is damaged: its weights are not those of version"
            f" {version}; copy it again."
        )
    return head


def _replace(path: Path, write: Any) -> None:
    """Write beside the file, then put it in place, so that no reader sees half of it."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


class PolicyVersions(VersionsFolder):
    """The heads in one folder; the folder is made with the first of them."""

    kind: ClassVar = "policy"
    about_file: ClassVar = ABOUT_FILE

    def load(self, version: str | None = None) -> TrainedHead:
        """A version, the current one by default."""
        return load_head(self.folder_of(version or self.current))

    def save(self, head: TrainedHead) -> str:
        """Keep a head beside the others without making it current; returns its version.

        Raises BadInput when it reads vectors of another embedder than the current one.
        """
        self._check_embedder(head)
        if head.version not in self.versions():
            save_head(head, self.folder / head.version)
        return head.version

    def check_fits(self, version: str) -> None:
        """Raise BadInput when it is not here, or reads vectors of another embedder."""
        self._check_embedder(self.load(version))

    def nothing_here(self) -> BadInput:
        """What to say of a folder without a current version."""
        if any((self.folder / place / ABOUT_FILE).is_file() for place in ("", "final")):
            return BadInput(
                f"{self.folder} holds one trained head, not a folder of versions: adopt it into"
                f" one with memograd policy adopt {self.folder} --dir policies."
            )
        return super().nothing_here()

    def _check_embedder(self, head: TrainedHead) -> None:
        if not self.is_readable() or self.current not in self.versions():
            return
        ours = self.load()
        if (ours.embedder, ours.shape.dimension) != (head.embedder, head.shape.dimension):
            raise BadInput(
                f"The policy {head.version} was trained with the embedder {head.embedder!r}, those"
                f" in {self.folder} with {ours.embedder!r}: adopt it into another folder."
            )
