"""Written dialogues as memories of items: what the reader makes of them, and what is asked.

A memory in use holds many sentences of talk beside the few that a plain question ("How old is the
user?") asks for. So a few dialogues about unlike matters are told to one memory, beside sittings of
a conversation that say nothing of them. Items are worded as the default reader words them: of a
dialogue what its writer quotes, of the conversation every sentence that a fixed draw keeps. What a
turn changes is changed as the default manager words it (`memory/manager/past.py`).

    memory = sittings and dialogues in a drawn order      question -> the items of its facts

A memory in use does not notice every change. To teach which of two values is asked for
(`memory/search/ranker/newer.py`), half of the dialogues are told to other memories with the old
values `left_open`: nothing that ends or replaces a fact is done, except that what was to be
forgotten is. There most dialogues are cut in two, the second part told later.

Invariants: a function of the files and the seed, so relation weights may change without changing
what is trained here; no dialogue answers the question of another one of its memory.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from memograd.data import Conversation
from memograd.data.record_files import json_lines
from memograd.errors import BadInput
from memograd.memory.embedders import Embedder
from memograd.memory.language import is_chinese
from memograd.memory.manager.past import ended, instead
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations.weights import CLOSING
from memograd.tasks.relations.rows import ROLES, part_of
from memograd.tasks.relations.wording import DAY, DialogueReader, reader_keeping
from memograd.tasks.retrieval.material import Asking, MemoryMaterial

MOST: Final = 150  # dialogues of an author batch
TOGETHER: Final = 6  # dialogues that one memory hears
SITTINGS: Final = 4  # of a conversation, in between
ALIKE: Final = 0.9  # cosine of two questions that may have one answer
STRANGERS: Final = 2  # questions of other memories
CUT: Final = 0.7  # share of the dialogues that are told in two parts
KEPT: Final = {"user": 0.6, "assistant": 0.25}  # share of the sentences of a conversation
ANSWERS: Final = {
    False: ("Noted.", "Thanks for telling me.", "I see.", "Good to know.", "Got it."),
    True: ("好的，记住了。", "明白了。", "谢谢告诉我。", "收到。", "知道了。"),
}
_SCOPE: Final = Scope(user_id="retrieval")


@dataclass(frozen=True)
class Dialogue:
    """turns, and the items that are left of them; asked: questions with the ids of items."""

    name: str
    chinese: bool
    turns: tuple[RawTurn, ...]
    items: tuple[MemoryItem, ...]
    asked: tuple[tuple[str, frozenset[str]], ...]


def read_dialogues(path: Path, *, left_open: bool = False) -> list[Dialogue]:
    """The dialogues of an author batch. Raises BadInput where a line is not one.

    left_open: half of them leave old values as they are.
    """
    found = []
    for number, case in json_lines(path, "dialogues"):
        try:
            name = f"{path.stem}:{number}"
            found.append(_dialogue(case, name, left_open=left_open and _draw_of(name) < 0.5))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise BadInput(
                f"Line {number} of {path} is not a dialogue ({error!r}): see corpus/README.md, and"
                " check the file with corpus/check.py."
            ) from error
    return found


def _draw_of(text: str) -> float:
    """A number from 0 to below 1 that is drawn by the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def _dialogue(case: dict[str, Any], name: str, *, left_open: bool) -> Dialogue:
    reader, turns = DialogueReader(), []
    held: dict[str, MemoryItem] = {}
    for number, turn in enumerate(case["t"]):
        role, text = ROLES[turn[0]], turn[1]
        at = turn[4] if len(turn) > 4 else None
        time = datetime.fromisoformat(at or DAY)
        said = RawTurn(f"{name}:{number}", role, text, time, 0, role=role)
        turns.append(said)
        facts = part_of(turn, 2)
        worded = reader.worded(role, text, at, [quote for _, quote, _ in facts])
        lapsed = ""
        for fact, relation in part_of(turn, 3):
            if (old := held.get(fact)) is None or (left_open and relation != "retract"):
                continue
            if relation == "end":
                held[fact] = replace(old, text=ended(old.text, time.date()))
            elif relation in CLOSING:
                del held[fact]
                lapsed = old.text if relation == "replace" else lapsed
        for (fact, _, _), wording in zip(facts, worded, strict=True):
            if lapsed and wording:
                wording = instead(wording, lapsed, time.date())
            if wording:
                held[fact] = _item(f"{name}:{number}:{wording}", wording, said)
    asked = []
    for question, names, *_ in case.get("q", ()):
        answers = frozenset(held[one].id for one in names if one in held)
        if answers or not names:
            asked.append((question, answers))
    items = tuple({item.id: item for item in held.values()}.values())
    return Dialogue(name, is_chinese(case["t"][0][1]), tuple(turns), items, tuple(asked))


def _item(name: str, text: str, said: RawTurn) -> MemoryItem:
    moment = (said.time or datetime.fromisoformat(DAY)).astimezone(UTC)
    return MemoryItem(
        id=hashlib.sha256(name.encode()).hexdigest()[:16],
        text=text,
        scope=_SCOPE,
        created_at=moment,
        updated_at=moment,
        sources=(said.id,),
        role=said.role,
    )


def _drawn(message: str, segments: Sequence[str], role: str) -> list[bool]:
    """A sentence is worth keeping by a draw of its own."""
    return [_draw_of(segment) < KEPT[role] for segment in segments]


def sittings_of(conversation: Conversation) -> list[Dialogue]:
    """The sittings of a conversation, which ask nothing; who speaks first is the user."""
    reader = reader_keeping(_drawn)
    user, by_session = conversation.turns[0].speaker, dict[int, list[RawTurn]]()
    for turn in conversation.turns:
        role = "user" if turn.speaker == user else "assistant"
        if turn.text.strip():
            said = replace(turn, id=f"{conversation.id}:{turn.id}", speaker=role, role=role)
            by_session.setdefault(turn.session, []).append(said)
    found = []
    for session, turns in by_session.items():
        heard = [fact for one in reader.hear(turns, ()) for fact in one.facts]
        said_by = {turn.id: turn for turn in turns}
        items = tuple(
            _item(f"{conversation.id}:{session}:{n}", fact.text, said_by[fact.sources[-1]])
            for n, fact in enumerate(heard)
        )
        name = f"{conversation.id}:{session}"
        found.append(Dialogue(name, is_chinese(turns[0].text), tuple(turns), items, ()))
    return found


def memories_of_dialogues(
    batches: Sequence[Sequence[Dialogue]],
    sittings: Sequence[Dialogue],
    embedder: Embedder,
    *,
    seed: int = 0,
    cut: bool = False,
) -> list[MemoryMaterial]:
    """Memories of `TOGETHER` dialogues and `SITTINGS` sittings that follow each other.

    In every other one the dialogues are sittings of their own, else they are parts of the others.
    cut: `CUT` of the dialogues are told in two parts, the second later than the first.
    Of every batch at most `MOST` dialogues are told, so that no author outweighs the others.
    """
    memories = []
    dialogues: list[Dialogue] = []
    for number, batch in enumerate(batches):
        asked = [one for one in batch if one.asked]
        dialogues += random.Random(f"{seed} {number}").sample(asked, min(MOST, len(asked)))
    for chinese in (False, True):
        own = [one for one in dialogues if one.chinese == chinese]
        beside = [one for one in sittings if one.chinese == chinese]
        if not own:
            continue
        draw = random.Random(f"{seed} {chinese}")
        draw.shuffle(own)
        questions = [[question for question, _ in one.asked] for one in own]
        flat = embedder.embed_queries([one for some in questions for one in some])
        vectors = np.split(flat, np.cumsum([len(some) for some in questions])[:-1])
        for number, group in enumerate(_groups(vectors)):
            alone = number % 2 == 0 or not beside
            start = draw.randrange(max(1, len(beside) - SITTINGS + 1))
            talk = beside[start : start + SITTINGS]
            told: list[list[Dialogue]] = [[one] for one in talk] or [[]]
            if cut:
                told = _told_in_parts([own[at] for at in group], talk, draw, alone=alone)
            for at in [] if cut else group:
                if alone:
                    told.insert(draw.randrange(len(told) + 1), [own[at]])
                else:
                    draw.choice([some for some in told if some[0] in talk]).append(own[at])
            heard = np.concatenate([vectors[at] for at in group])
            others = draw.sample(range(len(own)), min(len(own), 8 * STRANGERS))
            strange = [
                question
                for at in others
                for question, vector in zip(questions[at], vectors[at], strict=True)
                if float((heard @ vector).max()) < ALIKE
            ][:STRANGERS]
            name = f"dialogues, {'Chinese' if chinese else 'English'}"
            name += ", alone" if alone else ", in talk"
            woven = [_woven(parts, draw) for parts in told if parts]
            memories.append(_memory(f"{name}, {number}", name, woven, strange))
    return memories


def _groups(vectors: Sequence[np.ndarray]) -> Iterator[list[int]]:
    """Numbers of dialogues, all of whose questions are unlike those of the others in the group."""
    left = list(range(len(vectors)))
    while left:
        group: list[int] = []
        for at in left:
            if all(float((vectors[at] @ vectors[other].T).max()) < ALIKE for other in group):
                group.append(at)
            if len(group) == TOGETHER:
                break
        left = [at for at in left if at not in group]
        yield group


def _told_in_parts(
    dialogues: Sequence[Dialogue], talk: Sequence[Dialogue], draw: random.Random, *, alone: bool
) -> list[list[Dialogue]]:
    """What each sitting holds: parts of dialogues by themselves (alone), else within the talk."""
    told = [(float(place), [one]) for place, one in enumerate(talk)]
    within = [parts for _, parts in told]
    for dialogue in dialogues:
        parts = _parts_of(dialogue, draw)
        if alone:
            places = sorted(draw.uniform(-0.5, len(talk) - 0.5) for _ in parts)
            told += [(place, [part]) for place, part in zip(places, parts, strict=True)]
            continue
        sittings = sorted(draw.randrange(len(within)) for _ in parts)
        if len(set(sittings)) < len(parts):  # two parts of one sitting would be told in any order
            parts = [dialogue]
        for sitting, part in zip(sittings, parts, strict=False):
            within[sitting].append(part)
    return [parts for _, parts in sorted(told, key=lambda one: one[0])]


def _parts_of(dialogue: Dialogue, draw: random.Random) -> list[Dialogue]:
    """The dialogue, or two parts of it, cut before something that the user says."""
    cuts = [n for n, turn in enumerate(dialogue.turns) if n and turn.role == "user"]
    if not cuts or draw.random() >= CUT:
        return [dialogue]
    cut = draw.choice(cuts)
    told = {turn.id for turn in dialogue.turns[:cut]}
    first = tuple(item for item in dialogue.items if item.sources[-1] in told)
    rest = tuple(item for item in dialogue.items if item.sources[-1] not in told)
    return [
        replace(dialogue, turns=dialogue.turns[:cut], items=first, asked=()),
        replace(dialogue, turns=dialogue.turns[cut:], items=rest),
    ]


def _woven(parts: Sequence[Dialogue], draw: random.Random) -> Dialogue:
    """One sitting of a sitting and dialogues, each told whole before something that the user says.

    In a sitting of its own, or without an assistant that answers, a dialogue could be told from the
    talk around it by that alone.
    """
    turns, items = list(parts[0].turns), list(parts[0].items)
    for part in parts[1:]:
        places = [n for n, turn in enumerate(turns) if turn.role == "user"]
        place = draw.choice([*places, len(turns)])
        time = turns[0].time  # a pause would begin another sitting
        turns[place:place] = [replace(turn, time=time) for turn in _answered(part, draw)]
        items += part.items
    at = {turn.id: n for n, turn in enumerate(turns)}
    items.sort(key=lambda item: at[item.sources[-1]])
    asked = tuple(one for part in parts for one in part.asked)
    return replace(parts[0], turns=tuple(turns), items=tuple(items), asked=asked)


def _answered(part: Dialogue, draw: random.Random) -> list[RawTurn]:
    """The turns of a dialogue, with an assistant that answers whatever nobody answers there."""
    turns: list[RawTurn] = []
    for turn, after in zip(part.turns, [*part.turns[1:], None], strict=True):
        turns.append(turn)
        if turn.role == "user" and (after is None or after.role == "user"):
            text = draw.choice(ANSWERS[part.chinese])
            answer = replace(turn, id=f"{turn.id}:answer", speaker="assistant", text=text)
            turns.append(replace(answer, role="assistant"))
    return turns


def _memory(
    name: str, set_name: str, parts: Sequence[Dialogue], strange: Sequence[str]
) -> MemoryMaterial:
    conversations = tuple(
        tuple(replace(turn, session=session) for turn in part.turns)
        for session, part in enumerate(parts, 1)
    )
    asked = [
        Asking(question, items, "dialogue" if items else "unanswerable")
        for part in parts
        for question, items in part.asked
    ]
    asked += [Asking(question, frozenset(), "stranger") for question in strange]
    items = tuple(item for part in parts for item in part.items)
    return MemoryMaterial(name, set_name, "dialogues", conversations, tuple(asked), items)
