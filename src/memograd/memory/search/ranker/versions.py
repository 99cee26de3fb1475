"""A folder of rankers, of which one is current: what `memograd learn` makes and takes back.

    rankers/<version>/ranker.json     every ranker that was adopted, the first one too

How versions are kept says `records/versions.py`. `Memory.open(ranking="rankers")` ranks by the
current one and follows it. Invariant: a version names the contents of its file.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import ClassVar

from memograd.errors import BadInput
from memograd.memory.records.versions import VersionsFolder
from memograd.memory.search.ranker.linear import RANKER_FILE, Ranker, load_ranker, save_ranker


class RankerVersions(VersionsFolder):
    """The rankers in one folder; the folder is made with the first of them."""

    kind: ClassVar = "ranker"
    about_file: ClassVar = RANKER_FILE

    def load(self, version: str | None = None) -> Ranker:
        """A version, the current one by default."""
        return load_ranker(self.folder_of(version or self.current) / RANKER_FILE)

    def save(self, ranker: Ranker) -> str:
        """Keep a ranker beside the others without making it current; returns its version.

        Raises BadInput when it was trained on vectors of another embedder than the current one.
        """
        self._check_embedder(ranker)
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".new-") as beside:
            written = Path(beside) / "version"
            save_ranker(ranker, written / RANKER_FILE)
            version = hashlib.sha256((written / RANKER_FILE).read_bytes()).hexdigest()[:12]
            if version not in self.versions():
                written.rename(self.folder / version)
        return version

    def check_fits(self, version: str) -> None:
        """Raise BadInput when it is not here, or of another embedder than the current one."""
        self._check_embedder(self.load(version))

    def _check_embedder(self, ranker: Ranker) -> None:
        if not self.is_readable() or self.current not in self.versions():
            return
        ours = self.load()
        if ours.embedder != ranker.embedder:
            raise BadInput(
                f"The ranker was trained on vectors of {ranker.embedder!r}, those in {self.folder}"
                f" on {ours.embedder!r}: adopt it into another folder."
            )
