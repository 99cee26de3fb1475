"""Life logs: what a policy of the memory is trained and tested on.

`types` says what a log is, makes one of a real conversation, and writes and reads its files.
`generate` makes them from a seed, `from_journal` makes one of a user's own journal. Behind the
generator: `forms` (how things are told, apart for training and test; read from `english.toml` and
`chinese.toml`), `world` (which attributes there are, and what is true), `plan` (what is told next,
with the gold operation), `scribe` (in which words), `questions`.
"""

from __future__ import annotations

from memograd.data.lifelog.generate import generate_in_languages, generate_lifelogs
from memograd.data.lifelog.settings import LifelogSettings
from memograd.data.lifelog.types import (
    GoldOp,
    Lifelog,
    Probe,
    ToldStatement,
    lifelog_of,
    read_lifelogs,
    write_lifelogs,
)

__all__ = [
    "GoldOp",
    "Lifelog",
    "LifelogSettings",
    "Probe",
    "ToldStatement",
    "generate_in_languages",
    "generate_lifelogs",
    "lifelog_of",
    "read_lifelogs",
    "write_lifelogs",
]
