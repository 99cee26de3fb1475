"""A folder of trained heads, of which one is current; going back is one step.

    policies/<version>/head.npz, head.json     every version that was adopted or refused

How versions are kept says `records/versions.py`. Invariant: a version is what was saved, to the
bit.
"""

from __future__ import annotations

from typing import ClassVar

from memograd.errors import BadInput
from memograd.memory.manager.trained.files import ABOUT_FILE, TrainedHead, load_head, save_head
from memograd.memory.records.versions import VersionsFolder


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
