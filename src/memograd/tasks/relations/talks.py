"""Talk of months as training text: what a memory that is in use holds beside the one fact meant.

Written dialogues say something of nearly every item, and their rows hold few others. In a memory
of months most messages change nothing, and each is read beside items that only share its words. So
the turns of long conversations (`corpus/conversations`) are read beside what their speaker told
before, all of which stays; and the rows of dialogues are filled with what such speakers told.

Invariant: a turn that answers a question about a change (kind `updates`) says nothing here, since
what it changes is not written down.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memograd.data import Conversation, load_any
from memograd.memory import RawTurn
from memograd.memory.analysis import analyse
from memograd.memory.language import is_chinese
from memograd.memory.reader import RuleReader

LOOKED_AT: Final = 150  # items among which the nearest ones are looked for
SAID_SHARE: Final = 0.4  # of the short turns, which stand word for word where rules read a fact too
SHORT: Final = 120  # characters
_SMOOTH: Final = 4  # words; else the shortest items would always be the nearest


@dataclass(frozen=True)
class Worded:
    """An item and its words."""

    text: str
    words: frozenset[str]


@dataclass(frozen=True)
class TalkTurn:
    """A turn that changes nothing. told: what its conversation told before, oldest first."""

    text: str
    before: tuple[tuple[str, str], ...]
    told: tuple[Worded, ...]


@dataclass(frozen=True)
class Talks:
    """turns: those to read. items: what was told, by whether it is Chinese."""

    turns: list[TalkTurn] = field(default_factory=list)
    items: dict[bool, list[Worded]] = field(default_factory=lambda: {False: [], True: []})


def read_talks(paths: Sequence[Path]) -> Talks:
    """The talk of these files, in any format of docs/data.md. Raises BadInput as `load_any`."""
    talks, rng = Talks(), random.Random(0)
    for path in paths:
        for conversation in load_any(path):
            _add(talks, conversation, rng)
    return talks


def _add(talks: Talks, conversation: Conversation, rng: random.Random) -> None:
    changing = {
        turn
        for question in conversation.questions
        if question.category == "updates"
        for turn in question.evidence
    }
    read: dict[str, list[str]] = {}
    for fact in RuleReader().read(conversation.turns):
        for source in fact.sources:
            read.setdefault(source, []).append(fact.text)
    told: list[Worded] = []
    for number, turn in enumerate(conversation.turns):
        if turn.said_as == "assistant" or not turn.text.strip():
            continue
        if told and turn.id not in changing:
            before = tuple(
                ("assistant" if one.said_as == "assistant" else "user", one.text)
                for one in conversation.turns[max(0, number - 3) : number]
            )
            talks.turns.append(TalkTurn(turn.text, before, tuple(told)))
        texts = read.get(turn.id)
        if not texts or (rng.random() < SAID_SHARE and len(turn.text) < SHORT):
            texts = [_said(turn)]
        told += [Worded(text, frozenset(analyse(text))) for text in texts]
    for item in told:
        talks.items[is_chinese(item.text)].append(item)


def _said(turn: RawTurn) -> str:
    """The turn as the memory's reader keeps what it cannot word."""
    name = turn.speaker[:1].upper() + turn.speaker[1:]
    if is_chinese(turn.text):
        return f"{'用户' if name == 'User' else name}说：{turn.text.rstrip('。')}。"
    return f"{name} said: {turn.text.rstrip('.')}."


def nearest(text: str, items: Sequence[Worded], count: int, rng: random.Random) -> list[str]:
    """Of some of the items, drawn at random, those that share most of their words with the text."""
    words = frozenset(analyse(text))
    drawn = rng.sample(items, min(LOOKED_AT, len(items)))
    drawn.sort(key=lambda item: -len(words & item.words) / (_SMOOTH + len(item.words)))
    return [item.text for item in drawn[:count]]
