"""A journal as a file: JSON Lines, one event a line, behind a first line that says what it is.

Invariants: importing into an empty memory what was exported gives the same answers, past ones too;
importing twice changes nothing; a file with a bad line imports nothing
(`tests/memory/test_transfer.py`). May import `events` and `store`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from memograd.errors import BadInput, MemogradError
from memograd.memory.events import Event
from memograd.memory.store import MemoryStore

FORMAT: Final = "memograd-journal"
VERSION: Final = 1


def export_journal(store: MemoryStore, path: Path, owners: Sequence[str] | None) -> int:
    """Write all events, or those of `owners`; returns how many. The file appears when complete."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    count = 0
    try:
        try:
            with unfinished.open("w", encoding="utf-8") as file:
                file.write(json.dumps({"format": FORMAT, "version": VERSION}) + "\n")
                for event in store.journal.export_events(owners):
                    file.write(json.dumps(event.to_json(), ensure_ascii=False) + "\n")
                    count += 1
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise MemogradError(f"The export {path} cannot be written: {error.strerror}.") from error
    return count


def import_journal(store: MemoryStore, path: Path) -> int:
    """Append the events of the file that the journal does not have yet; returns how many."""
    for _ in read_events(path):
        pass  # every line is checked before the first is taken over
    count = store.journal.import_events(read_events(path))
    store.states.forget()
    return count


def read_events(path: Path) -> Iterator[Event]:
    """The events in an exported file; raises BadInput naming the line that is not one."""
    try:
        file = path.open("rb")  # decoded line by line, so that a bad byte has a line number
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read: {error.strerror}.") from error
    with file:
        try:
            head = json.loads(file.readline() or b"null")
        except ValueError:
            head = None
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise BadInput(f"The file {path} was not made by memograd's export: give one that was.")
        if head.get("version") != VERSION:
            raise BadInput(
                f"The file {path} has version {head.get('version')!r}, but version {VERSION} is"
                " understood here: import it with the memograd that exported it, or a newer one."
            )
        for number, line in enumerate(file, start=2):
            try:
                yield Event.from_json(json.loads(line), seq=0)
            except (ValueError, KeyError, TypeError, BadInput) as error:
                raise BadInput(
                    f"Line {number} of {path} is not an event ({error}): the file was changed or"
                    " cut; export it again."
                ) from error
