"""Scores of questions by what a search finds."""

from __future__ import annotations

from collections.abc import Sequence

from construct_cases import LetterEmbedder, question, small_case
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.data import Question
from memograd.tasks.memory_construct.answer_format import read
from memograd.tasks.memory_construct.case import AnswerPart, CaseQuestion, Misleading
from memograd.tasks.memory_construct.memory_book import MemoryBook, Texts
from memograd.tasks.memory_construct.walk import Standard, answer, answer_open

TEXTS = Texts(LetterEmbedder(64))
PORTO = small_case().asked[1]


def book_of(*texts: str) -> MemoryBook:
    book = MemoryBook(TEXTS)
    for call in read("\n".join(f"+ {text}" for text in texts), "lines"):
        book.carry_out(call, (), chunk=0, source="")
    return book


def score(
    asked: CaseQuestion, *texts: str, now: int = 2, standard: Standard | None = None
) -> float:
    return answer(asked, book_of(*texts), now, standard or Standard()).score


def test_the_answer_counts_and_what_misleads_above_it_takes_half() -> None:
    assert score(PORTO) == 0
    assert score(PORTO, "Tom does live in Porto") == 1
    assert score(PORTO, "Where does Tom live? Lyon", "He went to Porto, which has a river") == 0.5
    assert score(PORTO, "Where does Tom live? Porto", "Lyon has a river and two hills") == 1


def test_a_correction_that_names_the_old_value_does_not_mislead() -> None:
    asked = answer(PORTO, book_of("Not Lyon: Tom lives in Porto"), 2, Standard())
    assert (asked.score, asked.misled, asked.carriers) == (1, False, ("m1",))


def test_nothing_misleads_before_it_was_superseded() -> None:
    early = CaseQuestion(question("x", "Where does Tom live?"), 0, (), (Misleading(("lyon",), 1),))
    assert not early.open_at(0) and PORTO.misleading_at(0) == ()


def test_where_nothing_is_known_nothing_may_be_found() -> None:
    forgotten = CaseQuestion(question("x", "Tom's code?"), 2, (), (Misleading(("7780",), 1),))
    assert score(forgotten) == 1 and score(forgotten, "Tom's code is 7780") == 0


def test_parts_count_as_they_are_told_and_found_in_any_items() -> None:
    both = CaseQuestion(
        question("x", "Tom's dog and phone?"),
        2,
        (AnswerPart(("Ziggy",), 0), AnswerPart(("555-0166",), 1)),
    )
    assert score(both, "the dog is Ziggy") == 0.5
    assert score(both, "the dog is Ziggy", now=0) == 1
    assert score(both, "the dog is Ziggy", "phone 555-0166") == 1


def test_a_name_is_no_piece_of_a_word_but_chinese_has_no_blanks() -> None:
    ann = CaseQuestion(question("x", "Who?"), 0, (AnswerPart(("Ann",), 0),))
    assert score(ann, "Anna came", now=0) == 0 and score(ann, "It was Ann.", now=0) == 1
    zh = CaseQuestion(question("x", "谁？"), 0, (AnswerPart(("谢东",), 0),))
    assert score(zh, "胡斌的儿子名叫谢东。", now=0) == 1


def test_the_budget_of_tokens_is_what_can_be_found() -> None:
    text = "Tom does live in Porto"
    assert score(PORTO, text, standard=Standard(token_budget=8)) == 1
    assert score(PORTO, text, standard=Standard(token_budget=7)) == 0


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["Lyon", "Porto", "Ziggy", "Tom lives in Lyon", "dog"])))
def test_scores_lie_between_0_and_1_and_closed_questions_are_not_asked(texts: list[str]) -> None:
    case = small_case()
    for now in range(3):
        answered = answer_open(case.asked, book_of(*texts), now, Standard())
        assert all(0 <= one.score <= 1 for one in answered)
        names = [one.asked.question.id for one in answered]
        assert names == [["q1", "q3"], ["q2", "q3"], ["q2", "q3"]][now]


class Says:
    """A reader with one answer; `seen` is what it was shown."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.seen: list[tuple[str, tuple[str, ...], str]] = []

    def answer(self, question: Question, notes: Sequence[str], language: str) -> str:
        self.seen.append((question.text, tuple(notes), language))
        return self.said


def test_a_reader_is_scored_by_f1_and_sees_what_was_found_only() -> None:
    reader = Says("in Porto")
    asked = answer(PORTO, book_of("Tom lives there"), 2, Standard(reader=reader))
    assert reader.seen == [("Where does Tom live?", ("Tom lives there",), "en")]
    assert (asked.by_words, asked.said, asked.carriers) == (0, "in Porto", ())
    assert asked.score == asked.f1 == 2 / 3
    zh = CaseQuestion(question("x", "他的儿子叫什么名字？", "谢东"), 0, (AnswerPart(("谢东",), 0),))
    assert answer(zh, book_of("无"), 0, Standard(reader=Says("谢冬"))).score == 0.5


def test_a_reader_is_held_to_what_was_told_by_then() -> None:
    both = CaseQuestion(
        question("x", "Dog and phone?", "Ziggy, 555-0166"),
        2,
        (AnswerPart(("Ziggy",), 0), AnswerPart(("555-0166",), 1)),
    )
    reader = Standard(reader=Says("Ziggy"))
    assert answer(both, book_of("dog"), 0, reader).score == 1
    assert answer(both, book_of("dog"), 1, reader).score < 1
    unknown = CaseQuestion(
        question("x", "Tom's code?", "I don't know"), 2, (), (Misleading(("77",), 1),)
    )
    assert answer(unknown, book_of("77"), 2, Standard(reader=Says("I don't know"))).score == 1
