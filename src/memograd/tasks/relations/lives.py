"""Written lives, told to a memory: what stands beside each message, and what of it the message
closes.

A dialogue of kind `life` is one person over weeks. Its turns are told to a memory whose reader is
the trained one, and everything that is written down stays, but for what the writer says is closed:
so each message meets the items that a memory would compare it with, in the reader's words, and the
writer's acts say which of them it closes. The model learns from these rows (`met_in_lives`), and
what weighs many items from other lives (`told_lives`).

Invariant: an item is closed where a fact whose quotation it came from is; what the manager would
have decided plays no part.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from memograd.data.record_files import json_lines
from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.manager.crowded import evidence, stand_out
from memograd.memory.manager.past import present
from memograd.memory.manager.protocol import Change
from memograd.memory.manager.relations import FEW, RelationManager
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.notes import is_doubted
from memograd.memory.records.operations import Decision, MemoryOp, OpKind, reason
from memograd.memory.relations import CLOSING, RelationModel, load_relation_model
from memograd.memory.relations.gate import Linear
from memograd.memory.relations.thresholds import changed
from memograd.tasks.relations.gate import separating
from memograd.tasks.relations.rows import (
    CLOSES,
    ROLES,
    STAYS,
    WrittenFact,
    WrittenTurn,
    part_of,
    read_dialogues,
)
from memograd.tasks.relations.wording import DAY, holds, spans_of

RIDGE: Final = 30.0  # of slopes of standardised evidence


@dataclass(frozen=True)
class Beside:
    """A message beside many items.

    evidence: `[n, EVIDENCE]` of those that stand out; closed: `[n]`, which of them it closes.
    closing: whether it closes any item at all. row: `[n]`, how surely by the row alone.
    """

    dialogue: str
    text: str
    items: Sequence[str]
    evidence: np.ndarray
    closed: np.ndarray
    closing: bool
    row: np.ndarray


def told_lives(model: RelationModel, path: Path) -> list[Beside]:
    """What all messages of the lives in an author batch meet.

    Raises BadInput where the file is missing.
    """
    watching = _Weighed(model)
    tell_all(path, watching)
    return watching.found


def met_in_lives(path: Path) -> list[WrittenTurn]:
    """Each message of the lives in an author batch that meets items, with these.

    The memory is the one that ships. Raises BadInput where the file is missing, and where no
    message of it meets an item.
    """
    meeting = _Met(load_relation_model())
    tell_all(path, meeting)
    if not meeting.found:
        raise BadInput(
            f"No dialogue of the kind 'life' in {path} has a message that meets an earlier fact:"
            " name other files with lives=FILES, or give these as data."
        )
    return meeting.found


def tell_all(
    path: Path, manager: _Knowing, told: Callable[[dict[str, Any]], bool] | None = None
) -> None:
    """Tells a memory with that manager dialogues of a file, each as another user: all lives, or
    those that are `told`.

    Raises BadInput where the file is missing, or a line is not a dialogue.
    """
    read_dialogues(path)  # which says what is wrong with a line, before any is told
    with (
        tempfile.TemporaryDirectory() as folder,
        # No gate is weighed here: the one that lies there may be of another kind of evidence.
        Memory.open(Path(folder), reader="trained", manager=manager, env_file=None) as memory,
    ):
        for number, case in json_lines(path, "dialogues"):
            if told(case) if told is not None else case["k"] == "life":
                name = f"{path.stem}:{number}"
                manager.hears(name, case)
                tell(memory, case, name)


def tell(memory: Memory, case: dict[str, Any], user: str) -> None:
    """Tells a memory a dialogue, each user's turn with the assistant's behind it."""
    calls: list[tuple[list[dict[str, str]], str]] = []
    for turn in case["t"]:
        said = {"role": ROLES[turn[0]], "content": turn[1]}
        if calls and ROLES[turn[0]] != "user":
            calls[-1][0].append(said)
        else:
            calls.append(([said], turn[4] if len(turn) > 4 and turn[4] else DAY))
    for messages, at in calls:
        memory.add(messages, user_id=user, timestamp=datetime.fromisoformat(at))


def fitted_crowded(found: Sequence[Beside]) -> Linear:
    """The function that weighs what is known of one of many items.

    Raises BadInput where no message closes an item.
    """
    known = [one for one in found if len(one.closed)]
    if not any(one.closed.any() for one in known):
        raise BadInput("No message of these lives closes an item, so nothing can be learnt.")
    vectors = np.concatenate([one.evidence for one in known])
    weighed = separating(vectors, np.concatenate([one.closed for one in known]), RIDGE)
    return replace(weighed, least=0.0)  # thresholds of the manager bound it


@dataclass
class JudgedLives:
    """What a memory did with lives.

    messages: told beside more than `FEW` items. closings: facts that a message replaces, ends or
    corrects and that some item holds; made: of these the ones whose item was changed; doubted:
    those whose item says that it is in doubt. hit: items that were changed, cut or deleted
    though the message touches nothing in them. meant: facts that a request asks to forget and that
    some item holds; gone: of these the ones whose item was changed or deleted. lost: items that a
    request touched and did not mean. unasked: items deleted where nobody asked.
    """

    lives: int = 0
    messages: int = 0
    closings: int = 0
    made: int = 0
    doubted: int = 0
    hit: int = 0
    meant: int = 0
    gone: int = 0
    lost: int = 0
    unasked: int = 0


def judged_lives(
    path: Path, model: RelationModel, thresholds: Mapping[str, float] | None = None
) -> JudgedLives:
    """What the memory of that model makes of the lives in an author batch.

    thresholds: some that take the place of the model's. Raises BadInput for one unknown, and where
    the file is missing.
    """
    judging = _Judging(model, thresholds or {})
    tell_all(path, judging)
    return judging.found


class _Knowing(RelationManager):
    """Knows which written facts stand behind the text of each item of a life."""

    def hears(self, dialogue: str, case: dict[str, Any]) -> None:
        """From now on this dialogue is told."""
        self._dialogue = dialogue
        self._turns = {turn[1]: turn for turn in case["t"]}
        self._facts: dict[str, set[str]] = {}

    def only_adds(self, heard: Heard, items: Iterable[MemoryItem]) -> bool:
        """Never surely: of every message it is noted what lies near it."""
        return False

    def _touched(self, turn: Sequence[Any], *, forget: bool) -> set[str]:
        """The facts that a turn closes, or those that it asks to forget."""
        acts = part_of(list(turn), 3)
        return {name for name, done in acts if done in CLOSING and (done == "retract") is forget}

    def _behind(self, item: MemoryItem) -> set[str]:
        return self._facts.get(item.text, set())

    def _learn(self, heard: Heard, turn: Sequence[Any]) -> None:
        told = part_of(list(turn), 2)
        spans = spans_of([written for _, written, _ in told], heard.turn.text)
        places = spans_of(heard.quotes, heard.turn.text)
        for fact, place in zip(heard.facts, places, strict=True):
            names = {
                name for (name, _, _), span in zip(told, spans, strict=True) if holds(span, place)
            }
            self._facts.setdefault(fact.text, set()).update(names)


class Closing(_Knowing):
    """Adds every fact, closes what the writer closes, and notes what each message met."""

    def decide_heard(
        self, heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str]
    ) -> list[Change]:
        """See `RelationManager.decide_heard`."""
        turn = self._turns.get(heard.turn.text)
        if turn is None or heard.everything:
            return []
        self._note(heard, turn, items, recent)
        touched = self._touched(turn, forget=False) | self._touched(turn, forget=True)
        gone = [item for item in items if self._behind(item) & touched]
        self._learn(heard, turn)
        return [_forgets(item, heard) for item in gone] + [_kept(fact) for fact in heard.facts]

    @abstractmethod
    def _note(
        self,
        heard: Heard,
        turn: Sequence[Any],
        items: Sequence[MemoryItem],
        recent: frozenset[str],
    ) -> None:
        """Before anything is closed; turn: as it stands in the file."""


class _Weighed(Closing):
    """Notes what is known of the items that stand out among many."""

    def __init__(self, model: RelationModel) -> None:
        super().__init__(model)
        self.found: list[Beside] = []

    def _note(
        self,
        heard: Heard,
        turn: Sequence[Any],
        items: Sequence[MemoryItem],
        recent: frozenset[str],
    ) -> None:
        asked = heard.forget or self._touched(turn, forget=True)
        if len(items) <= FEW or heard.turn.said_as != "user" or asked:
            return
        touched = self._touched(turn, forget=False)
        closed = [bool(self._behind(item) & touched) for item in items]
        texts = [present(item.text) for item in items]
        read = self._model.relate(heard.turn.text, heard.before, texts)
        closing = read[:, CLOSES].sum(1)
        places = stand_out(closing)
        self.found.append(
            Beside(
                self._dialogue,
                heard.turn.text,
                [items[n].text for n in places],
                evidence(self._model, heard, items, recent, read, places),
                np.array([closed[n] for n in places], bool),
                any(closed),
                closing[places],
            )
        )


class _Met(Closing):
    """Notes what the message does to each item, as the writer says."""

    def __init__(self, model: RelationModel) -> None:
        super().__init__(model)
        self.found: list[WrittenTurn] = []

    def _note(
        self,
        heard: Heard,
        turn: Sequence[Any],
        items: Sequence[MemoryItem],
        recent: frozenset[str],
    ) -> None:
        if not items or heard.turn.said_as != "user":
            return
        acts = dict(part_of(list(turn), 3))
        texts = [present(item.text) for item in items]
        self.found.append(
            WrittenTurn(
                "life",
                self._dialogue.partition("-")[0],
                self._dialogue,
                "user",
                heard.turn.text,
                heard.before,
                [WrittenFact(text, text, text) for text in texts],
                [_most([acts[name] for name in self._behind(i) if name in acts]) for i in items],
                [],
                met=True,
            )
        )


def _most(relations: Sequence[str]) -> str:
    """What a message does to an item that holds several facts: one closed closes it."""
    return min(relations, key=lambda name: name not in CLOSING, default=STAYS)


class _Judging(_Knowing):
    """Decides as it would, and counts what of it the writer says too."""

    def __init__(self, model: RelationModel, thresholds: Mapping[str, float]) -> None:
        super().__init__(model, thresholds=changed(model.about.thresholds, thresholds))
        self.found = JudgedLives()

    def hears(self, dialogue: str, case: dict[str, Any]) -> None:
        """See `_Knowing.hears`."""
        super().hears(dialogue, case)
        self.found.lives += 1

    def decide_heard(
        self, heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str]
    ) -> list[Change]:
        """See `RelationManager.decide_heard`."""
        changes = super().decide_heard(heard, items, recent)
        turn = self._turns.get(heard.turn.text)
        if turn is None or heard.turn.said_as != "user" or len(items) <= FEW:
            if turn is not None:
                self._learn(heard, turn)
            return changes
        touched, asked = (self._touched(turn, forget=forget) for forget in (False, True))
        ops = {c.decision.op.item_id: c.decision.op for c in changes if c.decision.op.item_id}
        found, held = self.found, set().union(*self._facts.values())
        found.messages += 1
        found.closings += len(touched & held)
        found.meant += len(asked & held)
        for item in items:
            op = ops.get(item.id)
            if op is None or op.kind is OpKind.NONE:
                continue
            names = self._behind(item)
            self._facts.pop(item.text, None)
            doubts = is_doubted(op.text or "") and not is_doubted(item.text)
            changed = not doubts and (op.text is None or present(item.text) != op.text)
            if op.text:
                gone = touched | asked if changed else set()
                self._facts.setdefault(op.text, set()).update(names - gone)
            if names & touched:
                found.made += changed * len(names & touched)
                found.doubted += doubts * len(names & touched)
            elif names & asked:
                found.gone += changed * len(names & asked)
            elif changed:
                found.lost += bool(asked)
                found.hit += not asked
                found.unasked += not asked and op.text is None
        self._learn(heard, turn)
        return changes


def _forgets(item: MemoryItem, heard: Heard) -> Change:
    decision = Decision(MemoryOp.delete(item.id), reason("retract", item.text, quoted=True))
    return Change(decision, heard.as_fact)


def _kept(fact: Fact) -> Change:
    return Change(Decision(MemoryOp.add(fact.text), reason("new", fact.text)), fact)
