"""Life logs from a seed: sessions over months, a step at a time, with exams in between.

Invariants: the same seed gives the same logs, and the first n do not depend on how many more
follow.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memograd.data.lifelog.forms import language_tables
from memograd.data.lifelog.plan import Life
from memograd.data.lifelog.questions import Examiner
from memograd.data.lifelog.scribe import Scribe
from memograd.data.lifelog.settings import LifelogSettings
from memograd.data.lifelog.types import Lifelog
from memograd.data.lifelog.world import LifeWorld
from memograd.errors import BadInput

FRIEND_SHARE = 0.5  # share of logs in which a friend listens, not an assistant


def generate_lifelogs(n: int, seed: int, settings: LifelogSettings | None = None) -> list[Lifelog]:
    """`n` logs with the ids `life-<language>-<split>-<seed>-<number>`.

    Raises BadInput for fewer than one, and for a seed below 0.
    """
    settings = settings or LifelogSettings()
    if n < 1:
        raise BadInput(f"Cannot generate {n} life logs: ask for at least one.")
    if seed < 0:
        raise BadInput(f"Cannot generate life logs from the seed {seed}: give one from 0 on.")
    name = f"life-{settings.language}-{settings.split}-{seed}"
    return [_generate(f"{name}-{number}", settings) for number in range(n)]


def generate_in_languages(
    n: int, seed: int, languages: Sequence[str], settings: LifelogSettings
) -> list[Lifelog]:
    """`n` logs in all, as many in each of the languages, the first ones getting what is left."""
    logs: list[Lifelog] = []
    for number, language in enumerate(languages):
        share = n // len(languages) + (number < n % len(languages))
        if share:
            # mypy takes a checked text for no Literal; LifelogSettings refuses other languages
            logs += generate_lifelogs(share, seed, replace(settings, language=language))  # type: ignore[arg-type]
    return logs


def _generate(identity: str, settings: LifelogSettings) -> Lifelog:
    rng = random.Random(identity)  # a text seeds the same numbers in every process
    world = LifeWorld(rng, language_tables(settings.language), settings.split, settings.people)
    grown = [one for one in world.cast[1:] if one.group == "adult"]
    partner = rng.choice(grown) if rng.random() < FRIEND_SHARE else None
    scribe = Scribe(rng, world, partner)
    life = Life(rng, world, scribe, settings)
    examiner = Examiner(rng, world, scribe, identity)
    per_exam = max(1, int(settings.statements_per_session * settings.questions))
    day = datetime(2022, 1, 1) + timedelta(days=rng.randrange(1000))
    for number in range(settings.sessions):
        scribe.begin_session(day + timedelta(minutes=rng.randint(7 * 60, 21 * 60)))
        for _ in range(settings.statements_per_session):
            life.step()
        if number > 0:
            last = number == settings.sessions - 1
            count = settings.sessions * per_exam // 2 if last else per_exam
            examiner.exam(scribe.time + timedelta(minutes=5), count)
        day += timedelta(days=rng.randint(4, 20))
    return Lifelog(
        id=identity,
        language=settings.language,
        speakers=scribe.speakers,
        turns=tuple(scribe.turns),
        statements=tuple(scribe.statements),
        probes=tuple(examiner.probes),
    )
