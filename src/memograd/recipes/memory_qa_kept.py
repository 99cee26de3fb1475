"""The items that a manager kept of conversations, on disk: a line a conversation.

    {"conversation": "conv-26", "turns": "<hash>", "keeper": "rules", "items": [{"text": ...}]}

Making them may take hours where a language model reads, so each conversation is written as soon as
it is done, and a run that goes on, or is measured, reads what is there. The hash of its turns says
whether a conversation is still the same.

Invariant: killed at any instant, the file holds whole conversations only, and those that it holds
are never made again (`tests/recipes/test_memory_qa_kept.py`). May import the rooms below the
recipes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from memograd.data import Conversation
from memograd.errors import BadInput
from memograd.recipes.memory_qa_keepers import Keeper
from memograd.tasks.memory_qa_items import KeptItem

_KEYS: Final = {"conversation", "turns", "keeper", "items"}


class KeptFile:
    """The items of conversations in the file `path`, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, dict[str, Any]] = {row["conversation"]: row for row in self._rows()}

    def missing(self, conversations: Sequence[Conversation]) -> list[Conversation]:
        """Those that nothing was kept of yet.

        Raises:
            BadInput: one has the id of another conversation, whose items are in the file.
        """
        for one in conversations:
            row = self._kept.get(one.id)
            if row is not None and row["turns"] != _fingerprint(one):
                raise BadInput(
                    f"{self._path} holds the items of another conversation {one.id}: remove the "
                    "file, or give the conversation an id of its own."
                )
        return [one for one in conversations if one.id not in self._kept]

    def fill(self, conversations: Sequence[Conversation], keeper: Keeper) -> None:
        """Let the keeper make the items of these, and write them down one after the other."""
        for conversation, items in zip(conversations, keeper.keep(conversations), strict=True):
            row = {
                "conversation": conversation.id,
                "turns": _fingerprint(conversation),
                "keeper": keeper.name,
                "items": [item.to_json() for item in items],
            }
            self._kept[conversation.id] = row
            with self._path.open("r+b" if self._path.exists() else "w+b") as file:
                file.truncate(file.read().rfind(b"\n") + 1)  # what a kill cut off
                file.seek(0, 2)
                file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())

    def items(self, conversation: Conversation) -> list[KeptItem]:
        """What was kept of a conversation."""
        return [KeptItem.from_json(item) for item in self._kept[conversation.id]["items"]]

    def keeper(self, conversation: Conversation) -> str:
        """Who made the items of a conversation."""
        return str(self._kept[conversation.id]["keeper"])

    def _rows(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        for line in self._path.read_bytes().split(b"\n")[:-1]:  # behind the last: cut off
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict) or not row.keys() >= _KEYS:
                raise BadInput(f"{self._path} is damaged; remove it to have the items made again.")
            yield row


def _fingerprint(conversation: Conversation) -> str:
    """SHA-256 of everything that was said."""
    said = json.dumps([turn.to_json() for turn in conversation.turns], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()
