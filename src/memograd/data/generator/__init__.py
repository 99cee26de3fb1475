"""A procedural generator of conversations in the shape of LoCoMo, for tests and small trainings.

Two people talk over several sessions, weeks apart. Each has facts that change later (job,
city,...), single events with relative dates, something in common with the other, and small talk
that answers nothing. `plan` decides who tells what and when, `script` puts it into words,
`questions` asks for it.

Invariants: the same seed gives the same conversations, and the first n do not depend on how many
more follow; every single-hop answer stands word for word in its evidence; a question about the
current value of something is answered by the last value told.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

from memograd.data.conversation import Conversation
from memograd.data.generator import vocabulary
from memograd.data.generator.plan import Decks, make_plan
from memograd.data.generator.questions import ask_questions
from memograd.data.generator.script import Script
from memograd.data.locomo import write_locomo
from memograd.errors import BadInput

__all__ = ["generate_conversations", "generate_file", "write_locomo"]


def generate_conversations(
    n: int, seed: int, *, sessions: int = 8, turns_per_session: int = 16
) -> list[Conversation]:
    """`n` conversations with the ids `gen-<seed>-<number>` and about 55 questions each.

    turns_per_session: small talk fills a session up to about this number of turns; facts may exceed
    it. Raises BadInput for fewer than one conversation or three sessions.
    """
    if n < 1 or sessions < 3:
        raise BadInput(
            f"Cannot generate {n} conversations of {sessions} sessions: ask for at least one"
            " conversation, and for at least three sessions, so that facts can change."
        )
    return [_generate(f"gen-{seed}-{number}", sessions, turns_per_session) for number in range(n)]


def generate_file(path: Path | str, n: int, seed: int) -> None:
    """Write `n` generated conversations as a LoCoMo file; raises BadInput like its two halves."""
    write_locomo(generate_conversations(n, seed), path)


def _generate(identity: str, sessions: int, turns_per_session: int) -> Conversation:
    rng = random.Random(identity)  # a text seeds the same numbers in every process
    decks = Decks(rng)
    names = (decks.draw(vocabulary.NAMES), decks.draw(vocabulary.NAMES))
    times = _session_times(rng, sessions)
    plan = make_plan(rng, decks, names, times)
    script = Script(rng, decks, names, times, plan, turns_per_session)
    questions, adversarial = ask_questions(rng, identity, script.told)
    return Conversation(identity, names, tuple(script.turns), tuple(questions), tuple(adversarial))


def _session_times(rng: random.Random, sessions: int) -> list[datetime]:
    """Two to five weeks apart, so that "last Friday" never reaches back to the session before."""
    time = datetime(2022, 1, 1) + timedelta(days=rng.randrange(730))
    times = []
    for _ in range(sessions):
        times.append(time + timedelta(minutes=rng.randrange(8 * 60, 22 * 60)))
        time += timedelta(days=rng.randint(14, 35))
    return times
