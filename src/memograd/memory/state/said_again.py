"""Which turns said again what an item says already, besides those that the item lists as sources.

A NONE that names an item says so (`records/events.py`). The links are kept beside the items and not
in them: what is said fifty times would make every version of the item longer, and rank it anew.

Invariants: nothing here changes, a change gives a new one; links that were made in pieces are those
that were made at once, and `until` gives those of an earlier place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Link:
    """seq: the place of the NONE. turns: that said it. text: of the item as it was then."""

    seq: int
    item_id: str
    turns: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SaidAgain:
    """All links, by their item and in the order in which they were made."""

    _links: Mapping[str, tuple[Link, ...]] = field(default_factory=dict)

    @classmethod
    def union(cls, several: Sequence[SaidAgain]) -> SaidAgain:
        """The links of several owners, whose items have ids of their own."""
        return cls({id: links for one in several for id, links in one._links.items()})

    def of(self, item_id: str) -> list[str]:
        """The turns that said again what the item says, or said when they did."""
        return [turn for link in self._links.get(item_id, ()) for turn in link.turns]

    def among(self, turns: Collection[str]) -> Iterator[tuple[str, Link]]:
        """The links of these turns, each with its turn."""
        for links in self._links.values():
            for link in links:
                for turn in link.turns:
                    if turn in turns:
                        yield turn, link

    def with_links(self, new: Iterable[Link]) -> SaidAgain:
        """These and new ones."""
        links = dict(self._links)
        for link in new:
            links[link.item_id] = (*links.get(link.item_id, ()), link)
        return SaidAgain(links)

    def without(self, purged: Mapping[str, int]) -> SaidAgain:
        """Those that name no item and no turn that was purged at a later place."""

        def stays(link: Link) -> bool:
            return all(purged.get(one, 0) <= link.seq for one in (link.item_id, *link.turns))

        return self._those(stays) if purged else self

    def until(self, seq: int) -> SaidAgain:
        """Those that were made up to a place of the journal."""
        return self._those(lambda link: link.seq <= seq)

    def _those(self, wanted: Callable[[Link], bool]) -> SaidAgain:
        kept = {id: tuple(filter(wanted, links)) for id, links in self._links.items()}
        return SaidAgain({id: links for id, links in kept.items() if links})
