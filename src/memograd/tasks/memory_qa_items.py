"""What a manager kept of one conversation, found as turns are: by meaning, within a budget.

Items take the place of raw turns in the prompts of memory-qa. They are ranked by cosine alone, as
turns are there, so that turns and items differ in what was kept and not in how it is found.

Invariants: a search never shows more than `top_k` items nor more tokens than the budget, in the
order in which they were learnt; a rendered item is one line
(`tests/tasks/test_memory_qa_items.py`). May import `memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memograd.memory import format_date

if TYPE_CHECKING:
    from memograd.memory.embedders import Embedder


@dataclass(frozen=True)
class KeptItem:
    """A remembered statement. time: since when it holds or when it was told, None where unknown."""

    text: str
    time: datetime | None = None

    def render(self) -> str:
        """The one line that a prompt shows: `[7 May 2023] Caroline lives in Boston.`"""
        dated = f"[{format_date(self.time)}] " if self.time else ""
        return " ".join(f"{dated}{self.text}".splitlines())

    def to_json(self) -> dict[str, Any]:
        """JSON values only; a time that is not known is left out."""
        return {"text": self.text, **({"time": self.time.isoformat()} if self.time else {})}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> KeptItem:
        """The item that `to_json` wrote."""
        time = values.get("time")
        return cls(values["text"], datetime.fromisoformat(time) if time else None)


class ItemMemory:
    """The items of one conversation, in the order in which they were learnt."""

    def __init__(self, items: Sequence[KeptItem], embedder: Embedder) -> None:
        self.items = list(items)
        self._embedder = embedder
        self._vectors_ND = embedder.embed([_indexed(item) for item in items]) if items else None

    def search_many(
        self,
        queries: Sequence[str],
        *,
        top_k: int,
        token_budget: int,
        count_tokens: Callable[[str], int],
    ) -> list[list[KeptItem]]:
        """For every query the `top_k` items nearest to it, as far as they fit in `token_budget`.

        One that exceeds what is left of the budget is skipped, as `memory.fill_budget` does it.
        """
        if self._vectors_ND is None or not queries:
            return [[] for _ in queries]
        found = []
        for query_D in self._embedder.embed_queries(queries):
            ranked = (-(self._vectors_ND @ query_D)).argsort(kind="stable")[:top_k]
            left, places = token_budget, []
            for place in ranked.tolist():
                cost = count_tokens(self.items[place].render() + "\n")
                if cost <= left:
                    left -= cost
                    places.append(place)
            found.append([self.items[place] for place in sorted(places)])
        return found


def _indexed(item: KeptItem) -> str:
    """What is embedded: the date behind the text, as `RawTurn.index_text` has it."""
    return f"{item.text} [{format_date(item.time)}]" if item.time else item.text
