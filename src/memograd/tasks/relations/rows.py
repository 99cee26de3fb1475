"""Dialogues and pairs become examples: a row of tokens with a relation for each item and a worth
for each segment of the message.

Every turn of a dialogue is one example in every pass. Its items are the facts of earlier turns that
still hold, in the words of the speaker or as a statement, with some facts of other dialogues
(unrelated) and now and then a fact of the same message (same). What came before is often left out
or taken from another dialogue, because in a memory most items are old.

Invariant: the examples of a pass are a function of the files, the settings and the number of the
pass.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memograd.data.record_files import json_lines
from memograd.errors import BadInput
from memograd.memory.analysis import analyse
from memograd.memory.language import is_chinese
from memograd.memory.relations.rows import ITEMS_A_ROW, RelationRow, RowBuilder, Span, Window
from memograd.memory.relations.weights import CLOSING, RELATIONS, WORTHS
from memograd.tasks.relations.settings import RelationsConfig
from memograd.tasks.relations.talks import Talks, TalkTurn, Worded, nearest
from memograd.tasks.relations.wording import DialogueReader, holds, spans_of

ROLES: Final = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}
GROUPS: Final = {
    "supersede": ("replace", "correct"),
    "end": ("end", "retract"),
    "keep": ("unrelated", "same", "detail", "comment", "beside"),
}
"""What a label of a pair may mean; the loss asks only that one of them is likely."""

CLOSES: Final = [RELATIONS.index(name) for name in CLOSING]
LEAVES: Final = [number for number in range(len(RELATIONS)) if number not in CLOSES]
FACT: Final = WORTHS.index("fact")
_NO_WISH: Final = (FACT, WORTHS.index("nothing"))
"""Nobody in a talk asks a memory to forget: "Keep going!" is no request."""
STAYS: Final = "stays"  # the relation of an item of which only that is known
_STAYS: Final = tuple(RELATIONS.index(name) for name in GROUPS["keep"])
OLD_KINDS: Final = frozenset(
    {"change", "comment", "addition", "ending", "other_person", "hypothetical_or_past", "life"}
)
"""Kinds of dialogues whose second message is understood without the first."""

# What an item counts in the loss.
_OWN, _FOREIGN, _SAME_MESSAGE, _PAIR, _TALK = 1.0, 0.5, 0.5, 0.7, 0.5
_STATEMENTS: Final = (
    0.6  # share of items that are statements, of those not as the reader words them
)
_ALONE: Final = 0.25  # share of messages that a memory met, read with one item
_SAME: Final = 0.12  # share of messages with a fact of their own among the items
SEGMENTS_A_ROW: Final = 24
TOKENS_A_BATCH: Final = 2_400  # with padding

_CLAUSE = re.compile(r"[^.!?;。!?;\n,,、:::…—]+[.!?;。!?;\n,,、:::…—]*\s*")
_SENTENCE = re.compile(r"[^.!?;。!?;\n]+[.!?;。!?;\n]*\s*")
_CHINESE_SPACE = re.compile(r"(?<=[\u4e00-\u9fff])\s+(?=[\u4e00-\u9fff])")


@dataclass(frozen=True)
class WrittenFact:
    """statement: as a stranger should read it. quote: the speaker's own words. item: what the
    memory's reader makes of them, empty where it keeps nothing."""

    statement: str
    quote: str
    item: str = ""


@dataclass(frozen=True)
class WrittenTurn:
    """One turn and what it does to the facts of earlier turns that still hold.

    before: (role, text), oldest first. relations: of each item, one of RELATIONS or STAYS. group:
    for a pair, the relations that its label may mean. met: its items are those that a memory
    compared it with: what was just told, then the nearest. A pair and a message that was met say
    nothing of worth.
    """

    kind: str
    language: str
    dialogue: str
    role: str
    text: str
    before: Sequence[tuple[str, str]]
    items: Sequence[WrittenFact]
    relations: Sequence[str]
    facts: Sequence[WrittenFact]
    group: tuple[str, ...] | None = None
    met: bool = False


@dataclass(frozen=True)
class Example:
    """relations: of each item of the row: the indices that are right and what it counts in the
    loss. worths: of each segment the indices that may be right."""

    row: RelationRow
    relations: list[tuple[tuple[int, ...], float]]
    worths: list[tuple[int, ...]]


def read_dialogues(path: Path) -> list[WrittenTurn]:
    """The turns of an author batch, `{language}-{author}.jsonl`.

    Raises BadInput where the file is missing or a line is not a dialogue.
    """
    turns = []
    for number, case in json_lines(path, "dialogues"):
        try:
            turns += list(turns_of(case, path.stem.partition("-")[0], f"{path.stem}:{number}"))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise BadInput(
                f"Line {number} of {path} is not a dialogue ({error!r}): see corpus/README.md, and"
                " check the file with corpus/check.py."
            ) from error
    return turns


def read_pairs(path: Path) -> list[WrittenTurn]:
    """Pairs of texts with a coarse label. Raises BadInput where a line is not one."""
    turns = []
    for number, pair in json_lines(path, "dialogues"):
        try:
            item, group = WrittenFact(pair["a"], pair["a"]), GROUPS[pair["label"]]
            text = pair["b"]
        except (KeyError, TypeError) as error:
            raise BadInput(
                f"Line {number} of {path} is not a pair ({error!r}): give a, b and label, which is"
                f" one of {', '.join(GROUPS)}."
            ) from error
        name = f"{path.stem}:{number}"
        turns.append(WrittenTurn("pair", "", name, "user", text, [], [item], [group[0]], [], group))
    return turns


def segments_of(text: str, *, clauses: bool) -> list[Span]:
    """The clauses, or the sentences, of a text, without the space around them."""
    spans = []
    for match in (_CLAUSE if clauses else _SENTENCE).finditer(text):
        start = match.start()
        cuts = [gap.span() for gap in _CHINESE_SPACE.finditer(text, *match.span())]
        for end, after in [*(cuts if clauses else []), (match.end(), match.end())]:
            part = text[start:end]
            if re.search(r"\w", part):
                begin = start + len(part) - len(part.lstrip())
                spans.append(Span(begin, begin + len(part.strip())))
            start = after
    return spans


def worths_of(said: WrittenTurn, segments: Sequence[Span]) -> list[int]:
    """Index into WORTHS of each segment: a fact where it and a quotation overlap by half."""
    quotes = spans_of([fact.quote for fact in said.facts], said.text)
    rest = WORTHS.index("forget" if "retract" in said.relations else "nothing")
    return [
        FACT if any(holds(segment, quote) for quote in quotes) else rest for segment in segments
    ]


class Examples:
    """Draws the examples of a pass."""

    def __init__(
        self,
        turns: Sequence[WrittenTurn],
        builder: RowBuilder,
        config: RelationsConfig,
        talks: Talks | None = None,
    ) -> None:
        self._turns, self._builder, self._config = turns, builder, config
        self._talks = talks or Talks()
        self._spoken = [said for said in turns if said.group is None and not said.met]
        self._facts = [(said.dialogue, fact) for said in self._spoken for fact in said.facts]
        if not self._facts:
            raise BadInput("There is no fact in the training data: name dialogues with data=FILES.")
        self._stated: dict[bool, list[Worded]] = {False: [], True: []}
        if self._talks.turns:
            for _, fact in self._facts:
                words = frozenset(analyse(fact.statement))
                self._stated[is_chinese(fact.statement)].append(Worded(fact.statement, words))

    def of_pass(self, number: int) -> list[Example]:
        """The turns of a pass, in the order of the files."""
        rng = random.Random(f"{self._config.seed}:{number}")
        examples = [
            self._example(said, rng)
            for said in self._turns
            if said.items or rng.random() < self._config.alone_share
        ]
        count = min(round(self._config.talk_share * len(examples)), len(self._talks.turns))
        return examples + [self._of_talk(one, rng) for one in rng.sample(self._talks.turns, count)]

    def batches(self, number: int) -> list[list[Example]]:
        """The examples of a pass in batches of like length, shuffled.

        Long rows stand in smaller batches: memory is that of TOKENS_A_BATCH tokens.
        """
        rng = random.Random(f"{self._config.seed}:{number}:order")
        examples, size = self.of_pass(number), self._config.batch
        rng.shuffle(examples)
        batches: list[list[Example]] = []
        for start in range(0, len(examples), 40 * size):
            chunk = examples[start : start + 40 * size]
            chunk.sort(key=lambda example: len(example.row.tokens))
            batch: list[Example] = []
            for example in chunk:
                full = (len(batch) + 1) * len(example.row.tokens) > TOKENS_A_BATCH
                if batch and (full or len(batch) == size):
                    batches.append(batch)
                    batch = []
                batch.append(example)
            batches.append(batch)
        rng.shuffle(batches)
        return batches

    def _example(self, said: WrittenTurn, rng: random.Random) -> Example:
        drawn = self._items(said, rng)
        rng.shuffle(drawn)
        spans: list[Span] = []
        if said.group is None and not said.met:
            spans = segments_of(said.text, clauses=rng.random() < 0.5)
        window = self._window(said, spans, rng)
        inside = window.segments[:SEGMENTS_A_ROW]
        row = self._builder.row(
            window.text,
            role=said.role,
            before=self.before(said, rng),
            items=[text for text, _, _ in drawn],
            segments=[
                Span(spans[n].start - window.start, spans[n].end - window.start) for n in inside
            ],
        )
        worths = worths_of(said, [spans[n] for n in inside])
        told = [(right, weight) for _, right, weight in drawn]
        return Example(row, told, [(worth,) for worth in worths])

    def _window(self, said: WrittenTurn, spans: Sequence[Span], rng: random.Random) -> Window:
        """The part of a long message that is read: one that tells most of its facts where it says
        something of items, else any. A memory reads all parts, and the nearest one counts."""
        windows = self._builder.windows(said.text, spans)
        if len(windows) == 1:
            return windows[0]
        if not said.items:
            return rng.choice(windows)
        quotes = spans_of([fact.quote for fact in said.facts], said.text)

        def tells(window: Window) -> int:
            end = window.start + len(window.text)
            return sum(window.start <= quote.start < end for quote in quotes)

        most = max(tells(window) for window in windows)
        return rng.choice([window for window in windows if tells(window) == most])

    def _of_talk(self, turn: TalkTurn, rng: random.Random) -> Example:
        """A turn beside the last that was told and what is nearest to it, all of which stays.

        Of a long one its beginning.
        """
        most = rng.randint(2, ITEMS_A_ROW)
        last = [item.text for item in turn.told[-2:]] if rng.random() < 0.6 else []
        items = list(dict.fromkeys([*last, *nearest(turn.text, turn.told, most, rng)]))[:most]
        rng.shuffle(items)
        before = turn.before[-rng.choice([1, 1, 2, 3]) :] if rng.random() < 0.6 else ()
        window = self._builder.windows(turn.text)[0]
        spans = segments_of(window.text, clauses=False)[:SEGMENTS_A_ROW]
        row = self._builder.row(
            window.text, role="user", before=before, items=items, segments=spans
        )
        return Example(row, [(_STAYS, _TALK) for _ in items], [_NO_WISH for _ in spans])

    def _crowd(self, said: WrittenTurn, items: Sequence[str], rng: random.Random) -> Iterator[str]:
        """What others told that shares words with the message, until the row is full or nearly."""
        language, count = is_chinese(said.text), rng.randint(3, ITEMS_A_ROW) - len(items)
        if not self._talks.turns or rng.random() >= self._config.crowded or count <= 0:
            return
        own = {topic_of(fact) for fact in [*said.facts, *said.items]}
        of_talks = rng.random() < 0.5
        drawn = self._talks.items[language] if of_talks else self._stated[language]
        for text in nearest(said.text, drawn, count + 3, rng):
            if count and text not in items and (of_talks or topic_of_text(text) not in own):
                count -= 1
                yield text

    def _items(
        self, said: WrittenTurn, rng: random.Random
    ) -> list[tuple[str, tuple[int, ...], float]]:
        """(text, right relations, weight)."""
        if said.group is not None:
            right = tuple(RELATIONS.index(name) for name in said.group)
            return [(said.items[0].statement, right, _PAIR)]
        if said.met:
            return self._met(said, rng)
        wording = ItemWording(rng.random() < self._config.items_as_read, rng)
        own = _merged([wording(fact) for fact in said.items], said.relations)
        touched = [pair for pair in own if pair[1] != "unrelated"]
        rest = [pair for pair in own if pair[1] == "unrelated"]
        absent = any(name in CLOSING for _, name in touched) and self._is_absent(rng)
        touched = [] if absent else touched
        rng.shuffle(rest)
        items: list[tuple[str, tuple[int, ...], float]] = [
            (
                text,
                (RELATIONS.index(name),),
                self._config.unrelated_weight if name == "unrelated" else _OWN,
            )
            for text, name in [*touched, *rest][: ITEMS_A_ROW - 2]
        ]
        most = rng.choice([0, 0, 0, 1, 2, 5] if own else [0, 0, 0, 1, 2])
        most = max(most, rng.randint(1, 3)) if absent else most
        for fact in self.foreign(said, most, rng):
            items.append((wording(fact), (RELATIONS.index("unrelated"),), _FOREIGN))
        if said.facts and rng.random() < (_SAME if own else _SAME / 2):
            fact = rng.choice(said.facts)
            items.append((wording(fact), (RELATIONS.index("same"),), _SAME_MESSAGE))
        for text in self._crowd(said, [text for text, _, _ in items], rng):
            items.append((text, (RELATIONS.index("unrelated"),), _FOREIGN))
        return items[:ITEMS_A_ROW]

    def _met(
        self, said: WrittenTurn, rng: random.Random
    ) -> list[tuple[str, tuple[int, ...], float]]:
        """What the message touches, and of the others those that are nearest.

        A quarter of the messages are read with one item alone, as those are that stand out.
        """
        met = [(fact.item, name) for fact, name in zip(said.items, said.relations, strict=True)]
        met.sort(key=lambda pair: pair[1] == STAYS)
        beside = [pair for pair in met if pair[1] not in CLOSING]
        if len(beside) < len(met) and beside and self._is_absent(rng):
            met = beside
        most = 1 if rng.random() < _ALONE else rng.randint(3, ITEMS_A_ROW)
        if most == 1 and met[0][1] == STAYS:
            met = [rng.choice(met)]
        return [
            (text, _STAYS, self._config.unrelated_weight)
            if name == STAYS
            else (text, (RELATIONS.index(name),), _OWN)
            for text, name in met[:most]
        ]

    def _is_absent(self, rng: random.Random) -> bool:
        """Whether a message that closes something meets only what it does not speak of. Nothing is
        drawn where none shall, so other settings give the rows that they gave before."""
        return bool(self._config.absent) and rng.random() < self._config.absent

    def foreign(self, said: WrittenTurn, most: int, rng: random.Random) -> Iterator[WrittenFact]:
        """Facts of other dialogues, at most that many, to which the message is unrelated."""
        topics = {topic_of(fact) for fact in [*said.facts, *said.items]}
        for _ in range(most):
            dialogue, fact = rng.choice(self._facts)
            # "User lives in Leeds" is not unrelated to a message that tells where the user lives.
            if dialogue != said.dialogue and topic_of(fact) not in topics:
                yield fact

    def before(self, said: WrittenTurn, rng: random.Random) -> Sequence[tuple[str, str]]:
        """What the message is read with: what came before it, nothing, or a foreign turn."""
        real = said.before[-rng.choice([1, 1, 2, 3]) :]
        if said.group is not None or said.role != "user":
            return real
        # The first message of a dialogue gets foreign turns too: else "nothing before" would mean
        # "nothing to close", and a memory that is asked about an old item would close nothing.
        kept = self._config.before_kept if real else 0.0
        if said.kind not in OLD_KINDS and {"correct", "retract"} & set(said.relations):
            kept = max(kept, 0.8)  # "scratch that" can hardly be understood without it
        drawn = rng.random()
        if drawn < kept:
            return real
        if drawn < (1 + kept) / 2:
            return []
        foreign = rng.choice(self._spoken)
        return [*foreign.before[-1:], (foreign.role, foreign.text)]


@dataclass(frozen=True)
class ItemWording:
    """The words in which the items of a row stand; as_read: those of the memory's reader."""

    as_read: bool
    rng: random.Random

    def __call__(self, fact: WrittenFact) -> str:
        if self.as_read and fact.item:
            return fact.item
        return fact.statement if self.rng.random() < _STATEMENTS else fact.quote


def _merged(texts: Sequence[str], relations: Sequence[str]) -> list[tuple[str, str]]:
    """Items with their relations; two facts that the reader left in one sentence are one item.

    It is closed where one of them is: the memory then takes out the part that is meant.
    """
    found: dict[str, str] = {}
    for text, relation in zip(texts, relations, strict=True):
        known = found.get(text, "unrelated")
        if known == "unrelated" or (relation in CLOSING and known not in CLOSING):
            found[text] = relation
    return list(found.items())


def topic_of(fact: WrittenFact) -> str:
    """How the statement of a fact begins: the property, roughly."""
    return topic_of_text(fact.statement)


def topic_of_text(statement: str) -> str:
    """How a statement begins: the property, roughly."""
    words = statement.split()
    if len(words) > 2:
        return " ".join(words[:3])
    return statement[: 5 if statement[2:3] == "的" else 3]  # 用户的手机, 用户住


def turns_of(case: dict[str, Any], language: str, dialogue: str) -> Iterator[WrittenTurn]:
    """The turns of a dialogue as it stands in the file."""
    current: dict[str, WrittenFact] = {}
    before: list[tuple[str, str]] = []
    reader = DialogueReader()
    for turn in case["t"]:
        role, text = ROLES[turn[0]], turn[1]
        told = part_of(turn, 2)
        worded = reader.worded(
            role, text, turn[4] if len(turn) > 4 else None, [q for _, q, _ in told]
        )
        facts = {
            name: WrittenFact(statement, quote, item)
            for (name, quote, statement), item in zip(told, worded, strict=True)
        }
        acts = dict(part_of(turn, 3))
        for name, relation in acts.items():
            if relation not in RELATIONS:
                raise ValueError(f"the relation {relation!r} of {name} is unknown")
        yield WrittenTurn(
            case["k"],
            language,
            dialogue,
            role,
            text,
            before[-3:],
            list(current.values()),
            [acts.get(name, "unrelated") for name in current],
            list(facts.values()),
        )
        closed = {name for name, relation in acts.items() if relation in CLOSING}
        current = {name: fact for name, fact in current.items() if name not in closed} | facts
        before.append((role, text))


def part_of(turn: list[Any], place: int) -> list[Any]:
    """The part of a turn of the file at that place; the last ones may be left out."""
    return turn[place] if len(turn) > place else []
