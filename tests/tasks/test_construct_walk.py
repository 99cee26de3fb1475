"""A walk through a case: what is shown, what it makes of a book, how questions are answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from construct_cases import LetterEmbedder, question, small_case
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.data import Question
from memograd.data.lifelog import LifelogSettings, generate_lifelogs
from memograd.errors import BadInput
from memograd.memory.language import estimate_tokens
from memograd.tasks.memory_construct.answer_format import Format, read
from memograd.tasks.memory_construct.case import (
    AnswerPart,
    BuildCase,
    CaseQuestion,
    Chunk,
    Misleading,
    case_of_log,
)
from memograd.tasks.memory_construct.measure import gold_answers
from memograd.tasks.memory_construct.memory_book import MemoryBook, Texts
from memograd.tasks.memory_construct.settings import ConstructConfig
from memograd.tasks.memory_construct.walk import BookWalk, Rules, answer, tools_of, view_of

TEXTS = Texts(LetterEmbedder(64))
PORTO = small_case().asked[1]
answers = st.lists(
    st.sampled_from(
        ["+ Tom lives in Lyon\n+ Ziggy", "=", "- 1", "~ 1 Tom lives in Porto", "? what", "+ Porto"]
    ),
    min_size=3,
    max_size=3,
)


def walk() -> BookWalk:
    return BookWalk(small_case(), TEXTS, Rules())


def book_of(*texts: str) -> MemoryBook:
    book = MemoryBook(TEXTS)
    for call in read("\n".join(f"+ {text}" for text in texts), "lines"):
        book.carry_out(call, (), chunk=0, source="")
    return book


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
    for one, other in zip(said, tried, strict=True):
        assert plain.view == distracted.view
        distracted.attempt(other)
        mine = distracted.attempt(one)
        distracted.attempt(other)
        distracted.take(mine)
        plain.take(plain.attempt(one))
        assert plain.book.items == distracted.book.items
    assert plain.over and plain.answered == distracted.answered


def test_read_tokens_grow_with_what_was_read() -> None:
    one = walk()
    sizes = []
    while not one.over:
        sizes.append(one.read_tokens)
        one.take(one.attempt(""))
    assert sizes == sorted(set(sizes)) and one.score == 0


def test_an_old_item_is_in_view_when_the_chunk_is_about_it() -> None:
    others = [f"remark number {number} about the weather" for number in range(20)]
    book = book_of("Tom keeps the locker key under the mat", *others)
    chunk = "[3 May 2023] Tom: nice day\n[3 May 2023] Tom: the locker key is in the drawer now"
    view = view_of(book, chunk, "en", ConstructConfig(view_items=4))
    assert "m1" in view.shown and len(view.shown) == 4
    content = view.messages[1]["content"]
    assert f"{view.shown.index('m1') + 1} Tom keeps the locker key under the mat" in content
    assert content.endswith(f"New messages:\n{chunk}")


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.text("abc ", min_size=1, max_size=30).filter(str.strip), max_size=12, unique=True),
    st.integers(1, 6),
    st.integers(1, 40),
)
def test_limits_hold_and_core_is_always_shown(items: list[str], top_k: int, budget: int) -> None:
    book = book_of(*items, "[core] Tom")
    build = ConstructConfig(view_items=top_k, view_tokens=budget)
    view = view_of(book, "abc\ncab", "en", build)
    core, *found = view.shown
    assert core == book.core[0].id and len(found) <= top_k and len(set(found)) == len(found)
    texts = {item.id: item.text for item in book.items}
    assert sum(estimate_tokens(texts[one]) for one in found) <= budget
    assert view == view_of(book, "abc\ncab", "en", build)


def test_chinese_and_tools() -> None:
    lines = view_of(MemoryBook(TEXTS), "汤姆: 你好", "zh", ConstructConfig())
    tools = view_of(MemoryBook(TEXTS), "汤姆: 你好", "zh", ConstructConfig(format="tools"))
    assert "（空）" in lines.messages[1]["content"] and "~ 编号" in lines.messages[0]["content"]
    assert "工具" in tools.messages[0]["content"]
    assert tools_of("lines") == () and len(tools_of("tools")) == 3


def score(asked: CaseQuestion, *texts: str, now: int = 2, rules: Rules | None = None) -> float:
    return answer(asked, book_of(*texts), now, rules or Rules()).score


def test_the_answer_counts_and_what_misleads_above_it_takes_half() -> None:
    assert score(PORTO) == 0
    assert score(PORTO, "Tom does live in Porto") == 1
    assert score(PORTO, "Where does Tom live? Lyon", "He went to Porto, which has a river") == 0.5
    assert score(PORTO, "Where does Tom live? Porto", "Lyon has a river and two hills") == 1


def test_a_correction_that_names_the_old_value_does_not_mislead() -> None:
    asked = answer(PORTO, book_of("Not Lyon: Tom lives in Porto"), 2, Rules())
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
    assert score(PORTO, text, rules=Rules(ConstructConfig(token_budget=8))) == 1
    assert score(PORTO, text, rules=Rules(ConstructConfig(token_budget=7))) == 0


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["Lyon", "Porto", "Ziggy", "Tom lives in Lyon", "dog"])))
def test_scores_lie_between_0_and_1_and_closed_questions_are_not_asked(texts: list[str]) -> None:
    case = small_case()
    for now in range(3):
        book = book_of(*texts)
        answered = [answer(one, book, now, Rules()) for one in case.asked if one.open_at(now)]
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
    asked = answer(PORTO, book_of("Tom lives there"), 2, Rules(reader=reader))
    assert reader.seen == [("Where does Tom live?", ("Tom lives there",), "en")]
    assert (asked.by_words, asked.said, asked.carriers) == (0, "in Porto", ())
    assert asked.score == asked.f1 == 2 / 3
    zh = CaseQuestion(question("x", "他的儿子叫什么名字？", "谢东"), 0, (AnswerPart(("谢东",), 0),))
    assert answer(zh, book_of("无"), 0, Rules(reader=Says("谢冬"))).score == 0.5


def test_a_reader_is_held_to_what_was_told_by_then() -> None:
    both = CaseQuestion(
        question("x", "Dog and phone?", "Ziggy, 555-0166"),
        2,
        (AnswerPart(("Ziggy",), 0), AnswerPart(("555-0166",), 1)),
    )
    reader = Rules(reader=Says("Ziggy"))
    assert answer(both, book_of("dog"), 0, reader).score == 1
    assert answer(both, book_of("dog"), 1, reader).score < 1
    unknown = CaseQuestion(
        question("x", "Tom's code?", "I don't know"), 2, (), (Misleading(("77",), 1),)
    )
    assert answer(unknown, book_of("77"), 2, Rules(reader=Says("I don't know"))).score == 1


@pytest.mark.parametrize("form", ["lines", "tools"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_all_gold_calls_are_carried_out_and_keep_what_is_true(language: str, form: Format) -> None:
    """With everything in view, the book holds exactly the statements that are true in the end."""
    (log,) = generate_lifelogs(1, 5, LifelogSettings(language=language))
    case = case_of_log(log, turns_per_chunk=4).first_chunks(18)
    everything = ConstructConfig(format=form, view_items=1000, view_tokens=100_000)
    walk = BookWalk(case, TEXTS, Rules(everything))
    gold_answers(walk)
    assert all(outcome.failure is None for tried in walk.taken for outcome in tried.outcomes)
    true: dict[str, str] = {}
    for statement in (one for chunk in case.chunks for one in chunk.statements):
        gold = statement.gold
        assert gold is not None
        if gold.kind in ("UPDATE", "DELETE"):
            true.pop(str(gold.target), None)
        if gold.kind in ("ADD", "UPDATE"):
            true[statement.id] = statement.text
    assert {item.text for item in walk.book.items} == set(true.values())


def test_gold_answers_more_than_keeping_the_turns_and_nothing() -> None:
    logs = generate_lifelogs(4, 5, LifelogSettings(split="test"))
    scores = {"gold": [], "turns": [], "nothing": []}
    for case in (case_of_log(log, turns_per_chunk=4).first_chunks(6) for log in logs):
        for name, found in scores.items():
            walk = BookWalk(case, TEXTS, Rules())
            if name == "gold":
                gold_answers(walk)
            while not walk.over:
                lines = walk.chunk.text.splitlines() if name == "turns" else []
                walk.take(walk.attempt("\n".join(f"+ {line}" for line in lines)))
            found += [one.score for one in walk.answered]
    mean = {name: sum(found) / len(found) for name, found in scores.items()}
    assert mean["gold"] > 0.85 and mean["gold"] > mean["turns"] + 0.1 > mean["nothing"] + 0.2


def test_data_without_gold_operations_are_refused() -> None:
    (log,) = generate_lifelogs(1, 5)
    chunk = case_of_log(log, turns_per_chunk=4).chunks[0]
    bare = tuple(replace(statement, gold=None) for statement in chunk.statements)
    case = BuildCase("bare", "en", (Chunk(chunk.text, bare),), small_case().asked[:0])
    with pytest.raises(BadInput, match="bare has no gold operations"):
        gold_answers(BookWalk(case, TEXTS, Rules()))
