"""Which memories a query may see: mem0's filter language, parsed once and then only evaluated.

`parse_filter({"user_id": "alice", "rating": {"gte": 4}})` gives a `Filter`; its `matches` decides
for one item. `scope_filter` also takes the ids as mem0's first version did. `filter` reads what
callers write, `conditions` is the form it becomes: what can be asked about, and how an item is held
against it. A value stays a value from beginning to end: no expression text is ever built.

Invariants: a filter agrees with a naive recursive evaluation, and `pinned` never leaves out the id
of an item that matches.
"""

from memograd.memory.filters.filter import Filter, parse_filter, scope_filter

__all__ = ["Filter", "parse_filter", "scope_filter"]
