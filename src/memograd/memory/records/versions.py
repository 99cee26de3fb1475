"""A folder of versions of something that was trained, of which one is current.

    FOLDER/<version>/...      every version that was kept
    FOLDER/current            {"version": ..., "before": [older ones, last first]}
    FOLDER/log.jsonl          what happened, one line each: numbers and names, never texts

`current` is replaced in one step, so whoever reads it sees the old version or the new one, whole.
What a version is, and how it is checked, say `PolicyVersions` and `RankerVersions`. Invariant:
rolling back as often as was adopted leads to the first version.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from memograd.errors import BadInput

CURRENT_FILE: Final = "current"
LOG_FILE: Final = "log.jsonl"
LOCK_FILE: Final = ".lock"


class VersionsFolder(ABC):
    """The versions in one folder; the folder is made with the first of them."""

    kind: ClassVar[str]
    """What the versions are of, in one word for messages."""
    about_file: ClassVar[str]
    """The file that every version has."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).expanduser()

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Whether a folder holds versions, rather than one of them."""
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
        found = [file.parent for file in self.folder.glob(f"*/{self.about_file}")]
        found.sort(key=lambda folder: ((folder / self.about_file).stat().st_mtime_ns, folder.name))
        return [folder.name for folder in found]

    def adopt(self, version: str) -> None:
        """Make a version current; where the file that names the current one is damaged, anew.

        Raises BadInput when it is not here, or does not fit the current one.
        """
        self.check_fits(version)
        before: list[str] = []
        if self.is_readable():
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

    @abstractmethod
    def check_fits(self, version: str) -> None:
        """Raise BadInput unless the version is here, whole, and may follow the current one."""

    def log(self, event: str, **details: Any) -> None:
        """Write down what happened."""
        line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "event": event, **details}
        with (self.folder / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """What happened, the oldest first; raises BadInput for a line that cannot be read."""
        file = self.folder / LOG_FILE
        if not file.is_file():
            return []
        events = []
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                event = json.loads(line)
                if not isinstance(event["event"], str) or not isinstance(event["at"], str):
                    raise TypeError("event and at must be texts")
            except (ValueError, KeyError, TypeError) as error:
                raise BadInput(
                    f"Line {number} of {file} cannot be read ({error}): take it out."
                ) from None
            events.append(event)
        return events

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let nobody else change versions meanwhile; raises BadInput when somebody does, or the
        folder cannot be made."""
        from filelock import FileLock, Timeout

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"The folder {self.folder} cannot be made ({error.strerror}): choose another."
            ) from error
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

    def is_readable(self) -> bool:
        """Whether there is a current version by a file that can be read."""
        try:
            self._read()
        except BadInput:
            return False
        return True

    def nothing_here(self) -> BadInput:
        """What to say of a folder without a current version."""
        return BadInput(
            f"There is no {self.kind} in {self.folder} yet: adopt one with memograd {self.kind}"
            f" adopt runs/my-run/final --dir {self.folder}."
        )

    def _read(self) -> tuple[str, list[str]]:
        file = self.folder / CURRENT_FILE
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            version, before = values["version"], values["before"]
        except FileNotFoundError:
            raise self.nothing_here() from None
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
