"""What is remembered and asked: turns and questions of generated lives, from a seed."""

from __future__ import annotations

from itertools import count, islice

from memograd.data.lifelog import generate_lifelogs


def remembered(n: int, seed: int = 0) -> list[str]:
    """n different dated turns, such as `Otto: I took a macrame workshop ... [18 April 2022]`."""
    texts: dict[str, None] = {}
    for batch in count():
        for log in generate_lifelogs(50, seed + batch):
            texts.update(dict.fromkeys(turn.index_text() for turn in log.turns))
        if len(texts) >= n:
            break
    return list(islice(texts, n))


def asked(n: int, seed: int = 0) -> list[str]:
    """n different questions about the same lives."""
    questions: dict[str, None] = {}
    for batch in count():
        for log in generate_lifelogs(50, seed + batch):
            questions.update(dict.fromkeys(probe.question.text for probe in log.probes))
        if len(questions) >= n:
            break
    return list(islice(questions, n))
