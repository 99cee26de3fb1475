"""Credit: neutral about operations in ours, with its three defects in Mem-alpha's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from construct_cases import LetterEmbedder, small_case
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.tasks.memory_construct.credit import (
    LOCAL,
    MEM_ALPHA_ORIGINAL,
    TRAJECTORY,
    attributed,
    chunk_rewards,
    global_terms,
    local_rewards,
)
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.settings import ConstructConfig
from memograd.tasks.memory_construct.walk import BookWalk, Rules

TEXTS = Texts(LetterEmbedder(64))
SIZELESS = ConstructConfig(compression_weight=0.0)  # the size of the memory aside
BY_ATTEMPT = ConstructConfig(compression_weight=0.0, credit="trajectory")
ORIGINAL = ConstructConfig(compression_weight=0.0, credit="mem_alpha_original")
GAMMA = SIZELESS.content_weight
FIRST = "+ Tom lives in Lyon.\n+ Tom's dog is called Ziggy."
DELETING = (f"{FIRST}\n+ Tom: soup", "~ 1 Tom lives in Porto.", "- 1")


def walked(*answers: str, build: ConstructConfig = SIZELESS) -> BookWalk:
    walk = BookWalk(small_case(), TEXTS, Rules(build))
    for answer in answers:
        walk.take(walk.attempt(answer))
    return walk


def rewards(walk: BookWalk, *answers: str) -> list[float]:
    return local_rewards(walk, [walk.attempt(answer) for answer in answers])


NEUTRAL = 1 + GAMMA


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["+ Tom had lentil soup for lunch", "- 3", "~ 3 Tom: lentil soup"]),
        max_size=3,
        unique_by=lambda line: line[0],
    )
)
def test_what_leaves_the_answers_as_they_were_earns_what_nothing_earns(
    lines: list[str],
) -> None:
    """In the last chunk nothing is told that is asked about; item 3 is about something else."""
    walk = walked(f"{FIRST}\n+ Tom: soup", "~ 1 Tom lives in Porto.")
    third = walk.view.shown.index("m3") + 1
    answer = "\n".join(lines).replace(" 3", f" {third}", 1)
    earned, nothing = rewards(walk, answer, "=")
    assert nothing == pytest.approx(NEUTRAL)
    if "- " in answer and "~ " in answer:
        return  # what was deleted cannot be updated, so one of the calls failed
    assert earned == pytest.approx(NEUTRAL)


def test_each_operation_earns_what_it_does_for_the_questions() -> None:
    start = walked()
    # Two questions are about this chunk; each answer is half of what it can earn.
    assert rewards(start, FIRST, "+ Tom's dog is called Ziggy.", "=") == pytest.approx(
        [NEUTRAL + 1, NEUTRAL + 0.5, NEUTRAL]
    )
    later = walked(FIRST)
    update, nothing = rewards(later, "~ 1 Tom lives in Porto now.", "=")
    assert update == pytest.approx(NEUTRAL + 1) and nothing == pytest.approx(NEUTRAL)
    wrong = rewards(later, "- 2")[0]
    assert wrong < NEUTRAL  # Ziggy is asked for later


def test_failed_and_made_up_calls_cost() -> None:
    failed, made_up = rewards(walked(), "- 5", "+ Anna paints orchids")
    assert failed == pytest.approx(NEUTRAL - 1)
    assert made_up == pytest.approx(NEUTRAL - GAMMA)


def test_the_size_of_the_memory_costs() -> None:
    walk = walked(build=ConstructConfig(compression_weight=1.0, content_weight=0.0))
    short, long = rewards(walk, "+ Lyon", "+ Lyon, where Tom lives, Tom with the dog Ziggy")
    one, two = (walk.attempt(said).book.tokens for said in ("+ Lyon", "+ Lyon, where Tom"))
    assert one < two and short != long


def test_what_was_answered_is_attributed_to_who_wrote_it() -> None:
    walk = walked(FIRST, "~ 1 Tom lives in Porto.", "=")
    assert attributed(walk) == pytest.approx([2 / 3, 1 / 3, 0])
    assert sum(attributed(walk)) == pytest.approx(walk.score)
    lazy = walked("=", "+ Tom lives in Porto.", "=")
    assert attributed(lazy) == pytest.approx([0, 1 / 3, 0])
    terms = global_terms([walk, lazy])
    assert terms[0] == pytest.approx([1 / 6, 0, 0]) and terms[1] == pytest.approx([-1 / 6, 0, 0])
    assert global_terms([walk]) == [[0, 0, 0]]


# Mem-alpha as published, beside the same walks under op-neutral rules


def test_doing_nothing_and_deleting_cost_in_the_original_only() -> None:
    ours, theirs = (
        [
            chunk_rewards(walked(FIRST, "~ 1 Tom lives in Porto.", "=", build=build)),
            chunk_rewards(walked(*DELETING, build=build)),
        ]
        for build in (BY_ATTEMPT, ORIGINAL)
    )
    assert [t.calls[0].kind for t in walked(*DELETING).taken[2:]] == ["DELETE"]
    assert ours[0][2] - ours[0][1] == pytest.approx(0)
    assert theirs[0][2] - theirs[0][1] == pytest.approx(-1 - GAMMA)
    assert ours[1][2] - ours[1][1] == pytest.approx(0)
    assert theirs[1][2] - theirs[1][1] == pytest.approx(-GAMMA)


def test_a_duplicate_fails_in_the_original_only() -> None:
    lost = {}
    for build in (BY_ATTEMPT, ORIGINAL):
        only_calls = build.model_copy(update={"content_weight": 0.0})
        twice = walked(FIRST, "+ Tom's dog is called Ziggy.", "=", build=only_calls)
        assert twice.taken[1].calls[0].duplicate
        one = walked(FIRST, "+ Tom lives in Porto.", "=", build=only_calls)
        lost[build.credit] = chunk_rewards(twice)[1] - chunk_rewards(one)[1]
    assert lost["mem_alpha_original"] < lost["trajectory"] - 0.9


def test_chunk_positions_share_a_baseline_in_the_original_only() -> None:
    compared = [credit.compared for credit in (LOCAL, TRAJECTORY, MEM_ALPHA_ORIGINAL)]
    assert compared == ["answers", "attempts", "chunks_of_attempts"]


def test_an_attempt_that_is_asked_nothing_cannot_be_rewarded() -> None:
    walk = BookWalk(replace(small_case(), asked=()), TEXTS, Rules(BY_ATTEMPT))
    while not walk.over:
        walk.take(walk.attempt("="))
    with pytest.raises(BadInput, match="tom asks nothing"):
        chunk_rewards(walk)
