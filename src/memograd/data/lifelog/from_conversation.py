"""A real conversation as a life log: every turn a statement, every question with evidence a probe.

Invariant: needed statements are exactly the evidence, and none is told after the question.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memograd.data.conversation import Conversation
from memograd.data.lifelog.types import Lifelog, Probe, ToldStatement

UNDATED = datetime(2000, 1, 1)  # where no turn of a conversation has a time


def lifelog_of(conversation: Conversation, language: str) -> Lifelog:
    """The conversation as a life log without gold operations.

    A statement's text is what is embedded of its turn (`RawTurn.index_text`), its id the turn's.
    Turns keep their order: one without a time, or dated before the one ahead of it (some sets'
    clocks run backwards), counts as told when the one before it was. In the same way, a question is
    asked at its time, but never before its evidence; at the end where it has none. Questions
    without evidence are left out, and adversarial ones too: nobody says which turns would mislead
    there, so every memory, even an empty one, would hold all that they need, and they could not
    tell a good memory from a bad one.
    Raises BadInput where ids are there twice.
    """
    statements = []
    asked = (question.asked_at for question in conversation.questions)
    known = [time for time in (*(turn.time for turn in conversation.turns), *asked) if time]
    # Times with a time zone can be compared with their like only.
    undated = UNDATED.replace(tzinfo=known[0].tzinfo) if known else UNDATED
    last = next((turn.time for turn in conversation.turns if turn.time), undated)
    for turn in conversation.turns:
        last = max(turn.time or last, last)
        statements.append(
            ToldStatement(turn.id, turn.id, turn.index_text(), last, subject=turn.speaker)
        )
    told = {statement.id: statement.told_at for statement in statements}
    probes = []
    for question in conversation.questions:
        if question.evidence:
            told_last = max(told[name] for name in question.evidence)
            asked_at = max(question.asked_at or last, told_last)
            probes.append(Probe(replace(question, asked_at=asked_at), question.evidence))
    return Lifelog(
        id=conversation.id,
        language=language,
        speakers=conversation.speakers,
        turns=conversation.turns,
        statements=tuple(statements),
        probes=tuple(probes),
    )
