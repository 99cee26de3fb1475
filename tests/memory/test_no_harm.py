"""No comment takes a fact away: fact, then comments of the suite, in any order and language.

The facts and comments are those of `tests/behaviour`; each fact is followed by the comment that was
written for it and by some that were not.
"""

import json
import random
import re
from pathlib import Path

import pytest

from memograd import Memory

SUITES = Path(__file__).resolve().parents[1] / "behaviour"
WHEN = "2024-05-07T18:30:00+00:00"


def comments(language: str) -> list[dict]:
    lines = (SUITES / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["kind"] == "comment"]
    return [case for case in cases if all(isinstance(step, str) for step in case["steps"])]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_fact_is_found_after_any_comments(tmp_path, language, every):
    """A fourth of the facts, from eight scenes of the suite, each with the comments that it has
    among all of them, which are slow."""
    drawn = random.Random(14)
    cases = [case for case in comments(language) if "-s2-" not in case["id"]][
        1::2
    ]  # every other one, for time
    foreign = [case["steps"][1] for case in comments("zh" if language == "en" else "en")]
    own = [case["steps"][1] for case in cases]
    lost, missed = [], []
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        for number, case in enumerate(cases):
            fact, comment = case["steps"]
            others = [comment, *drawn.sample(own, 2), drawn.choice(foreign)]
            drawn.shuffle(others)
            if number % every:
                continue
            told = memory.add(fact, user_id=case["id"], timestamp=WHEN)["results"]
            if not told:
                missed.append(fact)  # What was never kept cannot be lost; the suite counts it.
                continue
            for said in others:
                memory.add(said, user_id=case["id"], timestamp=WHEN)
            known = memory.get_all(user_id=case["id"])["results"]
            items = "\n".join(item["memory"] for item in known)
            if not re.search(case["ask"][0]["has"], items, re.I):
                lost.append((fact, others, items))
    assert not lost
    assert len(missed) <= len(cases) // 20
