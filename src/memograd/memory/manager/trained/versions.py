"""A folder of trained heads, of which one is current; going back is one step.

    policies/<version>/head.npz, head.json     every version that was adopted or refused
    policies/current                           {"version": ..., "before": [older ones, last first]}
    policies/log.jsonl                         what happened, one line each: numbers, never texts

`current` is replaced in one step, so whoever reads it sees the old version or the new one, whole.
Invariants: rolling back as often as was adopted leads to the first version; a version is what was
saved, to the bit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from memograd.errors import BadInput
from memograd.memory.manager.trained.files import ABOUT_FILE, TrainedHead, load_head, save_head

CURRENT_FILE: Final = "current"
LOG_FILE: Final = "log.jsonl"
LOCK_FILE: Final = ".lock"


class PolicyVersions:
    """The heads in one folder; the folder is made with the first of them."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).expanduser()

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Whether a folder holds versions, rather than one head."""
        return (folder / CURRENT_FILE).is_file()

    @property
    def current(self) -> str:
        """The current version; raises BadInput when none was adopted yet."""
        return self._read()[0]

    @property
    def before(self) -> list[str]:
        """The versions that were current before, the latest first."""
        return self._read()[1]

    def folder_of(self, version: str) -> Path:
        """Where a version lies; raises BadInput when it is not here."""
        if version not in self.versions():
            known = ", ".join(self.versions()) or "none"
            raise BadInput(f"There is no version {version!r} in {self.folder} (there: {known}).")
        return self.folder / version

    def versions(self) -> list[str]:
        """All versions that are here, oldest first."""
        found = [file.parent for file in self.folder.glob(f"*/{ABOUT_FILE}")]
        found.sort(key=lambda folder: ((folder / ABOUT_FILE).stat().st_mtime_ns, folder.name))
        return [folder.name for folder in found]

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

    def adopt(self, version: str) -> None:
        """Make a version current; where the file that names the current one is damaged, anew.

        Raises BadInput when it is not here, or reads vectors of another embedder than the current.
        """
        self._check_embedder(self.load(version))
        before: list[str] = []
        if self._is_readable():
            current, older = self._read()
            if current == version:
                return
            before = [current, *older]
        self._write(version, before)
        self.log("adopted", version=version, before=before[0] if before else None)

    def rollback(self) -> str:
        """Make the version current that was so before; returns it. BadInput when there is none."""
        current, before = self._read()
        if not before:
            raise BadInput(
                f"{current} is the first version in {self.folder}: nothing is before it."
            )
        self.folder_of(before[0])
        self._write(before[0], before[1:])
        self.log("rolled back", version=before[0], before=current)
        return before[0]

    def log(self, event: str, **details: Any) -> None:
        """Write down what happened."""
        line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "event": event, **details}
        with (self.folder / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let nobody else change versions meanwhile; raises BadInput when somebody does."""
        from filelock import FileLock, Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / LOCK_FILE, thread_local=False)
        try:
            lock.acquire(timeout=0.5)
        except Timeout:
            raise BadInput(
                f"Somebody else is learning or adopting in {self.folder}: wait until that is done."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _check_embedder(self, head: TrainedHead) -> None:
        if not self._is_readable() or self.current not in self.versions():
            return
        ours = self.load()
        if (ours.embedder, ours.shape.dimension) != (head.embedder, head.shape.dimension):
            raise BadInput(
                f"The policy {head.version} was trained with the embedder {head.embedder!r}, those"
                f" in {self.folder} with {ours.embedder!r}: adopt it into another folder."
            )

    def _is_readable(self) -> bool:
        """Whether there is a current version by a file that can be read."""
        try:
            self._read()
        except BadInput:
            return False
        return True

    def _read(self) -> tuple[str, list[str]]:
        file = self.folder / CURRENT_FILE
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            version, before = values["version"], values["before"]
        except FileNotFoundError:
            if any((self.folder / place / ABOUT_FILE).is_file() for place in ("", "final")):
                raise BadInput(
                    f"{self.folder} holds one trained head, not a folder of versions: adopt it into"
                    f" one with memograd policy adopt {self.folder} --dir policies."
                ) from None
            raise BadInput(
                f"There is no policy in {self.folder} yet: adopt one with memograd policy adopt"
                f" runs/my-run/final --dir {self.folder}."
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"{file} cannot be read ({error}): adopt a version of that folder again."
            ) from None
        return str(version), [str(one) for one in before]

    def _write(self, version: str, before: list[str]) -> None:
        beside = self.folder / f"{CURRENT_FILE}.new"
        with beside.open("w", encoding="utf-8") as file:
            json.dump({"version": version, "before": before}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.folder / CURRENT_FILE)
