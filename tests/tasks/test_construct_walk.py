"""Walks through a case: attempts on forks, questions at their time."""

from __future__ import annotations

from construct_cases import LetterEmbedder, small_case
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.walk import BookWalk, Rules

TEXTS = Texts(LetterEmbedder(64))
answers = st.lists(
    st.sampled_from(
        ["+ Tom lives in Lyon\n+ Ziggy", "=", "- 1", "~ 1 Tom lives in Porto", "? what", "+ Porto"]
    ),
    min_size=3,
    max_size=3,
)


def walk() -> BookWalk:
    return BookWalk(small_case(), TEXTS, Rules())


def test_questions_are_asked_when_their_time_has_come() -> None:
    one = walk()
    one.take(one.attempt("+ Tom lives in Lyon.\n+ Tom's dog is called Ziggy."))
    assert [a.asked.question.id for a in one.answered] == ["q1"] and one.score == 1
    one.take(one.attempt("~ 1 Tom lives in Porto."))
    one.take(one.attempt("="))
    assert one.over and [a.score for a in one.answered] == [1, 1, 1]
    assert one.origins == [(0,), (1,), (0,)]


@settings(deadline=None)
@given(answers, answers)
def test_a_walk_is_a_function_of_the_answers_taken(said: list[str], tried: list[str]) -> None:
    plain, distracted = walk(), walk()
    for answer, other in zip(said, tried, strict=True):
        assert plain.view == distracted.view
        distracted.attempt(other)
        mine = distracted.attempt(answer)
        distracted.attempt(other)
        distracted.take(mine)
        plain.take(plain.attempt(answer))
        assert plain.book.items == distracted.book.items
    assert plain.over and plain.answered == distracted.answered


def test_read_tokens_grow_with_what_was_read() -> None:
    one = walk()
    sizes = []
    while not one.over:
        sizes.append(one.read_tokens)
        one.take(one.attempt(""))
    assert sizes == sorted(set(sizes)) and one.score == 0
