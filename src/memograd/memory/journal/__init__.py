"""The journal: what happened to every memory, in order, in one SQL database; the only truth.

- `schema.py`: the three tables. `rows.py`: events to rows and back. `engine.py`: opening, locks and
  pragmas, failures in sentences. `journal.py`: the class that everyone uses. `fit.py`: which events
  fit the ones before. `past.py`: what was so at some moment. `purge.py`: erasing. `transfer.py`:
  copies from one journal to another.

Invariants: what `append` returned survives a killed process, all of it or none of it; folding by
`seq` never misses an event; a purged text is in no file of an SQLite journal. Importing this
package brings sqlalchemy, so it is imported by those who open a journal and not by
`memograd.memory` itself.
"""

from __future__ import annotations

from memograd.memory.journal.engine import DatabaseFailed, sqlite_url
from memograd.memory.journal.fit import AlreadyKnown, Conflict
from memograd.memory.journal.journal import Journal
from memograd.memory.journal.rows import DerivedText

__all__ = ["AlreadyKnown", "Conflict", "DatabaseFailed", "DerivedText", "Journal", "sqlite_url"]
