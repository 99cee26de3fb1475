"""The manager that a trained model guides: what a message changes in what is remembered.

The model reads the whole message, with what came before it, together with each related item. What
the message surely replaces or ends becomes the item's past (`past.py`); what it may have changed
says that it is in doubt, and what is new is added beside it. Only what the message corrects or
denies of what was just told, or asks to forget, disappears.

Invariants: no other message takes a fact away, however it is misunderstood; one item at most is
doubted for a message; of an item with several clauses only those meant are taken out; what an
assistant says changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.manager.by_words import (
    holds_all_of,
    may_touch_by_words,
    plain_change,
    says_already,
    touches_by_words,
)
from memograd.memory.manager.crowded import (
    EVIDENCE,
    bound,
    evidence,
    few_evidence,
    stand_out,
    weighed,
)
from memograd.memory.manager.cues import (
    ADDS,
    ADDS_SURELY,
    ASIDE,
    CORRECTS,
    DENIED,
    DENIES,
    comparable,
    corrects_last,
    leaves_alone,
    of_other_kind,
    tells_death,
    without_explained,
)
from memograd.memory.manager.members import names_members
from memograd.memory.manager.misread import misreads, says_again
from memograd.memory.manager.other_value import (
    gives_number,
    gives_other,
    is_of_last,
    of_other_value,
    scratches_for_another,
    surely_pointed,
)
from memograd.memory.manager.past import doubted, ended, instead, present
from memograd.memory.manager.protocol import Change
from memograd.memory.manager.requests import (
    FEW_TO_FORGET,
    REQUEST_EVIDENCE,
    as_request,
    forgotten,
    other_wish,
    unsaid,
)
from memograd.memory.manager.rewriting import SURELY, VALUES, Left, Rewriter
from memograd.memory.manager.rules import decide_by_rules
from memograd.memory.reader.asked import FORGETS, asked_plainly
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.reader.forget import MAY_ASK
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.notes import is_doubted, is_past
from memograd.memory.records.operations import Decision, MemoryOp, OpKind, reason
from memograd.memory.records.turns import RawTurn
from memograd.memory.statements import same_text

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel, Thresholds
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState

TAKES_BACK: Final = 0.7
"""How surely what may be a request to forget takes an item back, for both to agree."""
FEW: Final = 3  # so many items near a message are few: one that looks closed mostly is


class RelationManager(Rewriter):
    """Decides by a relation model; `thresholds`: how sure it must be, by default the model's."""

    def __init__(self, model: RelationModel, *, thresholds: Thresholds | None = None) -> None:
        """Raises BadInput where the model weighs other evidence than is known here."""
        super().__init__(model, thresholds=thresholds)
        weighing = (
            (model.crowded, EVIDENCE, "crowded"),
            (model.requests, REQUEST_EVIDENCE, "requests"),
            (model.few, few_evidence(model), "few"),
        )
        for weighs, known, name in weighing:
            if weighs is not None and len(weighs.weight) != len(known):
                raise BadInput(
                    f"The gate of the relation model weighs {len(weighs.weight)} kinds of evidence,"
                    f" and this version of memograd knows {len(known)}: fit it anew with"
                    f" benchmarks/relations_gate.py --write --only {name}."
                )

    @property
    def actor(self) -> str:
        """As of `MemoryManager`."""
        return "relations"

    def decide(
        self, state: MemoryState, fact: Fact, query: Query, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        """One operation for a fact that came without its message; see `MemoryManager.decide`."""
        items = [hit.record for hit in related]
        if fact.retracts:
            return decide_by_rules(fact, items)
        source = fact.sources[0] if fact.sources else ""
        turn = RawTurn(source, "user", fact.text, fact.told_at, 0)
        heard = Heard(turn, facts=(fact,), quotes=(fact.text,), own=fact.text)
        changes = self.decide_heard(heard, items, frozenset())
        closing = [c for c in changes if c.decision.op.kind in (OpKind.UPDATE, OpKind.NONE)]
        return (closing or changes[-1:])[0].decision

    def decide_heard(
        self, heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str]
    ) -> list[Change]:
        """What a message changes.

        items: the living items it may speak of. recent: ids of those that the last messages told.
        """
        if heard.everything:
            return []  # somebody confirms it first
        heard = _in_plain_words(heard)
        just_told = [item for item in items if item.id in recent]
        if misreads(heard, just_told):
            # What the assistant got wrong is no mistake of the user's.
            items = [item for item in items if item.id not in recent]
            new = heard.whole and not heard.secret and not says_again(heard, just_told)
            if not heard.facts and new:
                heard = replace(heard, facts=(replace(heard.as_fact, text=heard.whole),))
                heard = replace(heard, quotes=(heard.own,), forget=False)
        if (own := unsaid(self._model, self.thresholds, heard, items, recent)) is not None:
            return own[0] + [self._new(fact, items, None) for fact in own[1]]
        if heard.turn.said_as != "user" or not items:
            return [self._new(fact, items, None) for fact in (*heard.facts, *heard.asked)]
        if heard.forget and not scratches_for_another(self._model, heard, just_told):
            gone = forgotten(self._model, self.thresholds, heard, items, recent)
            if (wish := other_wish(heard, gone, items)) is not None:
                return [wish]
            return gone + [self._new(fact, items, None) for fact in heard.facts]
        others = of_other_value(
            heard, items, self._alike, partial(surely_pointed, self._model, heard)
        )
        if not _may_close(heard) and not others and not touches_by_words(heard, items):
            return [self._new(fact, items, None) for fact in (*heard.facts, *heard.asked)]
        texts = [present(item.text) for item in items]
        found = self._model.relate(heard.turn.text, heard.before, texts)
        if heard.perhaps and self._takes_back(heard, items, recent, found):
            request = as_request(heard)
            if gone := forgotten(self._model, self.thresholds, request, items, recent):
                if (wish := other_wish(request, gone, items)) is not None:
                    return [wish]
                return gone + [self._new(fact, items, None) for fact in request.facts]
        asked = [self._new(fact, items, None) for fact in heard.asked]
        return self._changed(heard, items, recent, found, others) + asked

    def only_adds(self, heard: Heard, items: Iterable[MemoryItem]) -> bool:
        """See `ForeseeingManager`. Invariant: then `decide_heard` does not ask the model either."""
        heard = _in_plain_words(heard)
        if _may_close(heard) or heard.everything or heard.turn.said_as != "user":
            return False
        items = list(items)
        return not (
            may_touch_by_words(heard, items)
            or of_other_value(heard, items, _perhaps, _perhaps)
            or any(says_already(item, fact) for fact in heard.asked for item in items)
        )

    def _takes_back(
        self,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        found: np.ndarray,
    ) -> bool:
        """Whether what may be a request surely means an item. A joke that is owned up to does too,
        and asks for nothing.

        What was just told and a word of asking would take away less surely, but all of an item.
        Among many items one always looks meant, so there such a word is needed.
        """
        said = MAY_ASK.search(heard.own) is not None
        if DENIES.search(heard.own) or (len(items) > FEW_TO_FORGET and not said):
            return False
        living = [n for n, item in enumerate(items) if not is_past(item.text)]
        if self._model.reads_twice:
            texts = [present(items[n].text) for n in living]
            odds = self._model.closes(heard.turn.text, heard.before, texts, ("retract",))
            return any(one >= self.thresholds.asks_above for one in 1 / (1 + np.exp(-odds)))
        retract = self._names.index("retract")
        least = [
            self.thresholds.retract_above if said and items[n].id in recent else TAKES_BACK
            for n in living
        ]
        return any(found[n, retract] >= one for n, one in zip(living, least, strict=True))

    def _changed(
        self,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        found: np.ndarray,
        others: frozenset[str],
    ) -> list[Change]:
        few = len(items) <= FEW
        read = self._read(heard, items, recent, found, others)
        closing = [one.sure for one in read]
        changes: list[Change] = []
        left = Left(list(heard.facts), list(heard.quotes))
        bounds = self._bounds(few=few)
        doubt_above = bounds.doubt_above
        if heard.stated and max(closing) >= doubt_above:
            # "82.5 moved like butter. NEW PR!": what takes an item's place must not lose a half.
            left.facts = [replace(left.facts[0], text=heard.stated)]
        if (doubt := self._swapped(heard, items, recent, closing)) is not None:
            facts = [*heard.facts] or [replace(heard.as_fact, text=heard.whole)]
            return [doubt] + [self._new(fact, items, None) for fact in facts if fact.text]
        doubtful: str | None = None
        denies = DENIED.match(heard.own) is not None
        corrects = CORRECTS.search(heard.own) is not None
        first = [corrects and item.id in recent for item in items]  # a correction speaks of these
        for n in sorted(range(len(items)), key=lambda n: (not first[n], -closing[n])):
            item, sure = items[n], closing[n]
            relation = read[n].relation
            if DENIES.search(heard.own) and not is_of_last(heard, present(item.text)):
                continue  # "jk" behind a sum jokes about no cat that was told before it
            idle = heard.idle and relation in ("retract", "end")
            if is_past(item.text) or (idle and not names_members(item.text, heard.own)):
                continue
            if not corrects and leaves_alone(heard, present(item.text)):
                continue
            if (
                denies
                and item.id in recent
                and float(found[n, 0]) < self.thresholds.unrelated_above
            ):
                relation = "retract"
            if self._puts_again(heard, item, relation, item.id in recent, left):
                continue
            taken, unsure = None, read[n].unsure
            # Beside many items one always looks corrected.
            if not unsure and (few or relation == "retract" or sure >= doubt_above):
                taken = self._taken_back(heard, item, relation, sure, item.id in recent, left)
            if taken is not None:
                changes.append(taken)
                continue
            said = self._of_item(heard, item) if sure >= bounds.link_above else heard.own
            adds = relation != "end" and ADDS.search(said) is not None
            surely = relation != "end" and ADDS_SURELY.search(said) is not None
            least = bounds.added_above if surely else bounds.close_above
            told = item.id in others and not adds
            may = told or (relation in VALUES and sure >= bounds.link_above)
            if (may and not unsure and sure < least) and gives_other(
                self._model, heard, item, few=few, by_the_way=told
            ):
                sure, relation, least = max(sure, bounds.close_above), "replace", 0.0
            elif (
                few  # among many some number is always like another
                and not unsure
                and doubt_above <= sure < least
                and relation == "replace"
                and not adds
                and gives_number(self._model, heard, item)
            ):
                least = 0.0
            elif doubt_above <= sure < least and relation == "end":
                # "Cancelled Crave" ends one of three, whatever becomes of the others.
                least = 0.0 if names_members(item.text, heard.own) else least
            if left.corrected and relation in VALUES and not first[n]:
                continue  # "no, fifth floor" corrects one thing
            if sure >= least and not unsure:
                changes.append(self._made_past(heard, item, relation, sure, left))
            elif (
                sure >= doubt_above
                and doubtful is None
                and not changes  # a message mostly changes one thing
                and item.role != "assistant"  # that it said so stays true
                and not (adds or ADDS.search(heard.own))
                and not of_other_kind(heard.whole, present(item.text))
            ):
                doubtful = item.id
                text = doubted(item.text, heard.day, self._meant(heard, item))
                if text != item.text:
                    changes.append(self._update(item, text, heard, "doubt", sure, hide=False))
        tells = left.rewritten or any(_tells(change, heard) for change in changes)
        if (changes or doubtful) and not left.facts and heard.whole and not tells:
            # What ended something, or may have, is worth keeping should the model be wrong.
            left.facts.append(replace(heard.as_fact, text=heard.whole))
        closed = {change.decision.op.item_id for change in changes}
        open_ = [n for n in range(len(items)) if items[n].id not in closed]
        perhaps = [n for n in open_ if closing[n] >= self.thresholds.link_above]
        link = items[max(perhaps, key=lambda n: closing[n])].id if perhaps else None
        forgets = any(change.decision.op.kind is OpKind.DELETE for change in changes)
        for k, fact in enumerate(left.facts):
            if k in left.used or (forgets and _asks_to_forget(left, k)):
                continue
            same = next(
                (
                    items[n]
                    for n in open_
                    if self._says_already(items[n], fact, found[n], len(left.facts))
                ),
                None,
            )
            if (plain := self._by_rules(heard, fact, open_, items, found)) is not None:
                changes.append(plain)
                open_ = [n for n in open_ if items[n].id != plain.decision.op.item_id]
            elif same is not None:
                changes.append(self._said_again(same, fact, heard))
            else:
                changes.append(self._new(fact, items, doubtful or link))
        return changes

    def _of_item(self, heard: Heard, item: MemoryItem) -> str:
        """Of a message that says somewhere that something is added the sentence that speaks of the
        item: "put me up to 75. I asked about the coffee, too" adds no dose."""
        if not heard.quotes or not ADDS.search(heard.own):
            return heard.own
        return heard.quotes[self._fitting(heard, item, heard.quotes) or 0]

    def _alike(self, sentence: str, text: str) -> float:
        """The probability that a sentence says an item again or closes it, read by themselves."""
        [row] = self._model.relate(sentence, (), [text])
        return float(row[self._names.index("same")] + row[self._closing].sum())

    def _said_again(self, item: MemoryItem, fact: Fact, heard: Heard) -> Change:
        """Nothing to do, but for an item that was in doubt until now."""
        if is_doubted(item.text):
            return self._update(item, present(item.text), heard, "same", 1.0, hide=False)
        return Change(
            Decision(MemoryOp.none(item.id), reason("same", item.text, quoted=True)), fact
        )

    def _by_rules(
        self,
        heard: Heard,
        fact: Fact,
        open_: Sequence[int],
        items: Sequence[MemoryItem],
        found: np.ndarray,
    ) -> Change | None:
        """A change of one property in plain words, which rules see: "My car is a Toyota".

        They must compare values of one type, and the model must not hold it for a remark.
        """
        plain = ASIDE.sub("", fact.text)
        decision = plain_change(fact, [items[n] for n in open_])
        if decision is None:
            return None
        n = next(n for n in open_ if items[n].id == decision.op.item_id)
        remark = found[n, [self._names.index("comment"), self._names.index("detail")]].sum()
        if float(remark) >= self.thresholds.remark_above or not comparable(
            present(items[n].text), plain
        ):
            return None
        if (text := decision.op.text) is not None:
            op = MemoryOp.update(items[n].id, instead(text, items[n].text, heard.day))
        else:
            op = MemoryOp.update(items[n].id, ended(items[n].text, heard.day))
        return Change(replace(decision, op=op), fact, hide=True)

    def _says_already(self, item: MemoryItem, fact: Fact, row: np.ndarray, facts: int) -> bool:
        if is_past(item.text) or same_text(present(item.text), fact.text):
            return not is_past(item.text)
        return bool(
            facts == 1
            and float(row[self._names.index("same")]) >= self.thresholds.same_above
            and holds_all_of(item, fact)
        )

    def _bounds(self, *, few: bool) -> Thresholds:
        """How sure it must be of one of so many."""
        sure = self.thresholds
        if few:
            return sure
        if self._model.crowded is None:
            return replace(sure, doubt_above=sure.crowded_doubt_above)
        closes, doubts = sure.weighed_close_above, sure.weighed_doubt_above
        return replace(sure, close_above=closes, doubt_above=doubts, crowded_doubt_above=doubts)

    def _read(
        self,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        found: np.ndarray,
        others: frozenset[str],
    ) -> list[_Read]:
        """How surely the message closes each item.

        Few are read among the others and by themselves, clause by clause: beside an allotment, its
        leeks and an age a message that ends one of them looks like none. So may what speaks of none
        ("strewth"), and among many some clause always does, so what is known of them is weighed.
        """
        closing = found[:, self._closing].sum(1)
        sure = [float(one) for one in closing]
        unsure = [False] * len(items)
        if len(items) <= FEW:
            link = self.thresholds.link_above
            for n, item in enumerate(items):
                if sure[n] >= link:
                    sure[n] = max(sure[n], *self._clauses(heard, item))
            if (few := self._model.few) is not None:
                at = [n for n, one in enumerate(sure) if one >= link]
                names = few_evidence(self._model)
                known = evidence(self._model, heard, items, recent, found, at, names)
                for n, odds in zip(at, few.scores(known), strict=True):
                    relation = self._relation(found[n])
                    says, may = corrects_last(heard, relation, recent=items[n].id in recent)
                    sure_of_few = float(1 / (1 + np.exp(-odds)))
                    speaks = says and sure_of_few >= self.thresholds.few_correct_above
                    sure[n] = sure[n] if speaks or odds >= few.least else 0.0
                    unsure[n] = not may and sure_of_few < self.thresholds.few_close_above
        elif self._model.crowded is not None:
            places = stand_out(closing)
            bounds = self._bounds(few=False)
            least = min(bounds.link_above, bounds.doubt_above, bounds.added_above)
            back = min(least, self._least_taken_back(heard))
            # What has another value may change however unsure that is.
            needed = [
                0.0 if items[n].id in others else back if items[n].id in recent else least
                for n in places
            ]
            every = weighed(
                self._model,
                self._model.crowded,
                heard,
                items,
                recent,
                found,
                dict(zip(places, map(bound, needed), strict=True)),
            )
            for n, one in zip(places, every, strict=True):
                sure[n] = float(1 / (1 + np.exp(-one)))
        dead = [tells_death(heard.own, present(item.text)) for item in items]
        return [
            _Read(max(one, SURELY), "end") if died else _Read(one, self._relation(row), doubt)
            for one, row, died, doubt in zip(sure, found, dead, unsure, strict=True)
        ]

    def _new(self, fact: Fact, items: Sequence[MemoryItem], link: str | None) -> Change:
        for item in items:
            if says_already(item, fact):
                return Change(
                    Decision(MemoryOp.none(item.id), reason("same", item.text, quoted=True)), fact
                )
        why = reason("beside" if link else "new", fact.text)
        return Change(Decision(MemoryOp.add(fact.text), why), fact, may_change=link)


def _may_close(heard: Heard) -> bool:
    return heard.may_close or bool(heard.perhaps)


def _asks_to_forget(left: Left, k: int) -> bool:
    """Whether a fact is the request itself: "pls forget everything about Madison"."""
    return k < len(left.quotes) and FORGETS.search(left.quotes[k]) is not None


def _perhaps(sentence: str, text: str) -> float:
    """How sure the model might be, of whatever it is asked."""
    return 1.0


def _in_plain_words(heard: Heard) -> Heard:
    """The message with the common word for taking something back, its own words without what
    explains a character."""
    turn = replace(heard.turn, text=asked_plainly(heard.turn.text))
    return replace(heard, turn=turn, own=asked_plainly(without_explained(heard.own)))


@dataclass(frozen=True)
class _Read:
    """How surely a message closes an item, and by which relation; unsure: it doubts it at most."""

    sure: float
    relation: str
    unsure: bool = False


def _tells(change: Change, heard: Heard) -> bool:
    """Whether the new text of an item says what the message says."""
    return heard.whole.rstrip(" .。") in (change.decision.op.text or "")
