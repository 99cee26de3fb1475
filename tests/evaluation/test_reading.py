"""Answers from what was found: what the reader sees, nothing asked twice, several golds."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from memograd.data import Question
from memograd.data.lifelog import LifelogSettings, generate_lifelogs
from memograd.errors import BadInput
from memograd.evaluation.judge import Judge
from memograd.evaluation.metrics import ANSWER_METRICS
from memograd.memory.chat.chat_model import OpenAIChatModel
from memograd.tasks.base.reading import Reader
from memograd.tasks.memory_ops.baselines.deciders import KeepAll
from memograd.tasks.memory_ops.baselines.measure import best_scores, measure, read_and_score
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import embed_logs

QUESTION = Question(
    "c/q0", "Where does Ann live?", "Oslo", "single-hop", (), asked_at=datetime(2024, 5, 6),
    accepted=("the capital of Norway",),
)  # fmt: skip


@pytest.fixture
def chat(chat_server) -> OpenAIChatModel:
    return OpenAIChatModel("stub", api_key="k", base_url=chat_server.url, retries=0)


def test_the_reader_sees_notes_question_and_date_never_gold(chat, chat_server) -> None:
    chat_server.answer = lambda messages: " In\nOslo. "
    said = Reader(chat).answer(QUESTION, ["Ann moved\nto Oslo.", "Ann likes tea."], "en")
    assert said == "In Oslo."
    [request] = chat_server.requests
    shown = request["messages"][1]["content"]
    for part in ("- Ann moved to Oslo.\n- Ann likes tea.", "2024-05-06", QUESTION.text):
        assert part in shown
    assert "Norway" not in str(request)


def test_what_was_answered_is_not_asked_again(chat, chat_server, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    first = Reader(chat, cache=path)
    first.answer(QUESTION, ["a"], "en")
    assert (first.calls, first.seconds > 0) == (1, True)
    again = Reader(chat, cache=path)
    assert again.answer(QUESTION, ["a"], "en") == "Noted." and again.calls == 0
    again.answer(QUESTION, ["b"], "en")
    again.answer(QUESTION, ["a"], "zh")
    assert again.calls == 2 and len(chat_server.requests) == 3
    path.write_text("{broken\n")
    with pytest.raises(BadInput, match="Line 1 of the answers"):
        Reader(chat, cache=path)


def test_the_best_of_several_right_answers_counts() -> None:
    assert best_scores("Oslo", QUESTION, "en")["squad_em"] == 1
    assert best_scores("The capital of Norway", QUESTION, "en")["squad_em"] == 1
    both = best_scores("Oslo is the capital of Norway", QUESTION, "en")
    assert 0 < both["squad_f1"] < 1 and set(both) == set(ANSWER_METRICS)


def test_scores_and_quality_of_all_questions(chat, chat_server, trigrams) -> None:
    [log] = generate_lifelogs(1, 3, LifelogSettings(sessions=2, statements_per_session=6))
    material = embed_logs([log], trigrams())
    looked = measure("all", KeepAll, material, AnswerStandard(top_k=2)).looked
    golds = {probe.question.text: probe.question.answer for probe in log.probes}

    def know_everything(messages) -> str:
        text = messages[-1]["content"]
        return next(gold for question, gold in golds.items() if question in text)

    chat_server.answer = know_everything
    found = read_and_score(looked, {log.id: "en"}, Reader(chat))
    assert found.scores["squad_f1"] == found.quality == [1.0] * len(log.probes)
    assert found.measured_by == "squad_f1"
    judging = '{"reason": "wrong", "correct": false}'
    reader = Reader(chat)
    said = read_and_score(looked, {log.id: "en"}, reader)
    chat_server.answer = lambda messages: judging
    judged = read_and_score(looked, {log.id: "en"}, reader, Judge(chat, "strict"))
    assert judged.quality == [0.0] * len(log.probes) and judged.scores == said.scores
    assert judged.measured_by == "judge strict, stub"
