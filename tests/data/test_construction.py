from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.data import Conversation, Question, construction_case_of, load_locomo
from memograd.data.conversation import ConstructionCase
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.language import estimate_tokens


def _conversation(sessions: list[int], evidence: tuple[str, ...] = ()) -> Conversation:
    """A conversation with so many turns in each session; one question, one adversarial."""
    turns = []
    for session, length in enumerate(sessions, start=1):
        for place in range(length):
            speaker, text = (
                ("Ann", "I like tea.") if place % 2 else ("小明", "我搬到了上海。" * place)
            )
            time = datetime(2024, 5, 7) + timedelta(days=session)
            turns.append(RawTurn(f"D{session}:{place}", speaker, text, time, session))
    question = Question("c/q0", "What?", "Tea", "single-hop", evidence)
    trap = Question("c/q1", "Who?", "Not mentioned", "adversarial", (), adversarial=True)
    return Conversation("c", ("Ann", "小明"), tuple(turns), (question,), (trap,))


@given(
    sessions=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    size=st.one_of(
        st.just({}),
        st.integers(1, 12).map(lambda turns: {"turns_per_chunk": turns}),
        st.integers(1, 200).map(lambda tokens: {"chunk_tokens": tokens}),
    ),
    data=st.data(),
)
def test_chunks_are_the_turns_and_evidence_finds_them(sessions, size, data) -> None:
    ids = [turn.id for turn in _conversation(sessions).turns]
    evidence = tuple(data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=4)))
    told = _conversation(sessions, evidence)
    case = construction_case_of(told, **size)
    assert "\n".join(case.chunks) == "\n".join(turn.render() for turn in told.turns)
    assert case.questions == (*told.questions, *told.adversarial_questions)
    # Where each turn's line stands, counted anew from the chunks themselves.
    places = [place for place, chunk in enumerate(case.chunks) for _ in chunk.split("\n")]
    wanted = sorted({places[ids.index(turn_id)] for turn_id in evidence})
    assert case.evidence == (tuple(wanted), ())


def test_a_chunk_is_a_session_by_default() -> None:
    case = construction_case_of(_conversation([2, 3]))
    assert [chunk.count("\n") for chunk in case.chunks] == [1, 2]


def test_turns_per_chunk_counts_turns() -> None:
    case = construction_case_of(_conversation([2, 3]), turns_per_chunk=2)
    assert [chunk.count("\n") + 1 for chunk in case.chunks] == [2, 2, 1]


def test_a_chunk_within_tokens_is_as_full_as_it_can_be() -> None:
    turns = tuple(RawTurn(f"t{n}", "Ann", f"Number {n}.", None, 1) for n in range(8))
    told = Conversation("c", ("Ann", "Ben"), turns, (), ())
    cost = estimate_tokens(turns[0].render() + "\n")
    for limit, sizes in ((3 * cost, [3, 3, 2]), (3 * cost - 1, [2, 2, 2, 2]), (1, [1] * 8)):
        case = construction_case_of(told, chunk_tokens=limit)
        assert [chunk.count("\n") + 1 for chunk in case.chunks] == sizes


def test_what_tells_a_conversation_can_be_cut_too() -> None:
    class Log:
        def conversation(self) -> Conversation:
            return _conversation([2])

    assert construction_case_of(Log()) == construction_case_of(_conversation([2]))


def test_locomo_keeps_all_questions_and_their_evidence(locomo_file: Path) -> None:
    told = load_locomo(locomo_file)[0]
    case = construction_case_of(told, chunk_tokens=2000)
    assert len(case.questions) == len(told.questions) + len(told.adversarial_questions)
    by_id = {turn.id: turn for turn in told.turns}
    for question, chunks in zip(case.questions, case.evidence, strict=True):
        assert len(chunks) <= len(question.evidence)
        for turn_id in question.evidence:
            line = by_id[turn_id].render()
            assert any(line in case.chunks[place].split("\n") for place in chunks)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"turns_per_chunk": 1, "chunk_tokens": 9}, "not both"),
        ({"turns_per_chunk": 0}, "turns_per_chunk is 0"),
        ({"chunk_tokens": -1}, "chunk_tokens is -1"),
    ],
)
def test_sizes_that_make_no_sense(sizes: dict[str, int], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        construction_case_of(_conversation([2]), **sizes)


def test_parts_that_do_not_fit_each_other() -> None:
    question = Question("q", "What?", "Tea", "k", ())
    with pytest.raises(BadInput, match="no chunk"):
        ConstructionCase("c", "s", (), ())
    with pytest.raises(BadInput, match="an empty one"):
        ConstructionCase("c", "s", ("a", " "), ())
    with pytest.raises(BadInput, match="two questions with one id"):
        ConstructionCase("c", "s", ("a",), (question, question))
    with pytest.raises(BadInput, match="1 questions and evidence for 2"):
        ConstructionCase("c", "s", ("a",), (question,), ((), ()))
    with pytest.raises(BadInput, match=r"evidence \[1\]: there are the chunks 0 to 0"):
        ConstructionCase("c", "s", ("a",), (question,), ((1,),))
    assert ConstructionCase("c", "s", ("a",), (question,)).evidence == ((),)
