"""Which turns told of which items, while the messages of one call are decided on.

Invariant: a turn is hidden only where what it told was taken back or changed, and nothing else that
still holds came from it; a request to forget hides it whatever else it told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from memograd.memory.records.events import EventKind, NewEvent, said_again
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import reason
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.write.changes import Made, forgotten

RECENT_ITEMS: Final = 32


class ToldItems:
    """Which turns told of which items, while the messages of one call are decided on."""

    def __init__(
        self, work: MemoryState, turns: Sequence[RawTurn], before: Sequence[RawTurn]
    ) -> None:
        self._turns = [*before, *turns]
        self._new = {turn.id for turn in turns}
        self._items: dict[str, set[str]] = {}  # by the turn
        self._hidden: dict[str, bool] = {}  # turns, and whether whatever else came from them
        ids = {turn.id for turn in self._turns}
        self._work = work
        for item in work.items.last(RECENT_ITEMS):
            self._link(item, ids)
        for item_id, told in work.said_again_in(ids).items():
            self._say_again(item_id, told)

    def _link(self, item: MemoryItem, among: Collection[str]) -> None:
        for source in item.sources:
            if source in among:
                self._items.setdefault(source, set()).add(item.id)

    def _say_again(self, item_id: str, turns: Sequence[str]) -> None:
        for turn in turns:
            self._items.setdefault(turn, set()).add(item_id)

    def just_before(self, turn: RawTurn) -> frozenset[str]:
        """The items that the last message of the same speaker before this turn told of."""
        ids = [one.id for one in self._turns]
        past = self._turns[: ids.index(turn.id)]
        for one in reversed(past):
            if one.speaker == turn.speaker:
                found = self._items.get(one.id)
                if found:
                    return frozenset(found)
        return frozenset()

    def note(self, made: Made, *, hide: bool, request: bool) -> None:
        """A decision was carried out."""
        if made.after is not None:
            self._link(made.after, {turn.id for turn in self._turns})
        for event in made.events:
            if (again := said_again(event)) is not None:
                self._say_again(*again)
        if hide and made.before is not None:
            now = {turn.id for turn in self._turns if turn.id in self._new}
            for source in self._work.turns_behind(made.before):
                if request or source not in now or made.event.kind is EventKind.DELETE:
                    self.hide(source, whatever=request)

    def hide(self, turn_id: str, *, whatever: bool = True) -> None:
        """Search the turn no more; `whatever` else it told."""
        self._hidden[turn_id] = self._hidden.get(turn_id, False) or whatever

    def hides(self, turn_id: str) -> bool:
        """Whether the turn is to be searched no more, whatever else came from it."""
        return self._hidden.get(turn_id, False)

    def forgets(self, scope: Scope, actor: str) -> list[NewEvent]:
        """The events that hide the turns."""
        work = self._work
        texts = {turn.id: turn.text for turn in self._turns}
        left = {source for turn in self._hidden for source in [turn] if not self._hidden[turn]}
        kept = (
            {
                source
                for item in work.items
                for source in item.sources
                if source in left and item.sources[-1] == source
            }
            if left
            else set()
        )
        kept.update(turn for told in work.said_again_in(left).values() for turn in told)
        return [
            forgotten(turn, scope, actor=actor, reason=reason("hidden", texts.get(turn, "")))
            for turn in self._hidden
            if turn not in kept and (turn in self._new or turn in work.turns)
        ]
