"""Loading a file of conversations without saying which format it is in.

Invariant: the format is recognised by what stands in the file, never by its name; what is none of
them is BadInput that lists them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memograd.data.conversation import Conversation
from memograd.data.conversations_jsonl import load_conversations_jsonl, load_written_conversations
from memograd.data.locomo import load_locomo
from memograd.data.longmemeval import load_longmemeval
from memograd.data.memdaily import load_memdaily
from memograd.data.record_files import MAGIC, read_text
from memograd.errors import BadInput


def _load_lifelogs(path: Path) -> list[Conversation]:
    from memograd.data.lifelog import read_lifelogs

    return [log.conversation() for log in read_lifelogs(path)]


@dataclass(frozen=True)
class Format:
    """How a format is recognised. keys: what each record has; in_list: one JSON list, not lines."""

    name: str
    in_list: bool
    keys: frozenset[str]
    load: Callable[[Path], list[Conversation]]

    def described(self) -> str:
        """For the sentence that lists the formats."""
        layout = "a JSON list of objects" if self.in_list else "a line for each object"
        return f"{self.name} ({layout} with {' and '.join(sorted(self.keys))})"


FORMATS: Final = (
    Format("LoCoMo", True, frozenset({"sample_id", "conversation"}), load_locomo),
    Format("LongMemEval", True, frozenset({"question_id", "haystack_sessions"}), load_longmemeval),
    Format("MemDaily", True, frozenset({"tid", "message_list"}), load_memdaily),
    Format("life logs", False, frozenset({"statements", "probes"}), _load_lifelogs),
    Format(
        "written conversations",
        False,
        frozenset({"id", "sessions", "questions"}),
        load_written_conversations,
    ),
    Format("conversations", False, frozenset({"id", "turns"}), load_conversations_jsonl),
)


def load_any(path: Path | str) -> list[Conversation]:
    """The conversations of a file in any of `FORMATS`; raises BadInput when it is in none."""
    path = Path(path)
    in_list, keys = _first_record(path)
    for one in FORMATS:
        if one.in_list == in_list and one.keys <= keys:
            return one.load(path)
    raise BadInput(
        f"The file {path} is in no known format: its first record has the keys"
        f" {', '.join(sorted(keys)) or '(none)'}. Known are {_known()}."
    )


def _first_record(path: Path) -> tuple[bool, set[str]]:
    """Whether the file is one JSON list, and the keys of its first record; only that is parsed."""
    if path.is_file() and _begins_with(path, MAGIC):
        raise BadInput(
            f"The file {path} is Parquet, which holds no conversations but construction cases: use"
            " load_mem_alpha or load_memory_agent_bench."
        )
    text = read_text(path, "conversations").lstrip()
    if not text:
        raise BadInput(f"The file {path} is empty. Known formats are {_known()}.")
    in_list = text.startswith("[")
    try:
        record: Any = json.JSONDecoder().raw_decode(text[1:].lstrip() if in_list else text)[0]
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"The file {path} is not valid JSON ({error}): was it cut off? Known formats are"
            f" {_known()}."
        ) from None
    return in_list, set(record) if isinstance(record, dict) else set()


def _begins_with(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as opened:
            return opened.read(len(magic)) == magic
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read ({error.strerror or error}).") from None


def _known() -> str:
    return "; ".join(one.described() for one in FORMATS)
