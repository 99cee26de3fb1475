"""The memory that a model builds: items of three kinds, changed by calls that never raise.

`core` is who the user is: always in view, and bounded. `episodic` is what happened, `semantic` what
is so; both are found by search. Every call is answered by an `Outcome`, and a call that cannot be
carried out changes nothing. Who wrote an item last is remembered, for credit.

Invariants: a fork never sees what happens to its parent, and the other way round; a failed call
leaves the book as it was; `tokens` is the size of the living items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from memograd.memory.analysis import analyse
from memograd.memory.language import estimate_tokens
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.operations import OpKind
from memograd.memory.records.scope import Scope
from memograd.memory.search import Hit, Query, retrieve
from memograd.memory.state import MemoryState
from memograd.rewards.mem_alpha import ToolOutcome
from memograd.tasks.memory_construct.answer_format import Call

if TYPE_CHECKING:
    from memograd.memory.embedders import Embedder

CORE_TOKENS: Final = 128
ITEM_TOKENS: Final = 160
_SCOPE: Final = Scope(user_id="book")
_WHEN: Final = datetime(1970, 1, 1, tzinfo=UTC)  # books know no time but the chunk


class Texts:
    """Texts with their vector and terms, each computed once.

    Each is embedded by itself: what else is in a batch changes the last digits of a vector, and a
    run that is resumed would not repeat them.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.dimension = embedder.dimension
        self._embedder = embedder
        self._known: dict[tuple[str, bool], Query] = {}

    def passage(self, text: str) -> Query:
        """A text that is stored."""
        return self._query(text, asked=False)

    def question(self, text: str) -> Query:
        """A text that is searched for."""
        return self._query(text, asked=True)

    def _query(self, text: str, *, asked: bool) -> Query:
        key = (text, asked)
        if key not in self._known:
            embed = self._embedder.embed_queries if asked else self._embedder.embed
            self._known[key] = Query(text, embed([text])[0], analyse(text))
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call: as rewards count it, the item that it concerned, and why it failed."""

    call: ToolOutcome
    item_id: str | None = None
    failure: str | None = None


class MemoryBook:
    """What was written down so far. written_in: item id to the chunk that wrote its text."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.written_in: dict[str, int] = {}
        self._state = MemoryState(texts.dimension)
        self._next = 1

    def fork(self) -> MemoryBook:
        """The same book, free to go another way."""
        fork = MemoryBook(self.texts)
        fork.written_in = dict(self.written_in)
        fork._state = self._state.fork()
        fork._next = self._next
        return fork

    def __len__(self) -> int:
        return len(self._state.items)

    @property
    def items(self) -> list[MemoryItem]:
        """All living items, the most recently written last."""
        return list(self._state.items)

    @property
    def core(self) -> list[MemoryItem]:
        """The items that are always in view."""
        return [item for item in self._state.items if item.kind is Kind.CORE]

    @property
    def tokens(self) -> int:
        """Estimated size of all items."""
        return sum(estimate_tokens(item.text) for item in self._state.items)

    def search(self, query: Query, *, top_k: int) -> list[Hit[MemoryItem]]:
        """The items beside the core ones that answer a query best, best first."""
        return retrieve(
            self._state.items, query, top_k=top_k, eligible=lambda item: item.kind is not Kind.CORE
        )

    def carry_out(self, call: Call, shown: Sequence[str], *, chunk: int, source: str) -> Outcome:
        """Do what a call says; its numbers count, from 1, the items of these ids that it was shown.

        source: the text that was read, against which what is written is held (`is_grounded`).
        """
        failure = call.failure or self._obstacle(call, shown)
        if failure is not None:
            writes = call.kind in (OpKind.ADD, OpKind.UPDATE)
            return Outcome(
                ToolOutcome(call.kind, ok=False, valid=False if writes else None), None, failure
            )
        target = None if call.number is None else shown[call.number - 1]
        if call.kind is OpKind.DELETE:
            assert target is not None
            self._state.remove_item(target)
            del self.written_in[target]
            return Outcome(ToolOutcome(OpKind.DELETE, ok=True), target)
        same = next((item for item in self._state.items if item.text == call.text), None)
        before = "" if target is None else self._item(target).text
        valid = is_grounded(call.text, f"{source}\n{before}")
        if call.kind is OpKind.ADD and same is not None:
            return Outcome(ToolOutcome(OpKind.ADD, ok=True, duplicate=True, valid=valid), same.id)
        item_id = self._write(call, target, chunk)
        assert call.kind is not None  # a call of no kind has a failure
        return Outcome(ToolOutcome(call.kind, ok=True, valid=valid), item_id)

    def _obstacle(self, call: Call, shown: Sequence[str]) -> str | None:
        """Why a well-formed call cannot be carried out on this book."""
        kind = call.memory_kind
        if call.number is not None:
            if not 1 <= call.number <= len(shown):
                return f"there is no item {call.number}"
            if shown[call.number - 1] not in self.written_in:
                return f"item {call.number} was deleted before"
            kind = self._item(shown[call.number - 1]).kind
        if call.kind is OpKind.DELETE:
            return None
        size = estimate_tokens(call.text)
        if size > ITEM_TOKENS:
            return f"the text is longer than {ITEM_TOKENS} tokens"
        if kind is Kind.CORE:
            others = [one for one in self.core if not self._is_target(one, call, shown)]
            if size + sum(estimate_tokens(one.text) for one in others) > CORE_TOKENS:
                return f"core holds {CORE_TOKENS} tokens at most"
        return None

    def _is_target(self, item: MemoryItem, call: Call, shown: Sequence[str]) -> bool:
        return call.number is not None and shown[call.number - 1] == item.id

    def _write(self, call: Call, target: str | None, chunk: int) -> str:
        query = self.texts.passage(call.text)
        kind = call.memory_kind if target is None else self._item(target).kind
        item_id = target or f"m{self._next}"
        item = MemoryItem(item_id, call.text, _SCOPE, _WHEN, _WHEN, kind)
        if target is None:
            self._next += 1
            self._state.add_item(item, query.vector, query.terms)
        else:
            self._state.replace_item(item, query.vector, query.terms)
        self.written_in[item_id] = chunk
        return item_id

    def _item(self, item_id: str) -> MemoryItem:
        item = self._state.items.get(item_id)
        assert item is not None
        return item


def is_grounded(text: str, source: str) -> bool:
    """Whether at least half of the text's terms stand in the source: r4 without a judge.

    Half, because a good memory says in full what was said in passing: a name for "I", a date for
    "last Friday".
    """
    terms = set(analyse(text))
    return bool(terms) and 2 * len(terms & set(analyse(source))) >= len(terms)
