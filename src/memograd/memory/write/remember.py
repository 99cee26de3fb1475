"""From what was said to what is remembered: read facts, relate, decide, write.

    turns --reader--> facts --(related items)--> manager --> operations --> journal

Decisions are made on a fork of the owner's state, so that each sees what the ones before it did,
and everything is written in one transaction. If another process changed one of the items meanwhile,
the decisions are made again on what it left.

Vectors are computed before the answer where a decision compares them, and behind it otherwise: what
an assistant says changes no item, so its facts are only looked up by their words; the first message
of somebody has nothing to be compared with; and of many a message a manager sees by the words of
all items that it only adds.

Invariants: the journal gets all events of one call or none; folding these events gives the items
that the operations meant; what is to be seen in a picture is remembered as such and changes nothing
else; no decision compares vectors that are not there yet.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import Final

from memograd.errors import MemogradError
from memograd.memory.analysis import analyse
from memograd.memory.journal import AlreadyKnown, Conflict
from memograd.memory.language import is_chinese
from memograd.memory.manager import Change, ForeseeingManager, MemoryManager, MessageManager
from memograd.memory.manager.trained.manager import settled
from memograd.memory.reader import Fact, Heard, MemReader, MessageReader
from memograd.memory.records.events import Event, EventKind, NewEvent, said_again
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.operations import OpKind, reason
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import NOT_PEOPLE, RawTurn
from memograd.memory.search import Query, retrieve
from memograd.memory.search.related import RELATED_ITEMS, find_related
from memograd.memory.search.retriever import asked_once
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore
from memograd.memory.statements import wording
from memograd.memory.write.changes import (
    Filing,
    Labels,
    Made,
    added,
    carry_out,
    declined,
    heard,
)
from memograd.memory.write.told import RECENT_ITEMS, ToldItems, told_again

ATTEMPTS: Final = 100
BEFORE_TURNS: Final = 3
SPOKEN_OF: Final = 5
"""How many messages before a call are looked at for whom "she" means."""
MOST_ITEMS: Final = 16  # that one message of several facts is compared with
FORGET_ITEMS: Final = 24  # that a request to forget is compared with: such requests are rare
MOST_FORESEEN: Final = 100  # items: to go through more of them takes as long as to look for some
NAMED_BY: Final = 2  # words of what an assistant said, in a message that may change it


def learn_verbatim(
    store: MemoryStore,
    turns: Sequence[RawTurn],
    scope: Scope,
    labels: Labels,
    *,
    categorise: Callable[[str], tuple[str, ...]],
    beside: Sequence[NewEvent] = (),
) -> list[Event]:
    """Remember every turn word for word, without reading or deciding; returns the operations.

    beside: events that are written with them.
    """
    events = [*beside, *verbatim_events(turns, scope, labels, store.now(), categorise)]
    return operations(store.write(scope.owner, events))


def verbatim_events(
    turns: Sequence[RawTurn],
    scope: Scope,
    labels: Labels,
    now: datetime,
    categorise: Callable[[str], tuple[str, ...]],
) -> list[NewEvent]:
    """Every turn and an item that says it; each learnt a microsecond after the one before it."""
    turns = _labelled(turns, labels)
    filing = Filing(scope, labels, categorise, {turn.id: turn for turn in turns})
    events: list[NewEvent] = []
    for number, turn in enumerate(turns):
        events.append(heard(turn, scope))
        text = turn.text if turn.text.strip() else shared_picture(turn)
        item = filing.item(
            text,
            (turn.id,),
            Kind.SEMANTIC,
            now + timedelta(microseconds=number),
            categories=labels.categories or categorise(text),
            valid_from=turn.time,
        )
        events.append(added(item, actor="user", reason=reason("verbatim", text)))
        if turn.text.strip():
            events += _of_pictures([turn], filing, item.created_at)
    return events


def learn(
    store: MemoryStore,
    reader: MemReader,
    manager: MemoryManager,
    turns: Sequence[RawTurn],
    scope: Scope,
    labels: Labels,
    *,
    categorise: Callable[[str], tuple[str, ...]],
    beside: Sequence[NewEvent] = (),
) -> list[Event]:
    """Let the reader find facts and the manager decide on each; returns the operations.

    beside: events that are written before them, in the same transaction. The turns that told of
    what somebody asked to forget, and those that asked, are searched no more.
    """
    manager = settled(manager)
    turns = _labelled(turns, labels)
    filing = Filing(scope, labels, categorise, {turn.id: turn for turn in turns})
    heard_events = [*(heard(turn, scope) for turn in turns), *beside]
    heard_events += _of_pictures(turns, filing, store.now())
    decide = _deciding(store, reader, manager, turns, filing)
    with store.writing(scope.owner):
        for attempt in range(ATTEMPTS):
            work = store.states.current(scope.owner, turn_vectors=False)
            events = [*heard_events, *decide(work)]
            try:
                # A decision rests on all that is remembered: what somebody else wrote meanwhile
                # may be the very item that this one changes.
                return operations(store.write(scope.owner, events, expect_last=work.seq))
            except AlreadyKnown:
                raise  # the same call was made elsewhere
            except Conflict:
                store.step_aside(attempt)  # another writer was faster: decide again
    raise MemogradError(
        f"The memory of {scope.owner} was changed by others {ATTEMPTS} times while this call"
        " decided what to do: nothing was written, try again."
    )


Decide = Callable[[MemoryState], list[NewEvent]]


def _deciding(
    store: MemoryStore,
    reader: MemReader,
    manager: MemoryManager,
    turns: Sequence[RawTurn],
    filing: Filing,
) -> Decide:
    """What becomes of the turns; they are read once, and decided on as often as needed.

    A reader and a manager that both understand messages do so message by message. Otherwise each
    fact is a message of its own, and the manager is asked for one operation.

    The turns behind what a message changed or took back are searched no more, unless something
    else that still holds came from them.
    """
    scope, owner = filing.scope, filing.scope.owner
    state = store.states.current(owner, turn_vectors=False)
    hidden = state.expired_turns(store.now())
    spoken = [turn for turn in state.last_turns(SPOKEN_OF) if turn.id not in hidden]
    before = spoken[-BEFORE_TURNS:]
    whole = manager if isinstance(manager, MessageManager) else None
    if whole is not None and isinstance(reader, MessageReader):
        messages = reader.hear(turns, spoken)
    else:
        whole = None
        messages = [
            Heard(_turn_of(fact, turns), facts=(fact,), forget=fact.forget)
            for fact in reader.read(turns)
        ]
    queries = _Queries(store, owner, messages, by_message=whole is not None)

    def decide(work: MemoryState) -> list[NewEvent]:
        told = ToldItems(work, turns, before)
        events: list[NewEvent] = []
        for number, message in enumerate(messages):
            compared_later = number < queries.last
            eligible = filing.may_speak_of(store.now(), forget=message.forget)
            if whole is not None:
                if not message.forget:
                    eligible = _may_change(message.turn, eligible)
                items = (
                    []
                    if _only_adds(whole, message, work, eligible)
                    else _items_for(work, message, eligible, queries, told)
                )
                changes = whole.decide_heard(message, items, told.just_before(message.turn))
            else:
                [fact] = message.facts
                query = queries.of(fact.text)
                hits = find_related(work.items, query, eligible=eligible)
                items = [hit.record for hit in hits]
                decision = manager.decide(work, fact, query, hits)
                changes = [Change(decision, fact, hide=fact.forget)]
            # A manager may find a request to forget where the reader only saw that it may be one.
            asked = message.forget or any(one.hide and one.fact.forget for one in changes)
            if message.everything:
                events.append(_asked_for_everything(message, scope, manager.actor))
            if compared_later and changes:
                queries.ready()
            for change in changes:
                made = carry_out(
                    change.decision,
                    change.fact,
                    items,
                    manager.actor,
                    filing.linked(change.may_change),
                    store.now(),
                )
                made.apply(work, store, compared_later=compared_later)
                events += made.events
                told.note(made, hide=change.hide, request=asked)
            if message.secret or message.everything or asked:
                sources = [source for fact in message.facts for source in fact.sources]
                for turn_id in (message.turn.id, *sources):
                    told.hide(turn_id)
            if whole is not None:
                events += again(message.turn, work, told, events)
        for turn in turns if whole is None else ():
            events += again(turn, work, told, events)
        return events + told.forgets(scope, manager.actor)

    def again(
        turn: RawTurn, work: MemoryState, told: ToldItems, events: Sequence[NewEvent]
    ) -> list[NewEvent]:
        """That a turn says again what neither the reader nor the manager found that it says."""
        if told.hides(turn.id):
            return []
        eligible = filing.may_speak_of(store.now(), forget=True)
        found = []
        for item, sentence in told_again(turn, work, eligible, _kept_of(turn, events)):
            event = declined(
                sentence,
                scope,
                sources=[turn.id],
                item_id=item.id,
                actor=manager.actor,
                reason=reason("same", item.text, quoted=True),
            )
            made = Made(event)
            made.apply(work, store, compared_later=False)  # it brings no item
            told.note(made, hide=False, request=False)
            found.append(event)
        return found

    return decide


def _only_adds(
    manager: MessageManager,
    heard: Heard,
    work: MemoryState,
    eligible: Callable[[MemoryItem], bool],
) -> bool:
    """Whether it is seen beforehand that a message changes nothing, whatever lies near it."""
    if not isinstance(manager, ForeseeingManager) or len(work.items) > MOST_FORESEEN:
        return False
    return manager.only_adds(heard, (item for item in work.items if eligible(item)))


def _turn_of(fact: Fact, turns: Sequence[RawTurn]) -> RawTurn:
    """The last turn of this call that a fact came from; the last of all where it names none."""
    return next((turn for turn in reversed(turns) if turn.id in fact.sources), turns[-1])


def _kept_of(turn: RawTurn, events: Sequence[NewEvent]) -> list[str]:
    """The texts that items got from a turn, and its facts that they said already, by the events."""
    return [
        event.after["text"]
        for event in events
        if event.after is not None
        and turn.id in event.after.get("sources", ())
        and (event.kind in (EventKind.ADD, EventKind.UPDATE) or said_again(event) is not None)
    ]


def _may_change(
    turn: RawTurn, eligible: Callable[[MemoryItem], bool]
) -> Callable[[MemoryItem], bool]:
    """Of those, the items that what was said may change.

    That an assistant said something stays true whatever a person says, unless it is named: "I
    cancelled the table at Sora". And where several people talk, each speaks for himself: "I sold
    mine" ends nothing that a friend said of her own car.
    """
    if turn.said_as != "user":
        return eligible
    own, anybody, said = (None, turn.speaker), turn.speaker == turn.role, wording(turn.text).terms

    def may_change(item: MemoryItem) -> bool:
        if not eligible(item):
            return False
        if item.role == "assistant":
            return len(wording(item.text).terms & said) >= NAMED_BY
        return anybody or item.actor_id in own

    return may_change


class _Queries:
    """What related items are looked for with, each with its vector: all are computed at once, when
    the first of them is needed.

    last: the number of the last message that is compared by meaning; what comes of it and of those
    behind it needs no vector before the answer.
    """

    def __init__(
        self, store: MemoryStore, owner: str, messages: Sequence[Heard], *, by_message: bool
    ) -> None:
        self._store, self._owner = store, owner
        compared = [n for n, one in enumerate(messages) if not by_message or _is_compared(one)]
        self.last = compared[-1] if compared else -1
        said = [_texts(one, whole=by_message) for one in messages[: self.last + 1]]
        self._texts = list(dict.fromkeys(text for texts in said for text in texts))
        self._derived: dict[str, Query] | None = None

    def ready(self) -> dict[str, Query]:
        """All of them."""
        if self._derived is None:
            found = self._store.texts.derive(self._owner, self._texts)
            self._derived = {
                text: Query(text, *one) for text, one in zip(self._texts, found, strict=True)
            }
        return self._derived

    def of(self, text: str) -> Query:
        """One of them."""
        return self.ready()[text]


def _is_compared(heard: Heard) -> bool:
    """Whether it may change an item: what an assistant says changes none."""
    return heard.turn.said_as == "user"


def _texts(heard: Heard, *, whole: bool) -> list[str]:
    """What of a message is compared with items. whole: also all of it, where it may change some."""
    said = [heard.turn.index_text()] if whole and _is_compared(heard) else []
    return said + [fact.text for fact in heard.facts]


def _items_for(
    work: MemoryState,
    heard: Heard,
    eligible: Callable[[MemoryItem], bool],
    queries: _Queries,
    told: ToldItems,
) -> list[MemoryItem]:
    """The living items that a message may speak of: what was just told, then the nearest ones.

    Of what an assistant says one only asks whether an item says it already, in the same words.
    """
    recent = told.just_before(heard.turn)
    # A request names a topic in words of its own, and must not fail for want of looking.
    most = FORGET_ITEMS if heard.forget else RELATED_ITEMS
    eligible = asked_once(eligible)  # each text of the message asks about the same items
    newest = work.items.last(RECENT_ITEMS, eligible)
    if not newest:
        return []
    found = {item.id: item for item in newest if item.id in recent}
    if _is_compared(heard):
        near = partial(retrieve, work.items, top_k=most, eligible=eligible)
        texts = _texts(heard, whole=True)
        rankings = [[hit.record for hit in near(queries.of(text))] for text in texts]
    else:
        by_words = partial(work.items.lexical, k=RELATED_ITEMS, eligible=eligible)
        rankings = [[hit.record for hit in by_words(analyse(one.text))] for one in heard.facts]
    for row in zip_longest(*rankings):
        found |= {item.id: item for item in row if item is not None}
    return list(found.values())[: MOST_ITEMS if len(heard.facts) > 1 and not heard.forget else most]


def _asked_for_everything(heard: Heard, scope: Scope, actor: str) -> NewEvent:
    """A request that only `delete_all` fulfils, noted so that the caller can ask back."""
    after = {
        "text": heard.turn.text,
        "sources": [heard.turn.id],
        "item_id": None,
        "pending": "delete_all",
    }
    why = reason("pending", heard.turn.text)
    return NewEvent(EventKind.NONE, scope, str(uuid.uuid4()), after=after, actor=actor, reason=why)


def _labelled(turns: Sequence[RawTurn], labels: Labels) -> Sequence[RawTurn]:
    """The turns with the metadata of the call, so that a filter by it finds them too."""
    return [replace(turn, metadata=labels.metadata) for turn in turns] if labels.metadata else turns


def _of_pictures(turns: Sequence[RawTurn], filing: Filing, now: datetime) -> Iterator[NewEvent]:
    """An item for what a vision model saw; it is added beside what is known, and relates to none.

    A picture may show any text, so what it shows is never told as the user's own words.
    """
    for turn in turns:
        if turn.images and turn.caption and turn.said_as not in NOT_PEOPLE:
            item = filing.item(
                shared_picture(turn),
                (turn.id,),
                Kind.EPISODIC,
                now,
                categories=filing.labels.categories or filing.categorise(turn.caption),
                metadata={**filing.labels.metadata, "images": list(turn.images)},
                valid_from=turn.time,
            )
            yield added(item, actor="vision", reason=reason("picture", item.text))


def shared_picture(turn: RawTurn) -> str:
    """The statement that somebody shared a picture, with what is to be seen where that is known."""
    seen = turn.caption or ", ".join(one for one in turn.images if "://" in one)
    if is_chinese(turn.text or seen):
        who = {"user": "用户", "assistant": "助手"}.get(turn.speaker, turn.speaker)
        return f"{who}发来一张图片{f'：{seen}' if seen else ''}"
    who = turn.speaker[:1].upper() + turn.speaker[1:]
    return f"{who} shared a picture{f': {seen}' if seen else '.'}"


def operations(events: Sequence[Event]) -> list[Event]:
    """The events that say what became of an item or a fact."""
    return [event for event in events if event.kind.value in OpKind.__members__]
