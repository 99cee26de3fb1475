"""What the messages of one call told of: which items came of which turn, and what one says again.

`ToldItems` holds the links while the messages are decided on, so that a request to forget hides the
turns too. `told_again` finds what is left over: a reader finds no news in what was just said, so it
gives no fact that a manager could find to be known. The words tell it then: a sentence of the user
that has all the words of an item says it, or asks about it, and goes where the item goes.
A number that is kept from being remembered is hidden where an assistant says it again. `repeats`
knows by the same words what an assistant said after the user; it is asked only when an
item is forgotten, since an assistant's long answer must not go because one fact in it has changed.

Invariants: a turn is hidden only where what it told was taken back or changed, and nothing else
that still holds came from it; a request to forget hides it whatever else it told. An item is told
again only by a sentence with all its numbers, that denies as it does, and that no other item says
more of; what a new item says is not told again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Final

from memograd.memory.analysis import analyse
from memograd.memory.language import is_chinese
from memograd.memory.manager.past import present
from memograd.memory.reader.sentences import split_sentences
from memograd.memory.records.events import EventKind, NewEvent, said_again
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.notes import is_past
from memograd.memory.records.operations import reason
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.statements import wording
from memograd.memory.text_caches import of_texts
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
        if hide and request and made.before is not None:
            for turn in (*self._work.turns, *self._turns):
                if repeats(turn, made.before):
                    self.hide(turn.id)
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

    def _hide_repeated_figures(self) -> None:
        """An assistant that confirms what is kept from being remembered says the figure of it."""
        secret: set[str] = set()
        for turn in self._turns:
            new = turn.id in self._new
            if turn.said_as == "assistant":
                if new and not secret.isdisjoint(_figures(turn.text)):
                    self.hide(turn.id)
            elif self.hides(turn.id) or not (
                new or turn.id in self._work.turns or turn.id in self._items
            ):
                secret |= _figures(turn.text)

    def forgets(self, scope: Scope, actor: str) -> list[NewEvent]:
        """The events that hide the turns."""
        self._hide_repeated_figures()
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


NEAREST: Final = 64  # items, by their words: one that is said whole is near
LEAST: Final = 2  # words that are enough within a longer sentence; of characters twice as many
_FIGURE: Final = re.compile(r"\d(?:[\d .-]{0,40}\d)?")
_FRAME: Final = re.compile(r"^(?:User said|About [^:]{3,40}): |^(?:用户说|关于[^：]{2,10})：")
_SELF: Final = frozenset({"user", "my", "me", "we", "our", "i", "i'm", "i'v", "im"})
_NO_CONTENT: Final = frozenset("的了是我你他她它在有和就都给这那个条不也很说别用户们过呢啊吧吗")


def told_again(
    turn: RawTurn,
    state: MemoryState,
    eligible: Callable[[MemoryItem], bool],
    kept: Sequence[str],
) -> Iterator[tuple[MemoryItem, str]]:
    """The living items that the user's turn says again, each with the sentence that does.

    kept: the texts of what became of the turn otherwise.
    """
    if turn.said_as != "user":
        return
    whole, linked = _words(turn.text), set(state.said_again_in([turn.id]))

    def likely(item: MemoryItem) -> bool:
        known = turn.id in item.sources or item.id in linked or is_past(item.text)
        return not known and bool(_said(item)) and _said(item) <= whole

    terms = analyse(turn.text)
    ranked = state.items.lexical(terms, k=NEAREST, eligible=eligible) if terms else []
    items = [one.record for one in ranked if likely(one.record)]
    if not items:
        return
    told: set[str] = set()
    news = [_words(text) for text in kept]
    for sentence in split_sentences(turn.text):
        words = _words(sentence)
        if any(words <= new for new in news):
            continue
        found = [item for item in items if _says(sentence, words, item)]
        for item in found:
            best = not any(_said(item) < _said(other) for other in found)
            if best and item.id not in told:
                told.add(item.id)
                yield item, sentence


def _figures(text: str) -> set[str]:
    """Its numbers of three digits or more, however they are written in groups."""
    found = (re.sub(r"\D", "", one) for one in _FIGURE.findall(unicodedata.normalize("NFKC", text)))
    return {digits for digits in found if len(digits) >= 3}


def repeats(turn: RawTurn, item: MemoryItem) -> bool:
    """Whether a sentence of an assistant has all the words of the item."""
    if turn.said_as != "assistant":
        return False
    said, whole = words_of(item), turn.text.casefold()
    # Nearly all turns fail this, which costs nothing.
    if not said or not all(word in whole for word in said):
        return False
    return any(_says(sentence, _words(sentence), item) for sentence in split_sentences(turn.text))


def speaks_of(turn: RawTurn, item: MemoryItem) -> bool:
    """Whether an assistant says a word or a number of the item, or two of its Chinese characters:
    in the answer to what told of it, that may be the very thing."""
    if turn.said_as != "assistant":
        return False
    shared = words_of(item) & _words(turn.text)
    return len(shared) > 1 or any(one.isascii() for one in shared)


def words_of(item: MemoryItem) -> frozenset[str]:
    """The beginnings of the words, the numbers and the characters that whoever says it must say."""
    return _said(item)


def _says(sentence: str, words: frozenset[str], item: MemoryItem) -> bool:
    said = _said(item)
    least = (2 if is_chinese(item.text) else 1) * LEAST
    enough = said == words or len(said) >= least
    denied = wording(_bare(item.text)).negated
    return enough and said <= words and wording(sentence).negated == denied


def _said(item: MemoryItem) -> frozenset[str]:
    return _words_said(item.text)


@of_texts
@lru_cache(maxsize=2_048)  # every message is compared with the same items again
def _words_said(text: str) -> frozenset[str]:
    return _words(_bare(text))


def _bare(text: str) -> str:
    return _FRAME.sub("", present(text))


def _words(text: str) -> frozenset[str]:
    """The content words, whatever their ending, the numbers, and of Chinese the characters."""
    found = wording(text)
    latin = {term.removesuffix("e")[:5] for term in found.terms - _SELF if term[0].isascii()}
    chinese = set("".join(re.findall(r"[\u4e00-\u9fff]+", text))) - _NO_CONTENT
    return frozenset(latin | chinese | found.numbers)
