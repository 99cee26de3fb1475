"""What is asked later, and what a decision about one message is worth for it.

A written dialogue ends with questions and names the facts that answer each. After every turn the
same questions can be asked of what a memory holds then:

    value(memory) = sum over questions of weight * answerability
                  - noise_cost * sentences kept without a fact - token_cost * tokens kept

    answerability = answered * (1 - misled_cost * misled)     where facts answer the question
                  = 1 - misled                                where nothing does

`answered` is the share in which the facts that answer it are held: one is enough where it alone has
what a right answer must contain. `misled` is the largest share in which something is held that the
question must not find: a fact that the answer took the place of, that ended, or that was taken
back; and, where nothing answers the question, a sentence without a fact (a password, a pasted
text). An item in doubt answers less than a sure one and misleads less.

A fact that holds and that no written question needs is asked for by itself, for `unasked`; so is
one that no longer holds and that no question would be misled by. Nothing else is counted: leaving,
writing, closing and doubting are judged by this one rule.

Before the facts that answer a question are told, those answer it that they will take the place of.

Invariant: pure; a question that nothing held can answer or mislead is worth the same after every
decision.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from memograd.data.record_files import json_lines
from memograd.errors import BadInput
from memograd.memory.relations.weights import CLOSING
from memograd.tasks.relations.rows import WrittenFact, WrittenTurn, part_of, turns_of
from memograd.tasks.relations.settings import LaterConfig


class Held(NamedTuple):
    """How a memory holds a fact. share: of its words, above 0. doubted: it may hold no longer."""

    share: float = 1.0
    doubted: bool = False


@dataclass(frozen=True)
class FactQuestion:
    """needed: the facts that answer it, none where nothing does. alone: those of them that are
    enough by themselves. misleading: the facts that it must not find. written: in the dialogue;
    else it asks for one fact by itself."""

    needed: frozenset[str]
    alone: frozenset[str]
    misleading: frozenset[str]
    weight: float = 1.0
    written: bool = True

    def answerability(
        self, held: Mapping[str, Held], later: LaterConfig, *, noise: bool = False
    ) -> float:
        """Between 0 and 1. noise: whether a sentence was kept that holds no fact."""
        answered, misled = self.answered(held, later), self.misled(held, later, noise=noise)
        return answered * (1 - later.misled_cost * misled) if self.needed else 1 - misled

    def answered(self, held: Mapping[str, Held], later: LaterConfig) -> float:
        """The share in which what answers it is held; 1 where nothing is needed."""

        def share(name: str) -> float:
            found = held.get(name)
            if found is None:
                return 0.0
            return found.share * (later.doubt_answers if found.doubted else 1.0)

        if not self.needed:
            return 1.0
        together = sum(map(share, self.needed)) / len(self.needed)
        return max([together, *map(share, self.alone)])

    def misled(self, held: Mapping[str, Held], later: LaterConfig, *, noise: bool = False) -> float:
        """The largest share in which something that misleads is held."""
        shares = [
            held[name].share * (later.doubt_misleads if held[name].doubted else 1.0)
            for name in self.misleading
            if name in held
        ]
        return max([*shares, 1.0 if noise and not self.needed and not self.misleading else 0.0])


@dataclass(frozen=True)
class _Written:
    """A question as it stands in the file. topic: the facts that answer it and all that they took
    the place of, one after the other."""

    needed: frozenset[str]
    alone: frozenset[str]
    topic: frozenset[str]


@dataclass(frozen=True)
class AskedDialogue:
    """A dialogue with its later questions.

    told, closed: the facts that each turn tells, by name, and the names of those it closes.
    """

    turns: Sequence[WrittenTurn]
    told: Sequence[Mapping[str, WrittenFact]]
    closed: Sequence[frozenset[str]]
    written: Sequence[_Written]

    def fact(self, name: str) -> WrittenFact:
        """The fact of that name."""
        return next(told[name] for told in self.told if name in told)

    def gone(self, turn: int) -> frozenset[str]:
        """The facts that hold no longer after that turn."""
        return frozenset().union(*self.closed[: turn + 1])

    def questions(self, turn: int, later: LaterConfig) -> list[FactQuestion]:
        """What may be asked right after that turn, and how much each counts."""
        told = {name for facts in self.told[: turn + 1] for name in facts}
        gone = self.gone(turn)
        holding = told - gone
        asked: list[FactQuestion] = []
        for one in self.written:
            if not one.needed:
                if one.topic & gone or not one.topic:
                    asked.append(FactQuestion(frozenset(), frozenset(), one.topic & gone))
                continue
            whole = one.needed <= told
            needed = one.needed if whole else one.topic & holding
            misleading = (one.topic & gone) - needed
            if needed or misleading:
                asked.append(FactQuestion(needed, one.alone if whole else needed, misleading))
        needs = {name for one in asked for name in one.needed}
        misleads = {name for one in asked for name in one.misleading}
        for name in sorted(holding - needs):
            asked.append(
                FactQuestion(
                    frozenset([name]), frozenset([name]), frozenset(), later.unasked, False
                )
            )
        for name in sorted(gone - needs - misleads):
            asked.append(
                FactQuestion(frozenset(), frozenset(), frozenset([name]), later.unasked, False)
            )
        return asked


def value(
    questions: Sequence[FactQuestion],
    held: Mapping[str, Held],
    later: LaterConfig,
    *,
    noise: int = 0,
    tokens: int = 0,
) -> float:
    """What a memory is worth that holds this: the formula above.

    noise: sentences that were kept and hold no fact. tokens: of the sentences that were kept.
    """
    answers = sum(one.weight * one.answerability(held, later, noise=noise > 0) for one in questions)
    return answers - later.noise_cost * noise - later.token_cost * tokens


def read_asked(path: Path) -> list[AskedDialogue]:
    """The dialogues of an author batch with their questions.

    Raises BadInput where the file is missing or a line is not a dialogue with questions.
    """
    found = []
    for number, case in json_lines(path, "dialogues"):
        try:
            language, _, _ = path.stem.partition("-")
            found.append(_dialogue(case, [*turns_of(case, language, f"{path.stem}:{number}")]))
        except (KeyError, IndexError, TypeError, ValueError, re.error) as error:
            raise BadInput(
                f"Line {number} of {path} is not a dialogue with questions ({error!r}): see"
                " corpus/README.md, and check the file with corpus/check.py."
            ) from error
    return found


def _dialogue(case: dict[str, Any], turns: Sequence[WrittenTurn]) -> AskedDialogue:
    told = [
        dict(zip((name for name, _, _ in part_of(turn, 2)), said.facts, strict=True))
        for turn, said in zip(case["t"], turns, strict=True)
    ]
    closed = [
        frozenset(name for name, relation in part_of(turn, 3) if relation in CLOSING)
        for turn in case["t"]
    ]
    told_at = {name: turn for turn, facts in enumerate(told) for name in facts}

    def topic_of(needed: frozenset[str]) -> frozenset[str]:
        found, todo = set(needed), list(needed)
        while todo:
            turn = told_at[todo.pop()]
            # An answer that held before that turn and holds after it took nothing's place.
            if not any(told_at[name] < turn and name not in closed[turn] for name in needed):
                todo += closed[turn] - found
                found |= closed[turn]
        return frozenset(found)

    statements = {name: fact.statement for facts in told for name, fact in facts.items()}
    written = []
    for _, names, *expression in case.get("q", ()):
        if unknown := set(names) - set(statements):
            raise ValueError(f"a question needs unknown facts {sorted(unknown)}")
        needed = frozenset(names)
        right = re.compile(expression[0], re.IGNORECASE) if expression else None
        alone = frozenset(n for n in needed if right and right.search(statements[n]))
        written.append(_Written(needed, alone, topic_of(needed)))
    # Nothing tells which of the closed facts a question is about that nothing answers, but those
    # are not that another question is about.
    others = frozenset().union(*(one.topic for one in written))
    rest = frozenset().union(*closed) - others
    written = [one if one.needed else _Written(one.needed, one.alone, rest) for one in written]
    return AskedDialogue(turns, told, closed, written)
