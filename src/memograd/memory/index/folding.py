"""What a batch of events leaves behind in the index: rows to write, rows and owners to remove.

Invariant: applying a batch at once, or its events one by one, or either of them twice, leaves the
same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from memograd.memory.index.schema import digest, row_key
from memograd.memory.records.events import RECORDS, Event, EventKind
from memograd.memory.records.turns import RawTurn

Layer = Literal["item", "turn"]


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One searchable item or turn. seq: the event that gave it its present form."""

    key: str
    layer: Layer
    owner: str
    agent_id: str | None
    run_id: str | None
    item_id: str
    seq: int
    text: str

    def digests(self) -> dict[str, str]:
        """The fields that filters may name."""
        return {
            "owner_key": digest(self.owner),
            "agent_key": digest(self.agent_id),
            "run_key": digest(self.run_id),
        }


@dataclass(slots=True)
class Effects:
    """Do these in order: remove all rows of `owners`, remove the rows of `removed`, write `rows`.

    removed: key to the sequence number of the event that removed it. purged_at: sequence number of
    the last PURGE, 0 without one.
    """

    owners: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    rows: dict[str, IndexRow] = field(default_factory=dict)
    purged_at: int = 0


def fold(events: Iterable[Event]) -> Effects:
    """The effects of events that stand in the order of their sequence numbers."""
    effects = Effects()
    for event in events:
        owner = event.scope.owner
        if event.kind is EventKind.PURGE:
            effects.purged_at = event.seq
            if event.subject == owner:
                _forget_owner(effects, owner, event.seq)
            else:
                _remove(effects, row_key("item", owner, event.subject), event.seq)
                _remove(effects, row_key("turn", owner, event.subject), event.seq)
        elif event.erased or event.kind in RECORDS:
            continue
        elif event.kind is EventKind.DELETE:
            _remove(effects, row_key("item", owner, event.subject), event.seq)
        elif event.kind is EventKind.FORGET:
            _remove(effects, row_key("turn", owner, event.subject), event.seq)
        else:
            row = _row(event, event.after or {})
            if row is not None:
                effects.rows[row.key] = row
                effects.removed.pop(row.key, None)
    return effects


def _row(event: Event, after: Mapping[str, Any]) -> IndexRow | None:
    """The row that a TURN, ADD or UPDATE leaves; None for a turn that an item repeats verbatim."""
    layer: Layer = "item"
    if event.kind is EventKind.TURN:
        if after.get("verbatim") is True:
            return None
        layer, text = "turn", RawTurn.from_json(after["turn"]).index_text()
    else:
        text = after["text"]
    scope = event.scope
    key = row_key(layer, scope.owner, event.subject)
    return IndexRow(
        key, layer, scope.owner, scope.agent_id, scope.run_id, event.subject, event.seq, text
    )


def _remove(effects: Effects, key: str, seq: int) -> None:
    effects.rows.pop(key, None)
    effects.removed[key] = seq


def _forget_owner(effects: Effects, owner: str, seq: int) -> None:
    for key in [key for key, row in effects.rows.items() if row.owner == owner]:
        del effects.rows[key]
    effects.owners[digest(owner)] = seq
