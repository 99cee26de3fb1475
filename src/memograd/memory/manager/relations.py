"""The manager that a trained model guides: what a message changes in what is remembered.

The model reads the whole message, with what came before it, together with each related item. What
the message surely replaces, ends, corrects or takes back is closed; everything else is left as it
is, and what is new is added beside it: in doubt with a link to what it may change.

Invariants: nothing is closed that the model does not hold for closed above the threshold, or that
the message does not ask to forget; of an item with several clauses only those meant are taken out;
what an assistant says closes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.protocol import Change, RelatedItem
from memograd.memory.manager.rules import RuleManager
from memograd.memory.manager.substitution import corrected
from memograd.memory.reader import forget_chinese, forget_english
from memograd.memory.reader.fact import Fact
from memograd.memory.reader.heard import Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind
from memograd.memory.records.turns import RawTurn
from memograd.memory.statements import parse_statement, same_text, wording

if TYPE_CHECKING:
    import numpy as np

    from memograd.memory.relations import RelationModel

CLOSE_ABOVE: Final = 0.65  # chosen on the authors s1 of tests/behaviour
UNTOLD_ABOVE: Final = 0.7  # where nothing in the words sounds like a correction
REMARK_ABOVE: Final = 0.5
ADDED_ABOVE: Final = 0.97  # where the words say that something comes on top
CORRECT_VALUE_ABOVE: Final = 0.1  # where they also give a value of the same type
CORRECT_ABOVE: Final = 0.3  # of what was just said, where the words sound like a correction
FORGET_ABOVE: Final = 0.35
LINK_ABOVE: Final = 0.25
SAME_ABOVE: Final = 0.85

_CORRECTS: Final = re.compile(
    r"^\W*\*|\*\W*$|\b(?:scratch that|i mean|i meant|meant to|no wait|wait[,.! ]|oops|whoops|typo"
    r"|correction|actually|sorry|my bad|mistyped|misspoke|fat.?finger|autocorrect"
    r"|nope"
    r"|make that|i said .* but|mix(?:ed)? .{1,12} up|edit:|, not |\*\w+)\b|\w\*"
    r"|说错|記錯|记错|打错|写错|口误|更正|纠正|不对|不是.{1,10}是|应该是|搞错|弄错|手滑|看错"
    r"|错了|等等|哦不|噢不",
    re.IGNORECASE,
)
_ADDS: Final = re.compile(
    r"^\W*(?:and|plus|oh and|also)\b|\b(?:also|as well|too|add(?:ed|s|ing)?|another|on top of"
    r"|in addition|besides|along with|second|extra|both)\b"
    r"|也|还有|另外|再加|加上|又|同时|除了|外加|添了|多了|新增|第二",
    re.IGNORECASE,
)
_BARE_REQUEST: Final = re.compile(
    r"\b(?:that|this|it|last (?:message|thing|bit|one|part)|what i (?:just )?said"
    r"|i said anything)\b"
    r"|刚才|刚刚|上(?:一)?[条句]|这[条句个]|那[条句个]|刚说|前面|当我没说",
    re.IGNORECASE,
)
_ALL_SAID: Final = re.compile(
    r"\b(?:everything|all)\b.{0,20}\b(?:said|told|mentioned|above)\b|(?:说的|说过的).{0,4}(?:全"
    r"|都)|全(?:部|都)?(?:忘|删)",
    re.IGNORECASE,
)
_REASONS: Final = {
    "replace": ("A new value takes its place", "有了新的说法"),
    "correct": ("It was corrected", "已更正"),
    "end": ("It is no longer so", "已不再成立"),
    "retract": ("It was taken back", "用户收回了这句话"),
    "forget": ("Somebody asked to forget it", "用户要求忘记"),
    "same": ("Already remembered", "已经记得"),
    "new": ("Nothing remembered says this yet", "新的内容"),
    "beside": ("New; it may change what is linked", "新的内容，可能改变相关记忆"),
}


class RelationManager:
    """Decides by a relation model; `close_above`: the least probability that closes an item."""

    def __init__(self, model: RelationModel, *, close_above: float | None = None) -> None:
        from memograd.memory.relations import CLOSING, RELATIONS

        self._model = model
        self._closing = [RELATIONS.index(name) for name in CLOSING]
        self._names = RELATIONS
        self.close_above = CLOSE_ABOVE if close_above is None else close_above
        self._rules = RuleManager()

    @property
    def actor(self) -> str:
        """As of `MemoryManager`."""
        return "relations"

    def decide(self, fact: Fact, related: Sequence[RelatedItem]) -> Decision:
        """One operation for a fact that came without its message; see `MemoryManager.decide`."""
        if fact.retracts:
            return self._rules.decide(fact, related)
        items = [each.item for each in related]
        heard = Heard(_turn_of(fact), facts=(fact,), quotes=(fact.text,), own=fact.text)
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
        if heard.turn.said_as != "user" or not items:
            return [self._new(fact, items, None) for fact in heard.facts]
        found = self._model.relate(heard.turn.text, heard.before, [item.text for item in items])
        if heard.forget:
            return self._forgotten(heard, items, recent, found) + [
                self._new(fact, items, None) for fact in heard.facts
            ]
        return self._changed(heard, items, recent, found)

    def _changed(
        self,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        found: np.ndarray,
    ) -> list[Change]:
        closing = found[:, self._closing].sum(1)
        sounds = _CORRECTS.search(heard.own) is not None
        changes: list[Change] = []
        used: set[int] = set()
        rewritten = ended = False
        adds = _ADDS.search(heard.own) is not None
        facts, quotes = list(heard.facts), list(heard.quotes)
        order = sorted(range(len(items)), key=lambda n: -closing[n])
        for n in order:
            item = items[n]
            just_now = item.id in recent and sounds
            value = corrected(item.text, heard.own) if just_now else None
            least = self.close_above
            if just_now:
                least = min(least, CORRECT_VALUE_ABOVE if value else CORRECT_ABOVE)
            if closing[n] < least:
                continue
            relation = self._names[self._closing[int(found[n, self._closing].argmax())]]
            if heard.idle and relation in ("retract", "end"):
                continue
            closes = relation != "retract" or wording(heard.own).negated
            if relation == "replace" and just_now:
                relation = "correct"
            news = relation in ("replace", "correct")
            if news and adds and not just_now and closing[n] < ADDED_ABOVE:
                continue
            told = sounds or item.id in recent
            if relation == "correct" and not told and closing[n] < UNTOLD_ABOVE:
                continue
            ended = ended or closes
            confidence = float(closing[n])
            if relation == "correct":
                value = value or corrected(item.text, heard.own)
                if value is not None:
                    changes.append(self._update(item, value, heard, relation, confidence))
                    used |= {
                        k for k, one in enumerate(quotes) if corrected(item.text, one) == value
                    }
                    continue
            if relation in ("replace", "correct"):
                fit = self._fitting(heard, item, quotes)
                if fit is None and heard.whole and not rewritten:
                    op = MemoryOp.update(item.id, heard.whole)
                    decision = Decision(op, self._why(relation, item), confidence)
                    changes.append(Change(decision, _fact_of(heard), hide=True))
                    rewritten = True
                    continue
                if fit is not None and fit not in used:
                    part = self._meant(heard, item)
                    if part is not None and len(part) > (5 if is_chinese(part) else 12):
                        changes.append(self._update(item, part, heard, relation, confidence))
                        continue
                    used.add(fit)
                    op = MemoryOp.update(item.id, facts[fit].text)
                    decision = Decision(op, self._why(relation, item), confidence)
                    changes.append(Change(decision, facts[fit], hide=True))
                    continue
            elif (part := self._meant(heard, item)) is not None:
                changes.append(self._update(item, part, heard, relation, confidence))
                continue
            op = MemoryOp.delete(item.id)
            decision = Decision(op, self._why(relation, item), confidence)
            changes.append(Change(decision, _fact_of(heard), hide=True))
        closed = {change.decision.op.item_id for change in changes}
        open_ = [n for n in range(len(items)) if items[n].id not in closed]
        unsure = [n for n in open_ if closing[n] >= LINK_ABOVE]
        link = items[max(unsure, key=lambda n: closing[n])].id if unsure else None
        updated = any(change.decision.op.kind is OpKind.UPDATE for change in changes)
        if ended and not facts and not updated and heard.whole:
            # What ended something is worth keeping, too, should the model be wrong all the more.
            facts = [replace(_fact_of(heard), text=heard.whole)]
        for k, fact in enumerate(facts):
            if k in used:
                continue
            same = next(
                (
                    items[n]
                    for n in open_
                    if self._says_already(items[n], fact, found[n], len(facts))
                ),
                None,
            )
            if (plain := self._by_rules(heard, fact, open_, items, found)) is not None:
                changes.append(plain)
                open_ = [n for n in open_ if items[n].id != plain.decision.op.item_id]
            elif same is not None:
                op = MemoryOp.none(same.id)
                changes.append(Change(Decision(op, self._why("same", same)), fact))
            else:
                changes.append(self._new(fact, items, link))
        return changes

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
        related = [RelatedItem(items[n], 0.0) for n in open_]
        plain = _ASIDE.sub("", fact.text)
        decision = self._rules.decide(replace(fact, text=plain), related)
        if decision.op.kind not in (OpKind.UPDATE, OpKind.DELETE):
            return None
        n = next(n for n in open_ if items[n].id == decision.op.item_id)
        remark = found[n, [self._names.index("comment"), self._names.index("detail")]].sum()
        if float(remark) >= REMARK_ABOVE or not _comparable(items[n].text, plain):
            return None
        return Change(decision, fact, hide=True)

    def _says_already(self, item: MemoryItem, fact: Fact, row: np.ndarray, facts: int) -> bool:
        if same_text(item.text, fact.text):
            return True
        ours, its = wording(fact.text), wording(item.text)
        return bool(
            facts == 1
            and row[self._names.index("same")] >= SAME_ABOVE
            and ours.numbers <= its.numbers
            and ours.negated == its.negated
            and ours.terms <= its.terms
        )

    def _fitting(self, heard: Heard, item: MemoryItem, quotes: Sequence[str]) -> int | None:
        """The fact that takes the item's place, None where the message has none."""
        if len(quotes) < 2:
            return 0 if quotes else None
        scores = [
            float(self._model.relate(quote, heard.before, [item.text])[0, self._closing].sum())
            for quote in quotes
        ]
        return scores.index(max(scores))

    def _meant(self, heard: Heard, item: MemoryItem) -> str | None:
        """The item without the parts that are meant; None where all of it is, or it has one."""
        parts = _parts(item.text)
        if len(parts) < 2:
            return None
        found = self._model.relate(heard.turn.text, heard.before, [part for part, _ in parts])
        scores = [float(score) for score in found[:, self._closing].sum(1)]
        own = _stems(heard.own)
        named = [len(own & _stems(part)) for part, _ in parts]
        if heard.forget and max(named) and named.count(max(named)) == 1:
            scores[named.index(max(named))] += 1.0
        least = max(0.2, 0.75 * max(scores))
        stay = [n for n in range(len(parts)) if scores[n] < least]
        if not stay or len(stay) == len(parts) or all(_LEANS.search(parts[n][0]) for n in stay):
            return None
        text = ""
        for n in stay:
            text += parts[n][0] + (parts[n][1] if n != stay[-1] else "")
        if not text.startswith(item.text[:4]) and (subject := _SUBJECT.match(item.text)):
            bare = text.removeprefix("and ").removeprefix("User ").removeprefix("用户")
            text = subject[0] + bare
        return text.rstrip(" ,;，；、。.") + ("。" if is_chinese(item.text) else ".")

    def _forgotten(
        self,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        found: np.ndarray,
    ) -> list[Change]:
        wish = found[:, [self._names.index("retract"), self._names.index("end")]].sum(1)
        closing = found[:, self._closing].sum(1)
        if recent and _ALL_SAID.search(heard.own):
            return [self._without(heard, one, whole=True) for one in items if one.id in recent]
        targets = [n for n in range(len(items)) if max(wish[n], closing[n]) >= FORGET_ABOVE]
        if targets and self._means_what_was_not_kept(heard, [items[n] for n in targets]):
            return []
        changes = [self._without(heard, items[n]) for n in targets]
        if changes:
            return changes
        rules = forget_chinese if is_chinese(heard.own) else forget_english
        topic = rules.request_to_forget(heard.own)
        if topic is not None:
            fact = replace(_fact_of(heard), text=topic[0], retracts=True, forget=True)
            decision = self._rules.decide(fact, [RelatedItem(item, 0.0) for item in items])
            if decision.op.kind is not OpKind.NONE:
                return [Change(decision, fact, hide=True)]
        if recent and (_BARE_REQUEST.search(heard.own) or len(heard.own) < 25):
            return [self._without(heard, item) for item in items if item.id in recent]
        best = int(wish.argmax())
        if wish[best] >= FORGET_ABOVE / 2 and float(found[best, 0]) < 0.5:
            return [self._without(heard, items[best])]
        return []

    def _means_what_was_not_kept(self, heard: Heard, items: Sequence[MemoryItem]) -> bool:
        """Whether the request names a word of an earlier message that none of the items has.

        "My PIN is 4711." is never kept, so "Forget my PIN." is about no item.
        """
        own = _stems(heard.own)
        told = {stem for who, text in heard.before if who == "user" for stem in _stems(text)}
        return bool(own & told) and not any(own & _stems(item.text) for item in items)

    def _without(self, heard: Heard, item: MemoryItem, *, whole: bool = False) -> Change:
        if not whole and (text := self._meant(heard, item)) is not None:
            return self._update(item, text, heard, "forget", 1.0)
        decision = Decision(MemoryOp.delete(item.id), self._why("forget", item))
        return Change(decision, _fact_of(heard), hide=True)

    def _update(
        self, item: MemoryItem, text: str, heard: Heard, relation: str, confidence: float
    ) -> Change:
        decision = Decision(MemoryOp.update(item.id, text), self._why(relation, item), confidence)
        return Change(decision, _fact_of(heard), hide=True)

    def _new(self, fact: Fact, items: Sequence[MemoryItem], link: str | None) -> Change:
        for item in items:
            if same_text(item.text, fact.text):
                return Change(Decision(MemoryOp.none(item.id), self._why("same", item)), fact)
        reason = _REASONS["beside" if link else "new"][is_chinese(fact.text)]
        return Change(Decision(MemoryOp.add(fact.text), reason), fact, may_change=link)

    @staticmethod
    def _why(relation: str, item: MemoryItem) -> str:
        chinese = is_chinese(item.text)
        return f"{_REASONS[relation][chinese]}{'：' if chinese else ': '}{item.text}"


def _comparable(old: str, new: str) -> bool:
    """Whether both name a value of one type: two names or numbers, or two other words.

    "in Boston" and "in a small apartment" are not, nor are 律师 and 最累的.
    """
    ours, theirs = parse_statement(new), parse_statement(old)
    if ours is None or theirs is None or not ours.same_subject(theirs):
        return False
    if ours.same_value(theirs):
        return True
    if is_chinese(new):
        return not _JUDGES.search(ours.value)
    return bool(_NAMED.search(ours.value)) == bool(_NAMED.search(theirs.value))


_ASIDE: Final = re.compile(r",? (?:after all|these days|nowadays|at the moment)(?=[.!]*$)", re.I)
_NAMED: Final = re.compile(r"[A-Z]|\d")
_JUDGES: Final = re.compile(r"[最很太真好挺更超]|有点|非常|的$|得")
_FUNCTION_CHARACTERS: Final = frozenset("的了是我你他她它在有和就都给这那个条不也很说别用户")


def _stems(text: str) -> frozenset[str]:
    """The beginnings of content words; in Chinese characters that carry content."""
    chinese = re.findall(r"[\u4e00-\u9fff]+", text)
    latin = {term[:5] for term in wording(text).terms if len(term) > 2 and term.isascii()}
    return frozenset(latin | (set("".join(chinese)) - _FUNCTION_CHARACTERS))


# A part that speaks of what is taken out says nothing without it.
_LEANS: Final = re.compile(
    r"\b(?:it|its|it's|he|she|her|him|they|them|that|this)\b|[它她他这那]", re.I
)
_JOINT: Final = re.compile(r"\s*(?:[,;，；、](?:\s*and\b)?|\band\b|(?<= )[&+](?= )|。|\. )\s*")
_SUBJECT: Final = re.compile(
    r"User said: (?:[\w ]+: )?|User(?:'s)? (?:\w+s )?|用户说：|用户(?:的)?[有是在]?"
)


def _parts(text: str) -> list[tuple[str, str]]:
    """The parts of a statement that is a list, each with what joins it to the next."""
    parts, start = [], 0
    for found in _JOINT.finditer(text.rstrip(" .。")):
        parts.append((text[start : found.start()], found[0]))
        start = found.end()
    parts.append((text[start:].rstrip(" .。"), ""))
    return parts if all(len(part) > 1 for part, _ in parts) else [(text, "")]


def _fact_of(heard: Heard) -> Fact:
    """The message as a fact that only says where and when."""
    turn = heard.turn
    return Fact(turn.text, (turn.id,), valid_from=turn.time, told_at=turn.time, forget=heard.forget)


def _turn_of(fact: Fact) -> RawTurn:
    return RawTurn(fact.sources[0] if fact.sources else "", "user", fact.text, fact.told_at, 0)
