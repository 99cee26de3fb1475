"""Which methods a path takes, for a refusal of one that it does not take (405).

Starlette answers with the methods of the first route of a path, and a path may have several routes.
Invariant: what `Allow` names is taken there, and what it does not name is not.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any

from starlette.routing import Match, Route


def allowed(routes: Iterable[Any], scope: MutableMapping[str, Any]) -> str:
    """The methods of all routes of the path, as the header `Allow` has them."""
    found: set[str] = set()
    for route in routes:
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return ", ".join(sorted(found))
