"""The decision of the operation head as text: `ADD`, `NONE`, `UPDATE 2` or `DELETE 1`.

A scenario is one state of a memory: the related items, numbered from 1, and one new statement. It
knows what every operation is worth there (`delta_qa`), so a reward is a look-up, whatever the model
says, and the gold operation, where the log has one, is the row for SFT.

    memograd.tasks.memory_ops_text:worth:1,well_formed:0.1,gold_operation:0

Invariants: NONE is worth exactly 0, by the same rule as all others; what is no operation of this
state is worth no more than the worst that is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from memograd.memory.manager.trained.observation import ADD, NONE, SLOTS
from memograd.rollout.types import Message, Scenario
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import EmbeddedLog
from memograd.tasks.memory_ops.walk import Point, Walk

NOT_AN_OPERATION: Final = 0.1
"""What saying no operation costs below the worst of them."""

COLUMNS: Final = ("operations", "gold")
"""What rewards can read of a decision; see `decision_scenarios`."""

Completion = Sequence[Mapping[str, str]] | str

_OPERATION = re.compile(r"(ADD|NONE)|(UPDATE|DELETE)\s+#?([1-9][0-9]?)")
_TASK: Final = {
    "en": (
        "You keep a memory for later questions. Decide about the new statement; answer with one"
        " of\nADD (a new fact)\nUPDATE number (it replaces that item)\nDELETE number (that item"
        " is to be forgotten)\nNONE (nothing worth keeping)"
    ),
    "zh": (
        "你为以后的提问保管记忆。对新的陈述做决定，只回答其中一个：\nADD（新的事实）\n"
        "UPDATE 编号（替换该条）\nDELETE 编号（忘掉该条）\nNONE（不值得记）"
    ),
}
_HEADINGS: Final = {
    "en": ("Memory:", "(empty)", "New statement:"),
    "zh": ("记忆：", "（空）", "新的陈述："),
}


def operation_named(action: int) -> str:
    """How a model says the action of that number (`observation`)."""
    if action in (ADD, NONE):
        return "ADD" if action == ADD else "NONE"
    place = action - 2
    return f"UPDATE {place + 1}" if place < SLOTS else f"DELETE {place - SLOTS + 1}"


def said_operation(answer: str) -> str | None:
    """The operation that an answer says, in the form of `operation_named`; None if it says none."""
    found = _OPERATION.fullmatch(answer.strip().rstrip(".。"))
    if found is None:
        return None
    return found[1] or f"{found[2]} {int(found[3])}"


def decision_scenarios(log: EmbeddedLog, standard: AnswerStandard) -> list[Scenario]:
    """A scenario for every statement of a log, in the states that the gold operations lead to.

    Where a log has no gold operations, the best one by `delta_qa` is gone on with. Columns:
    `operations`, what each allowed one is worth, and `gold` (None where unknown).
    """
    walk = Walk(log, standard, asks=False)
    scenarios = []
    while not walk.over:
        point, rewards_A = walk.point, walk.rewards()
        allowed = np.flatnonzero(point.observation.allowed_A)
        gold = walk.gold_action()
        scenarios.append(
            Scenario(
                id=f"{log.log.id}/{point.number}",
                messages=prompt_of(point, log.log.language),
                columns={
                    "operations": {
                        operation_named(int(action)): float(rewards_A[action]) for action in allowed
                    },
                    "gold": None if gold is None else operation_named(gold),
                },
            )
        )
        walk.take(int(allowed[rewards_A[allowed].argmax()]) if gold is None else gold)
    return scenarios


def prompt_of(point: Point, language: str) -> tuple[Message, ...]:
    """What the model is shown of a decision."""
    known = "zh" if language == "zh" else "en"
    memory, empty, new = _HEADINGS[known]
    items = [f"{number} {hit.record.text}" for number, hit in enumerate(point.hits, start=1)]
    listed = "\n".join(items) or empty
    return (
        Message(role="system", content=_TASK[known]),
        Message(role="user", content=f"{memory}\n{listed}\n\n{new}\n{point.fact.text}"),
    )


def worth(
    completions: Sequence[Completion], operations: Sequence[Mapping[str, float]]
) -> list[float]:
    """What the operation that was said does for the later questions."""
    values = []
    for completion, known in zip(completions, operations, strict=True):
        said = said_operation(_text(completion))
        worst = min(known.values()) - NOT_AN_OPERATION
        values.append(known.get(said, worst) if said is not None else worst)
    return values


def well_formed(
    completions: Sequence[Completion], operations: Sequence[Mapping[str, float]]
) -> list[float]:
    """1 for an operation that is possible in this state."""
    return [
        float(said_operation(_text(completion)) in known)
        for completion, known in zip(completions, operations, strict=True)
    ]


def gold_operation(
    completions: Sequence[Completion], gold: Sequence[str | None]
) -> list[float | None]:
    """1 for the gold operation; does not apply where it is unknown."""
    return [
        None if one is None else float(said_operation(_text(completion)) == one)
        for completion, one in zip(completions, gold, strict=True)
    ]


def _text(completion: Completion) -> str:
    return completion if isinstance(completion, str) else completion[-1]["content"]
