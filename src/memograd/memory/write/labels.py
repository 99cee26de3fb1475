"""What the application says about everything that one call adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memograd.memory.records.items import Kind


@dataclass(frozen=True, slots=True)
class Labels:
    """metadata, kind, categories: of the items. expires_at: from when on they are hidden."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind | None = None
    categories: tuple[str, ...] = ()
    expires_at: datetime | None = None

    def linked(self, item_id: str | None) -> Labels:
        """The same, naming an item that the new one may have changed."""
        if item_id is None:
            return self
        return replace(self, metadata={**self.metadata, "may_change": item_id})
