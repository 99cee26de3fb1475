"""Names come in last: until then, marks stand for whoever speaks and whoever is addressed.

A name may be a word that is itself replaced ("Me", "My"), or hold characters that a replacement
pattern would read. Invariant: any name stands in the text as it is, wherever its mark stood
(`tests/memory/test_reader_person.py`). Pure functions.
"""

from __future__ import annotations

from typing import Final

# Private characters of Unicode, which no text uses with a meaning of its own.
SPEAKER: Final = "\ue000"
OTHER: Final = "\ue001"


def without_marks(text: str) -> str:
    """The text as it can be worked on: without characters that would be taken for marks."""
    return text.replace(SPEAKER, "").replace(OTHER, "")


def put_names(text: str, speaker: str, other: str | None) -> str:
    """The text with names for marks; a name in s gets a bare apostrophe: `James' dog`."""
    parts = {SPEAKER: without_marks(speaker), OTHER: without_marks(other or "")}
    for mark, name in parts.items():
        if name.endswith("s"):
            text = text.replace(f"{mark}'s", f"{mark}'")
        text = text.replace(mark, name)
    return text
