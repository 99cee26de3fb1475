"""What callers get back: plain dictionaries in the shape that mem0's users know.

Invariant: every result is JSON as it stands. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memograd.memory.language import is_chinese
from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.items import MemoryItem, expiry_result
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.search.hits import why_sentence

if TYPE_CHECKING:
    from memograd.memory.search import Hit
    from memograd.memory.search.context import Context


def item_result(item: MemoryItem) -> dict[str, Any]:
    """An item as `get` and `get_all` return it."""
    learnt, changed = item.created_at, item.updated_at
    created_at = learnt.isoformat()
    unchanged = changed is learnt or (changed.tzinfo is learnt.tzinfo and changed == learnt)
    return {
        "id": item.id,
        "memory": item.text,
        "hash": item.content_hash,
        "metadata": dict(item.metadata) or None,
        "kind": item.kind.value,
        "categories": list(item.categories),
        "created_at": created_at,
        "updated_at": created_at if unchanged else changed.isoformat(),
        "valid_from": item.valid_from.isoformat() if item.valid_from else None,
        "valid_to": item.valid_to.isoformat() if item.valid_to else None,
        "expiration_date": expiry_result(item.expires_at),
        "actor_id": item.actor_id,
        "role": item.role,
        **item.scope.ids(),
    }


def hit_result(hit: Hit[MemoryItem], *, explain: bool, query: str = "") -> dict[str, Any]:
    """An item as `search` returns it: with its score, its cosine similarity and, asked, the why.

    query: what was asked; the why is told in its language.
    """
    result = item_result(hit.record)
    result["score"] = round(hit.score, 6)
    result["similarity"] = round(hit.why.similarity, 6)
    if explain:
        result["explain"] = _why(hit, query)
    return result


def turn_result(hit: Hit[RawTurn], *, explain: bool, query: str = "") -> dict[str, Any]:
    """A raw turn as `search(turns=...)` returns it; query as of `hit_result`."""
    result = turn_json(hit.record) | {
        "score": round(hit.score, 6),
        "similarity": round(hit.why.similarity, 6),
    }
    return result | {"explain": _why(hit, query)} if explain else result


def context_result(found: Context) -> dict[str, Any]:
    """What `context` gives as JSON: the text, what it shows, and how much was left out."""
    return {
        "text": found.text,
        "core": [item_result(item) for item in found.core],
        "items": [hit_result(hit, explain=False) for hit in found.items],
        "turns": [turn_result(hit, explain=False) for hit in found.turns],
        "left_out": {
            "core": len(found.left_out_core),
            "items": len(found.left_out_items),
            "turns": len(found.left_out_turns),
        },
    }


def turn_json(turn: RawTurn) -> dict[str, Any]:
    """A raw turn: who said what, when."""
    values = turn.to_json()
    return {key: values.get(key) for key in ("id", "speaker", "text", "time", "caption")} | (
        {"images": list(turn.images)} if turn.images else {}
    )


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
        "actor_id": (after or before).get("actor_id"),
        "role": (after or before).get("role"),
        **event.scope.ids(),
    }
    if event.kind is EventKind.UPDATE:
        result["previous_memory"] = before["text"]
    return result


def added_result(events: Sequence[Event]) -> dict[str, Any]:
    """What one call of `add` did, as it returns it."""
    changes = [event for event in events if event.kind is not EventKind.NONE]
    result: dict[str, Any] = {"results": [operation_result(event) for event in changes]}
    pending = [event for event in events if (event.after or {}).get("pending")]
    if pending:
        result["pending"] = [pending_result(event) for event in pending]
    return result


def entity_results(
    living: Iterable[tuple[Scope, int, datetime, datetime]],
) -> list[dict[str, Any]]:
    """Users, agents and runs as `users` returns them; living: as of `Journal.living`."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for scope, count, first, last in living:
        for name, value in scope.ids().items():
            sort = name.removesuffix("_id")
            new = {"type": sort, "id": value, "name": value, "total_memories": 0}
            new |= {"created_at": first, "updated_at": last}
            told = found.setdefault((sort, value), new)
            told["total_memories"] += count
            told["created_at"] = min(told["created_at"], first)
            told["updated_at"] = max(told["updated_at"], last)
    kept = [one for one in found.values() if one["total_memories"]]
    kept.sort(key=lambda one: (one["type"] != "user", one["type"], one["id"]))
    return [
        one | {name: one[name].isoformat() for name in ("created_at", "updated_at")} for one in kept
    ]


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


def _why(hit: Hit[Any], query: str) -> dict[str, Any]:
    why = hit.why
    return asdict(why) | {
        "matched": list(why.matched),
        "reasons": [{"what": what, "adds": adds} for what, adds in why.reasons],
        "sentence": why_sentence(why, chinese=is_chinese(query)),
    }
