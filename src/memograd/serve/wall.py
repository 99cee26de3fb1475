"""The wall between owners: what the ids and filters of a request mean for the key that sent it.

A key without an owner reaches what the request names. A key with one reaches that owner and nothing
else: ids that a request leaves out are the key's, and ids of somebody else are refused. Invariant:
**a request never widens a key**; what `filters` gives lets through items of the key's owner only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memograd.errors import BadInput
from memograd.memory.filters import parse_filter, scope_filter
from memograd.memory.records.scope import SCOPE_FIELDS, Scope
from memograd.serve.identity import Identity
from memograd.serve.keys import owner_field
from memograd.serve.limits import check_filters
from memograd.serve.mem0_filters import in_our_words
from memograd.serve.refusals import Forbidden

Ids = Mapping[str, str | None]
Filters = Mapping[str, Any]


class Wall:
    """The wall around one key."""

    def __init__(self, identity: Identity) -> None:
        self.owner = identity.owner

    def lets_see(self, owner: str) -> bool:
        """Whether the key opens this owner's memory."""
        return self.owner in (None, owner)

    def scope(self, ids: Ids) -> Scope:
        """Where something is written. Raises `Forbidden` for the ids of another owner, BadInput
        where nobody is named."""
        named = _named(ids)
        if self.owner is None:
            return Scope(**named)
        field, value = owner_field(self.owner)
        scope = Scope(**{field: value, **named})
        if scope.owner != self.owner:
            raise _foreign()
        return scope

    def filters(self, ids: Ids, filters: Filters | None) -> Filters:
        """What a query may see: what the request names, within the wall. An empty filter is none.

        Raises `Forbidden` where the request names another owner, `NotOffered` for an `app_id`,
        BadInput for a filter that cannot be, and where nobody is named.
        """
        named = _named(ids)
        check_filters(filters)
        filters = in_our_words(filters or {})
        if self.owner is None:
            scope_filter(**named, filters=filters)  # tells a mistake in the request's own words
            return _all_of(named, filters, [])
        field, value = owner_field(self.owner)
        asked = parse_filter(filters or None).pinned(field)
        if named.get(field, value) != value or (asked is not None and value not in asked):
            raise _foreign()
        named[field] = value
        scope_filter(**named, filters=filters)
        # What users said to an agent is the users' memory; the agent's own has no user.
        earlier = SCOPE_FIELDS[: SCOPE_FIELDS.index(field)]
        if any(name in named for name in earlier):
            raise _foreign()
        return _all_of(named, filters, [{"NOT": [{name: "*"}]} for name in earlier])

    def owner_meant(self, ids: Ids, filters: Filters | None = None) -> str | None:
        """Whose memory a query is about, for the access log; None where it is not one owner's."""
        if self.owner is not None:
            return self.owner
        named = _named(ids)
        filters = in_our_words(filters or {})
        for name in SCOPE_FIELDS:
            pinned = parse_filter(filters).pinned(name) if filters else None
            if name not in named and pinned is not None and len(pinned) == 1:
                named[name] = next(iter(pinned))
        return Scope(**named).owner if named else None


def _named(ids: Ids) -> dict[str, str]:
    unknown = ids.keys() - set(SCOPE_FIELDS)
    if unknown:
        raise BadInput(f"There is no id {', '.join(sorted(unknown))}: use {SCOPE_FIELDS}.")
    return {name: value for name, value in ids.items() if value is not None}


def _all_of(named: Mapping[str, str], filters: Filters | None, more: list[Filters]) -> Filters:
    members: list[Filters] = [{name: {"eq": value}} for name, value in named.items()]
    members += [dict(filters)] if filters else []
    return {"AND": [*members, *more]}


def _foreign() -> Forbidden:
    return Forbidden("This key opens the memory of another owner than the one that is named.")
