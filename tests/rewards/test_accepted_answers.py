"""Where several answers are right, the best score counts: in rewards, in metrics, for the judge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memograd.data.conversation import Conversation, Question
from memograd.errors import BadInput
from memograd.evaluation import METRICS, score_answers
from memograd.memory import RawTurn
from memograd.rewards import get_reward
from memograd.rewards.overlap import bleu1, locomo_score, set_f1
from memograd.tasks.memory_qa.scenarios import MemoryView, PromptMemory, memory_qa_scenarios

SINGLE = {
    "locomo_f1": lambda said, gold: locomo_score(said, gold, "single-hop"),
    "mem0_f1": set_f1,
    "mem0_bleu1": bleu1,
}
CASES = [
    ("New York City", ["NYC", "New York City"]),
    ("in the big apple", ["NYC", "New York City", "the Big Apple"]),
    ("上海市", ["上海", "上海市"]),
    ("nothing of it", ["NYC", "上海"]),
]


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("said", "golds"), CASES)
def test_the_reward_is_the_best_over_the_right_answers(
    name: str, said: str, golds: list[str]
) -> None:
    reward = get_reward(name)
    columns = {"category": ["single-hop"]} if name == "locomo_f1" else {}
    one_by_one = [SINGLE[name](said, gold) for gold in golds]
    for answers in (golds, golds[::-1]):
        assert reward([""], [said], answer=[answers], **columns) == [max(one_by_one)]
    alone = reward(
        [""] * len(golds),
        [said] * len(golds),
        answer=golds,
        **{key: value * len(golds) for key, value in columns.items()},
    )
    assert alone == one_by_one
    if said != "nothing of it":
        assert max(one_by_one) > one_by_one[0]


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("answer", [[], [3], None])
def test_what_is_no_right_answer_is_refused(name: str, answer: object) -> None:
    columns = {"category": ["single-hop"]} if name == "locomo_f1" else {}
    with pytest.raises(BadInput, match="`answer` must hold texts"):
        get_reward(name)([""], ["a"], answer=[answer], **columns)


QUESTION = Question("c/q0", "Where does Ann live?", "NYC", "single-hop", ("t1",))


def test_metrics_take_the_best_too() -> None:
    plain = score_answers(["New York City"], [QUESTION])
    several = score_answers(["New York City"], [replace(QUESTION, accepted=("New York City",))])
    assert all(plain[name] == [0.0] and several[name] == [1.0] for name in METRICS)


def test_training_on_questions_sees_them(tmp_path) -> None:
    from memograd.memory.turn_memory import TurnMemory

    turn = RawTurn("t1", "Ann", "I live in New York City.", None, 1)
    questions = (QUESTION, replace(QUESTION, id="c/q1", accepted=("New York City",)))
    conversation = Conversation("c", ("Ann", "Bob"), (turn,), questions, ())
    turns: TurnMemory = None  # type: ignore[assignment]  # the view without memory asks for nothing
    memory = PromptMemory(turns, top_k=1, token_budget=10, count_tokens=len)
    scenarios = memory_qa_scenarios(conversation, memory, MemoryView.NONE)
    answers = [scenario.columns["answer"] for scenario in scenarios]
    assert answers == ["NYC", ["NYC", "New York City"]]
    scored = get_reward("locomo_f1")(
        [""] * 2, ["New York City"] * 2, answer=answers, category=["single-hop"] * 2
    )
    assert scored == [0.0, 1.0]
