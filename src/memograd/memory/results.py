"""What callers get back: plain dictionaries in the shape that mem0's users know.

Invariant: every result is JSON as it stands. Pure functions.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn

if TYPE_CHECKING:
    from memograd.memory.search import Hit


def item_result(item: MemoryItem) -> dict[str, Any]:
    """An item as `get` and `get_all` return it."""
    return {
        "id": item.id,
        "memory": item.text,
        "hash": item.content_hash,
        "metadata": dict(item.metadata) or None,
        "kind": item.kind.value,
        "categories": list(item.categories),
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
        "valid_from": item.valid_from.isoformat() if item.valid_from else None,
        "valid_to": item.valid_to.isoformat() if item.valid_to else None,
        **item.scope.ids(),
    }


def hit_result(hit: Hit[MemoryItem], *, explain: bool) -> dict[str, Any]:
    """An item as `search` returns it: with its score, its cosine similarity and, asked, the why."""
    result = item_result(hit.record) | {
        "score": round(hit.score, 6),
        "similarity": round(hit.why.similarity, 6),
    }
    return result | {"explain": _why(hit)} if explain else result


def turn_result(hit: Hit[RawTurn], *, explain: bool) -> dict[str, Any]:
    """A raw turn as `search(turns=...)` returns it."""
    result = turn_json(hit.record) | {
        "score": round(hit.score, 6),
        "similarity": round(hit.why.similarity, 6),
    }
    return result | {"explain": _why(hit)} if explain else result


def turn_json(turn: RawTurn) -> dict[str, Any]:
    """A raw turn: who said what, when."""
    values = turn.to_json()
    return {key: values.get(key) for key in ("id", "speaker", "text", "time", "caption")}


def operation_result(event: Event) -> dict[str, Any]:
    """What an operation did, as `add` returns it."""
    before, after = event.before or {}, event.after or {}
    if event.kind is EventKind.NONE:
        return {
            "id": after.get("item_id"),
            "memory": after["text"],
            "event": "NONE",
            "reason": event.reason,
        }
    result = {
        "id": event.subject,
        "memory": after.get("text", before.get("text")),
        "event": event.kind.value,
        "reason": event.reason,
        "actor": event.actor,
        "created_at": (after or before)["created_at"],
        "updated_at": event.recorded_at.isoformat(),
        **event.scope.ids(),
    }
    if event.kind is EventKind.UPDATE:
        result["previous_memory"] = before["text"]
    return result


def pending_result(event: Event) -> dict[str, Any]:
    """What `add` did not do because it must be confirmed."""
    after = event.after or {}
    return {
        "action": after["pending"],
        "asked": after["text"],
        "reason": event.reason,
        **event.scope.ids(),
    }


def history_result(event: Event) -> dict[str, Any]:
    """One line of an item's history."""
    before, after = event.before or {}, event.after or {}
    first = after or before
    return {
        "id": event.uid,
        "memory_id": event.subject,
        "old_memory": before.get("text"),
        "new_memory": after.get("text"),
        "event": event.kind.value,
        "created_at": first.get("created_at"),
        "updated_at": event.recorded_at.isoformat(),
        "valid_from": first.get("valid_from"),
        "valid_to": before.get("valid_to"),
        "actor": event.actor,
        "reason": event.reason,
        "is_deleted": event.kind in (EventKind.DELETE, EventKind.PURGE),
        "erased": event.erased,
    }


def _why(hit: Hit[Any]) -> dict[str, Any]:
    why = hit.why
    return asdict(why) | {
        "matched": list(why.matched),
        "reasons": [{"what": what, "adds": adds} for what, adds in why.reasons],
        "sentence": str(why),
    }
