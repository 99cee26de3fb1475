"""Scores are the training rewards, whatever the batch size; ROUGE-L by hand and by the library."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.evaluation import METRICS, score_answers
from memograd.evaluation.metrics import (
    ANSWER_METRICS,
    answer_scores,
    evaluate_policy,
    rouge_l,
    rouge_words,
)
from memograd.policy.language_model import LanguageModel
from memograd.rewards import RewardError, get_reward
from memograd.rollout import Message, Scenario


@dataclass(frozen=True)
class Asked:
    answer: str
    category: str


QUESTIONS = [
    Asked("pottery, swimming", "multi-hop"),
    Asked("7 May 2023", "temporal"),
    Asked("她喜欢画画", "single-hop"),
]
ANSWERS = ["swimming", "7 May", "画画"]


def test_scores_by_hand() -> None:
    scores = score_answers(ANSWERS, QUESTIONS)
    assert list(scores) == list(METRICS)
    assert scores["locomo_f1"] == pytest.approx([0.5, 0.8, 2 * 2 / 7])
    assert scores["mem0_f1"][1] == pytest.approx(0.8)


def test_scores_are_the_rewards() -> None:
    scores = score_answers(ANSWERS, QUESTIONS)
    columns = {
        "answer": [question.answer for question in QUESTIONS],
        "category": [question.category for question in QUESTIONS],
    }
    for metric in METRICS:
        assert scores[metric] == get_reward(metric)([""] * 3, ANSWERS, **columns)


def test_other_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="2 answers for 3 questions"):
        score_answers(ANSWERS[:2], QUESTIONS)


def test_an_unknown_category_is_an_error() -> None:
    with pytest.raises(RewardError, match=r"locomo_f1 raised BadInput.*fun.*answer-1"):
        score_answers(["x"], [Asked("x", "fun")])


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("the cat sat", "the cat ran", 2 / 3),
        ("cats sitting", "cat sits", 1.0),  # stems
        ("b a", "a b", 1 / 2),  # order counts: one of two
        ("a b c d", "a c", 2 / 3),  # a gap does not: precision 2/4, recall 2/2
        ("北京大学", "北大", 2 / 3),  # characters: 2 of 4, 2 of 2
        ("我住在上海。", "上海", 4 / 7),  # 2 of 5, 2 of 2
        ("café", "CAFÉ", 1.0),
        ("", "a", 0.0),
        ("。", "。", 0.0),
    ],
)
def test_rouge_l_by_hand(prediction: str, gold: str, expected: float) -> None:
    assert rouge_l(prediction, gold) == pytest.approx(expected)


ASCII = st.lists(
    st.sampled_from(["Running", "runs", "the", "don't", "3.5", "a_b", "U.S.", "--", "flies"]),
    max_size=8,
).map(" ".join) | st.text(st.characters(max_codepoint=127), max_size=30)
LIBRARY = RougeScorer(["rougeL"], use_stemmer=True)


@given(ASCII, ASCII)
def test_in_ascii_it_is_the_librarys_number(prediction: str, gold: str) -> None:
    assert rouge_l(prediction, gold) == LIBRARY.score(gold, prediction)["rougeL"].fmeasure


def test_all_metrics_of_a_chinese_answer_by_hand() -> None:
    assert answer_scores("北京大学", "北京", "zh") == pytest.approx(
        {
            "squad_em": 0.0,
            "squad_f1": 2 / 3,
            "locomo_f1": 2 / 3,
            "mem0_f1": 2 / 3,
            "mem0_bleu1": 1 / 2,
            "rouge_l": 2 / 3,
        }
    )


def test_the_category_is_locomos_rule() -> None:
    refusal = answer_scores("That is not mentioned.", "x", "en", category="adversarial")
    assert (refusal["locomo_f1"], refusal["mem0_f1"]) == (1.0, 0.0)
    with pytest.raises(BadInput, match="no LoCoMo category"):
        answer_scores("a", "a", "en", category="other")
    with pytest.raises(BadInput, match='en or zh, not "fr"'):
        answer_scores("a", "a", "fr")  # type: ignore[arg-type]


ANY = ASCII | st.text(max_size=20)


@given(ANY, ANY, st.sampled_from(["en", "zh"]))
def test_every_score_is_a_share_and_equal_answers_are_right(
    prediction: str, gold: str, language: str
) -> None:
    scores = answer_scores(prediction, gold, language)  # type: ignore[arg-type]
    assert tuple(scores) == ANSWER_METRICS
    assert all(0 <= value <= 1 for value in scores.values())
    same = answer_scores(gold, gold, language)  # type: ignore[arg-type]
    assert same["squad_em"] == 1
    assert same["rouge_l"] == (1 if rouge_words(gold) else 0)


@pytest.fixture(scope="module")
def policy(tiny_model_folder) -> LanguageModel:
    return LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=2), device="cpu")


@pytest.fixture(scope="module")
def questions() -> list[Scenario]:
    return [
        Scenario(
            id=f"q{number}",
            messages=(Message(role="user", content="why? " * number),),
            columns={"answer": "a b", "category": "temporal" if number % 2 else "single-hop"},
        )
        for number in range(1, 8)
    ]


def test_the_batch_size_changes_nothing(policy, questions) -> None:
    heard: list[int] = []
    whole, pieces = (
        evaluate_policy(
            policy,
            questions,
            method="m",
            max_completion_length=5,
            batch_size=size,
            on_progress=heard.append,
        )
        for size in (7, 3)
    )
    assert whole.answers == pieces.answers
    assert whole.report.scores == pieces.report.scores
    assert heard == [7, 3, 6, 7]


def test_scores_stand_in_the_order_of_the_questions(policy, questions) -> None:
    result = evaluate_policy(policy, questions, method="m", max_completion_length=5, batch_size=4)
    assert list(result.report.question_ids) == [scenario.id for scenario in questions]
    assert result.report.n == 7

    class Gold:
        def __init__(self, scenario: Scenario) -> None:
            self.answer = str(scenario.columns["answer"])
            self.category = str(scenario.columns["category"])

    assert result.report.scores == score_answers(result.answers, [Gold(s) for s in questions])
