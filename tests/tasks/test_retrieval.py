"""The task retrieval: gradients, the life of a run, what is held out, and the guard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from memograd.data import Conversation, Question, load_any, load_written_conversations
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.search.ranker.features import FALLING, FEATURES, RISING
from memograd.memory.search.ranker.linear import load_ranker
from memograd.tasks.base.life import train_task
from memograd.tasks.registry import TASKS
from memograd.tasks.retrieval.learning import (
    PlackettLuce,
    fit_probability,
    loss_and_slope,
    pack,
    turns_part,
)
from memograd.tasks.retrieval.material import rows_of, told_of
from memograd.tasks.retrieval.recipe import recipe_with, sources_of, split
from memograd.tasks.retrieval.settings import RetrievalConfig
from memograd.tasks.retrieval.trainer import RankerTrainer

THINGS = ("piano", "violin", "canoe", "kite", "harp", "easel", "bike", "loom", "anvil", "lamp")


class Letters:
    """Vectors of letter pairs: enough meaning for a test, without a model."""

    name, dimension = "letters", 64

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for one, two in zip(text.lower(), text.lower()[1:], strict=False):
                row[(ord(one) * 31 + ord(two)) % self.dimension] += 1.0
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    embed_queries = embed


def conversation(number: int) -> Conversation:
    turns, questions = [], []
    for place, thing in enumerate(THINGS):
        said = (f"I bought a {thing} in shop {number}", f"A {thing}? How nice, tell me more")
        for part, text in enumerate(said):
            at = datetime(2024, 1, 1) + timedelta(days=place)
            speaker = ("Ann", "Ben")[part]
            turns.append(RawTurn(f"{place + 1}:{part + 1}", speaker, text, at, place + 1))
        questions.append(
            Question(
                f"q{place}", f"Where did Ann buy the {thing}?", "", "single", (f"{place + 1}:1",)
            )
        )
    return Conversation(f"c{number}", ("Ann", "Ben"), tuple(turns), tuple(questions), ())


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    path = tmp_path / "talk.jsonl"
    with path.open("w", encoding="utf-8") as lines:
        for number in range(5):
            one = conversation(number)
            sessions: dict[int, dict[str, object]] = {}
            for turn in one.turns:
                assert turn.time
                held = sessions.setdefault(turn.session, {"at": turn.time.isoformat(), "turns": []})
                held["turns"].append([turn.speaker, turn.text])  # type: ignore[attr-defined]
            asked = [
                {"q": q.text, "a": "shop", "evidence": list(q.evidence), "kind": "single"}
                for q in one.questions
            ]
            asked.append({"q": "How old is Ben?", "a": "", "evidence": [], "kind": "unanswerable"})
            record = {
                "id": one.id, "speakers": list(one.speakers),
                "sessions": list(sessions.values()), "questions": asked,
            }  # fmt: skip
            lines.write(json.dumps(record) + "\n")
    return [path]


def rows(count: int = 3) -> list:  # type: ignore[type-arg]
    told = told_of([conversation(n) for n in range(count)], set_name="s", group="g")
    return list(rows_of(told, Letters(), strangers=2))


def test_written_conversations_are_recognised(files: list[Path]) -> None:
    assert load_any(files[0]) == load_written_conversations(files[0])
    one = load_any(files[0])[0]
    assert len(one.turns) == 20
    assert [question.adversarial for question in one.adversarial_questions] == [True]


def test_the_slope_is_that_of_the_loss() -> None:
    packed = pack(rows(), turns_part)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=len(packed.hit))
    _, slope = loss_and_slope(scores, packed)
    for at in rng.integers(0, len(scores), 12).tolist():
        step = np.zeros(len(scores))
        step[at] = 1e-5
        up, down = (loss_and_slope(scores + sign * step, packed)[0] for sign in (1, -1))
        assert slope[at] == pytest.approx((up - down) / 2e-5, abs=1e-6)


def test_plackett_luce_climbs_the_expected_reward() -> None:
    scores = np.array([0.3, -0.2, 0.5, 0.0])
    shows = np.array([[True, False], [False, False], [False, False], [False, True]])

    def expected(scores: np.ndarray) -> float:
        total = 0.0
        for order in permutations(range(4), 2):
            left, chance = np.exp(scores), 1.0
            for one in order:
                chance *= left[one] / left.sum()
                left = np.where(np.arange(4) == one, 0.0, left)
            total += chance * shows[list(order)].any(axis=0).mean()
        return total

    policy = PlackettLuce(k=2, samples=40_000)
    slope, reward = policy.slope(scores, shows, np.random.default_rng(0))
    assert reward == pytest.approx(expected(scores), abs=0.01)
    for at in range(4):
        step = np.eye(4)[at] * 1e-4
        wanted = (expected(scores + step) - expected(scores - step)) / 2e-4
        assert slope[at] == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("algorithm", ["supervised", "grpo"])
def test_training_learns_and_keeps_the_signs(algorithm: str) -> None:
    config = RetrievalConfig(algorithm=algorithm, steps=12, ridge=1.0)  # type: ignore[arg-type]
    trainer = RankerTrainer(rows(), config)
    told = [trainer.advance() for _ in range(12)]
    if algorithm == "supervised":
        assert told[-1]["loss_turns"] < told[0]["loss_turns"]
    for name, weight in zip(FEATURES, trainer.linear(0).weights, strict=True):
        assert weight >= 0 or not name.startswith(RISING)
        assert weight <= 0 or not name.startswith(FALLING)


def test_probabilities_tell_what_is_answered() -> None:
    told = rows()
    trainer = RankerTrainer(told, RetrievalConfig(steps=10))
    for _ in range(10):
        trainer.advance()
    probability = fit_probability(trainer.linear(0), told, turns_part)
    assert np.isfinite(probability.answerable).all()
    assert (probability.hit[:2] >= 0).all()


def test_a_run_writes_a_ranker_and_goes_on_to_the_bit(files: list[Path], tmp_path: Path) -> None:
    recipe = recipe_with(Letters())
    given = {"data": files, "steps": 6, "save_steps": 3, "strangers": 2}
    whole = train_task("retrieval", recipe, RetrievalConfig(out=tmp_path / "whole", **given))
    half = train_task("retrieval", recipe, RetrievalConfig(out=tmp_path / "half", **given))
    final = half / "final"
    for file in final.iterdir():
        file.unlink()
    final.rmdir()
    train_task("retrieval", recipe, RetrievalConfig(resume=half))
    one, two = load_ranker(whole / "final"), load_ranker(half / "final")
    np.testing.assert_array_equal(one.turns.weights, two.turns.weights)
    assert one.embedder == "letters"
    assert one.made_from["held_out"]["questions"] == 10
    assert set(one.made_from["held_out"]) >= {"adopted", "gain_interval"}


def test_whole_conversations_are_held_out(files: list[Path]) -> None:
    kept, held = split(sources_of(files), RetrievalConfig(held_out=0.4))
    ids = [{one.id for source in part for one in source.conversations} for part in (kept, held)]
    assert (len(ids[0]), len(ids[1])) == (3, 2)
    assert not ids[0] & ids[1]


def test_a_file_without_evidence_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    record = {
        "id": "x", "speakers": ["Ann", "Ben"],
        "sessions": [{"at": "2024-01-01T10:00", "turns": [["Ann", "hello"]]}], "questions": [],
    }  # fmt: skip
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(BadInput, match=r"No question in .* says which turns answer it"):
        sources_of([path])


def test_the_task_is_registered() -> None:
    assert TASKS["retrieval"].settings is RetrievalConfig
