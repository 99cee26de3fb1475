"""What becomes of an item that a message corrects, takes back, replaces or ends.

Of an item that says several things only those that are meant change: a value is put in its place, a
part is taken out, what is replaced stays readable as the past. What a message corrects of what was
just told disappears; what only looks corrected stays behind the new text as a mistake.

Invariant: an item's new text is made of its own words and the message's, and of a message one fact
at most takes an item's place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.memory.language import is_chinese
from memograd.memory.manager import substitution
from memograd.memory.manager.cues import (
    ADDS,
    ADDS_SURELY,
    CORRECTS,
    DENIED,
    DENIES,
    FAINT,
    only_faint,
    only_swaps,
)
from memograd.memory.manager.denied_value import names_the_old
from memograd.memory.manager.members import without_members
from memograd.memory.manager.other_value import (
    gives_surely,
    goes_on_about,
    in_part,
    is_alike,
    pointed_at,
    with_value,
)
from memograd.memory.manager.past import (
    doubted,
    ended,
    instead,
    is_list,
    is_readable,
    keeping_past,
    least_length,
    left_of,
    mistaken,
    negates,
    parts_of,
    present,
    with_subject,
)
from memograd.memory.manager.protocol import Change
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.reader.forget import MAY_ASK
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.notes import is_past
from memograd.memory.records.operations import Decision, MemoryOp, reason

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel, Thresholds

VALUES: Final = ("replace", "correct")  # after which another value stands there
SURELY: Final = 0.9  # from here on what is corrected was wrong, though no word says so
_STOPS: Final = re.compile(
    r"\b(?:never (?:\w+ )?again|no longer|not? any ?(?:more|longer)|any ?more)\b"
    r"|再也[不没別别]|不再|再不",
    re.IGNORECASE,
)


_CONFIRMS: Final = re.compile(
    r"\W*(?:the )?(?:\d[\w:]*(?: [ap]m)?|date|day|time|place|rest|name|number|address|year|month)"
    r"(?:['’]s| is| are| was) (?:still )?(?:right|correct|fine)\W*",
    re.IGNORECASE,
)
"""Says of a value that it stays: "8pm is right"."""


@dataclass
class Left:
    """The facts of a message; used: those in an item. rewritten: all of it; corrected: a value.
    new, old: the value that it has put in place, and the one that stood there."""

    facts: list[Fact]
    quotes: list[str]
    used: set[int] = field(default_factory=set)
    rewritten: bool = False
    corrected: bool = False
    new: str | None = None
    old: str = ""


class Rewriter:
    """Writes items anew, by a relation model; `thresholds`: how sure it must be."""

    def __init__(self, model: RelationModel, *, thresholds: Thresholds | None = None) -> None:
        from memograd.memory.relations import CLOSING, RELATIONS

        self._model = model
        self._closing = [RELATIONS.index(name) for name in CLOSING]
        self._names = RELATIONS
        self.thresholds = model.about.thresholds if thresholds is None else thresholds

    def _taken_back(
        self,
        heard: Heard,
        item: MemoryItem,
        relation: str,
        sure: float,
        just_told: bool,
        left: Left,
    ) -> Change | None:
        """The item without what the message corrects or denies; None where it does neither.

        Only this and a request to forget let something disappear, so both must be plain: the
        message corrects what was told just before it, or what it names, in words or with a value
        of the same type.
        """
        sounds = CORRECTS.search(heard.own) is not None
        if relation in ("retract", "end") and just_told and not DENIES.search(heard.own):
            old = present(item.text)
            told = names_the_old(old, heard.own)
            if told or (sounds and gives_surely(self._model, heard, old)):
                relation = "correct"  # a value is wrong, and not all of it
        takes_back = sounds or DENIES.search(heard.own) is not None
        adds = not takes_back and ADDS_SURELY.search(heard.own) is not None
        if relation == "retract" and adds:
            return None  # 再加一条：别用拼音
        if relation == "retract" or (relation != "replace" and DENIES.search(heard.own)):
            # "It's not for the eggs" denies something, but nothing of this item.
            # 再也不学了 denies nothing: so far it was so.
            denied = negates(heard.own, item.text) and not _STOPS.search(heard.own)
            denies = DENIES.search(heard.own) or denied
            if not (denies or sounds or MAY_ASK.search(heard.own)):
                return None
            least = self.thresholds.correct_above if denies else self.thresholds.retract_above
            if not just_told or (sure < least and not DENIED.match(heard.own)):
                return None
            op = MemoryOp.delete(item.id)
            if (part := self._rest(heard, item, relation)) is not None:
                op = MemoryOp.update(item.id, part)
            decision = Decision(op, reason("retract", item.text, quoted=True), sure)
            return Change(decision, heard.as_fact, hide=True)
        if relation == "end" and not (sounds and just_told):
            return None
        value_of = partial(with_value, self._model, heard, present(item.text), relation=relation)
        found = value_of(just_told=just_told)
        far = just_told and not goes_on_about(heard, present(item.text))
        if far and (found is None or not is_alike(present(item.text), found.text)):
            just_told = False
            found = value_of(just_told=just_told)
        if found is not None and found.typed:
            bare = substitution.bare_value(heard.own)
            # "Jupiter! I misread it": it begins with nothing but the new value.
            sounds = sounds or (bool(bare) and str(bare) in found.text)
        untold = False
        if just_told and found is not None and sounds:
            least = self.thresholds.correct_value_above
        elif just_told and found is not None and relation == "correct":
            least = self.thresholds.value_above if found.typed else self.thresholds.bare_value_above
            if not found.typed and ADDS.search(heard.own):
                least = self.thresholds.added_above
        elif just_told and sounds:
            least = self.thresholds.correct_above
        else:
            least, untold = self.thresholds.untold_above, True
        if not (just_told or sounds) or (untold and relation != "correct") or sure < least:
            return None
        if found is not None:
            left.new, left.old = found.new, found.old
            left.rewritten = left.corrected = True  # it takes no other item's place
            left.used |= {
                k
                for k, one in enumerate(left.quotes)
                if (len(left.quotes) == 1 and found.new.casefold() in one.casefold())
                or found.tells(one)
                or _CONFIRMS.fullmatch(one)
                or substitution.corrected(present(item.text), one) == found.text
            }
            text = keeping_past(found.text, item.text)
            if not found.agreed and only_faint(heard.own):
                # "Autocorrect introduced me as Xylophone": perhaps it corrects nothing.
                text = _with_past(text, item, relation, sure, heard)
            return self._update(item, text, heard, "correct", sure)
        if adds:
            return None  # "coeliac too, on top of the milk thing"
        # A remark may look like a correction: what it may replace is kept as past. So is what else
        # an item says of which nobody knows which part is wrong.
        whole = len(parts_of(present(item.text))) == 1
        plain = sounds and whole and not FAINT.search(heard.own)
        if (rest := self._rest(heard, item, relation)) is not None:
            text = rest if plain else _with_past(rest, item, relation, sure, heard)
            return self._update(item, text, heard, "correct", sure)
        fit = self._fitting(heard, item, left.quotes)
        if fit is None or fit in left.used:
            if not heard.whole or left.rewritten or (left.used and len(left.facts) == 1):
                return None
            left.rewritten = True
            text = heard.whole
            if not plain:
                text = _with_past(text, item, relation, sure, heard)
            return self._update(item, text, heard, "correct", sure)
        left.used.add(fit)
        left.corrected = sounds
        text = left.facts[fit].text
        if not plain:
            text = _with_past(text, item, relation, sure, heard)
        op = MemoryOp.update(item.id, text)
        return Change(
            Decision(op, reason("correct", item.text, quoted=True), sure),
            left.facts[fit],
            hide=True,
        )

    def _puts_again(
        self, heard: Heard, item: MemoryItem, relation: str, just_told: bool, left: Left
    ) -> bool:
        """Whether a value that has corrected one item would correct another of this one: "*72 kg"
        says nothing of an age of 47."""
        if left.new is None or relation not in VALUES:
            return False
        found = with_value(
            self._model, heard, present(item.text), just_told=just_told, relation=relation
        )
        return found is not None and found.new == left.new and found.old != left.old

    def _least_taken_back(self, heard: Heard) -> float:
        """How surely a message must close at least what was just told, for `_taken_back` to change
        it."""
        if DENIED.match(heard.own):
            return 0.0
        sure = self.thresholds
        return min(
            sure.retract_above,
            sure.correct_above,
            sure.correct_value_above,
            sure.value_above,
            sure.bare_value_above,
            sure.added_above,
            sure.untold_above,
        )

    def _made_past(
        self, heard: Heard, item: MemoryItem, relation: str, sure: float, left: Left
    ) -> Change:
        """The item with what the message replaces or ends as its past."""
        if relation in VALUES and (other := in_part(self._model, heard, present(item.text))):
            text = instead(other, item.text, heard.day)
            return self._update(item, text, heard, "replace", sure)
        part = self._rest(heard, item, relation)
        closed = self._with_old_number(heard, item) or self._meant(heard, item)
        fit = (
            self._fitting(heard, item, left.quotes) if relation in ("replace", "correct") else None
        )
        if part is not None and (
            relation == "end" or fit is None or len(part) > least_length(part)
        ):
            text = _with_past(part, item, relation, sure, heard, closed)
        elif fit is not None and fit not in left.used:
            left.used.add(fit)
            text = _with_past(left.facts[fit].text, item, relation, sure, heard, closed)
            op = MemoryOp.update(item.id, text)
            return Change(
                Decision(op, reason("replace", item.text, quoted=True), sure),
                left.facts[fit],
                hide=True,
            )
        elif fit is None and relation != "end" and heard.whole and not left.rewritten:
            left.rewritten = True
            text = _with_past(heard.whole, item, relation, sure, heard, closed)
        else:
            text = ended(item.text, heard.day, closed)
        why = "end" if relation in ("end", "retract") else "replace"
        return self._update(item, text, heard, why, sure)

    def _fitting(self, heard: Heard, item: MemoryItem, quotes: Sequence[str]) -> int | None:
        """The fact that takes the item's place, None where the message has none."""
        if len(quotes) < 2:
            return 0 if quotes else None
        scores = [
            float(
                self._model.relate(quote, heard.before, [present(item.text)])[
                    0, self._closing
                ].sum()
            )
            for quote in quotes
        ]
        return scores.index(max(scores))

    def _clauses(self, heard: Heard, item: MemoryItem) -> list[float]:
        """How surely the message closes each part of the item."""
        return closing_of_parts(self._model, heard, item.text)

    def _swapped(
        self,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        sure: Sequence[float],
    ) -> Change | None:
        """The doubt in what was just told where a message says that two things were taken for each
        other, and gives no value: which they are is not clear, and nothing is lost."""
        told = [
            (one, -n)
            for n, (one, item) in enumerate(zip(sure, items, strict=True))
            if item.id in recent and item.role != "assistant" and not is_past(item.text)
        ]
        if not told or not only_swaps(heard.own):
            return None
        one, place = max(told)
        item = items[-place]
        text = doubted(item.text, heard.day)
        return self._update(item, text, heard, "doubt", one, hide=False)

    def _relation(self, row: np.ndarray) -> str:
        return self._names[self._closing[int(row[self._closing].argmax())]]

    def _rest(self, heard: Heard, item: MemoryItem, relation: str) -> str | None:
        """The item without those of its parts that the message closes; None where all of it is, or
        what is left cannot be read alone."""
        left = without_members(present(item.text), heard.own)
        if left is not None and relation != "replace":  # "I pour soya in coffee" takes none out
            return left
        parts = parts_of(present(item.text))
        if len(parts) < 2 or not is_list(parts):
            return None
        scores = self._clauses(heard, item)
        sure, most = self.thresholds, max(scores)
        stay = [
            n
            for n, score in enumerate(scores)
            if score < sure.part_above or score < sure.part_share * most
        ]
        if len(stay) == len(parts) or not any(is_readable(item.text, parts[n][0]) for n in stay):
            return None
        return left_of(item.text, parts, stay)

    def _meant(self, heard: Heard, item: MemoryItem) -> str | None:
        """Of an English item that says several things the part that the message closes, as it
        stands there; None where that is not one of them, or cannot be read alone."""
        text = present(item.text)
        parts = parts_of(text)
        if len(parts) < 2 or is_chinese(text):
            return None
        scores = self._clauses(heard, item)
        best, second = sorted(range(len(parts)), key=lambda n: -scores[n])[:2]
        plain = scores[best] >= self.thresholds.part_above
        if not plain or scores[second] >= self.thresholds.part_share * scores[best]:
            return None
        return parts[best][0] if is_readable(text, parts[best][0]) else None

    def _with_old_number(self, heard: Heard, item: MemoryItem) -> str | None:
        """The part with the number that the message replaces, where the model points at one."""
        text = present(item.text)
        if is_chinese(text) or len(parts_of(text)) < 2:
            return None
        found, start = pointed_at(self._model, heard, text), 0
        if found is None or not re.search(r"\d", text[slice(*found.old)]):
            return None
        for part, joint in parts_of(text):
            end = start + len(part)
            if start <= found.old.start and found.old.end <= end:
                return part if is_readable(text, part) else None
            start = end + len(joint)
        return None

    def _update(
        self,
        item: MemoryItem,
        text: str,
        heard: Heard,
        relation: str,
        confidence: float,
        *,
        hide: bool = True,
    ) -> Change:
        decision = Decision(
            MemoryOp.update(item.id, text), reason(relation, item.text, quoted=True), confidence
        )
        return Change(decision, heard.as_fact, hide=hide)


def closing_of_parts(model: RelationModel, heard: Heard, text: str) -> list[float]:
    """How surely a message closes each part of an item's text."""
    from memograd.memory.relations import CLOSING, RELATIONS

    parts = [with_subject(text, part) for part, _ in parts_of(present(text))]
    read = model.relate(heard.turn.text, heard.before, parts)
    scores: list[float] = read[:, [RELATIONS.index(name) for name in CLOSING]].sum(1).tolist()
    return scores


def _with_past(
    text: str,
    item: MemoryItem,
    relation: str,
    sure: float,
    heard: Heard,
    part: str | None = None,
) -> str:
    """The statement with the item's behind it, as what was so or was said by mistake."""
    says_so = CORRECTS.search(heard.own) is not None and not FAINT.search(heard.own)
    if relation == "correct" and (says_so or sure >= SURELY):
        return mistaken(text, item.text)
    return instead(text, item.text, heard.day, part)
