"""The task retrieval: gradients, the life of a run, what is held out, and the guard."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd.data import Conversation, Question, load_any, load_written_conversations
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.distributed import World
from memograd.memory import RawTurn
from memograd.memory.chat.chat_model import ChatMessage
from memograd.memory.search.ranker.features import FALLING, FEATURES, RISING
from memograd.memory.search.ranker.files import (
    RANKER_FILE,
    load_ranker,
    save_ranker,
    shipped_ranker,
)
from memograd.tasks.base.life import train_task
from memograd.tasks.base.reading import Reader
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.registry import TASKS
from memograd.tasks.retrieval.learning import (
    PlackettLuce,
    evidence_shown,
    fit_probability,
    guard,
    items_part,
    loss_and_slope,
    pack,
    turns_part,
)
from memograd.tasks.retrieval.material import rows_of, told_of
from memograd.tasks.retrieval.recipe import evaluate, recipe_with, sources_of, split
from memograd.tasks.retrieval.settings import RetrievalConfig
from memograd.tasks.retrieval.trainer import RankerTrainer, answered

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


def conversation(number: int, things: Sequence[str] = THINGS) -> Conversation:
    turns, questions = [], []
    for place, thing in enumerate(things):
        said = (f"I bought a {thing} in shop {number}", f"A {thing}? How nice, tell me more")
        for part, text in enumerate(said):
            at = datetime(2024, 1, 1) + timedelta(days=place)
            speaker = ("Ann", "Ben")[part]
            turns.append(RawTurn(f"{place + 1}:{part + 1}", speaker, text, at, place + 1))
        questions.append(
            Question(
                f"q{place}",
                f"Where did Ann buy the {thing}?",
                f"shop {number}",
                "single",
                (f"{place + 1}:1",),
            )
        )
    return Conversation(f"c{number}", ("Ann", "Ben"), tuple(turns), tuple(questions), ())


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [written(tmp_path / "talk.jsonl", [conversation(number) for number in range(5)])]


def written(path: Path, conversations: Sequence[Conversation]) -> Path:
    with path.open("w", encoding="utf-8") as lines:
        for one in conversations:
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
    return path


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
    slope, reward = policy.slope(scores, evidence_shown(shows), np.random.default_rng(0))
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


class FindsShop:
    """Answers rightly where the notes hold the thing that is asked about."""

    name = "finds-shop"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
    ) -> str:
        notes, question = messages[-1]["content"].split("Question:")
        self.seen.append(notes)
        thing = question.split("the ")[1].rstrip("?\n")
        found = re.search(f"bought a {thing} in (shop \\d)", notes)
        return found[1] if found else "I don't know"


def test_the_answer_of_a_reader_is_the_reward() -> None:
    told = rows(1)
    chat = FindsShop()
    rewards = answered(told, turns_part, Reader(chat))
    packed = pack(told, turns_part)
    hit = np.flatnonzero(packed.hit[: packed.sizes[0]])
    miss = np.flatnonzero(~packed.hit[: packed.sizes[0]])[:2]
    orders = np.array([[miss[1], hit[0]], [miss[0], miss[1]]])
    assert rewards[0](orders).tolist() == [1.0, 0.0]
    asked = len(chat.seen)
    rewards[0](orders[:, ::-1])
    assert len(chat.seen) == asked  # the same notes, in the order in which they were said
    config = RetrievalConfig(
        algorithm="grpo", reward="answer", top_k=2, samples=4, questions_per_step=4, steps=30,
        ridge=0.0,
    )  # fmt: skip
    trainer = RankerTrainer(told, config, Reader(FindsShop()))
    measured = [trainer.advance()["reward_turns"] for _ in range(30)]
    assert np.mean(measured[-8:]) > np.mean(measured[:8])


def test_the_answer_as_the_reward_with_a_model_that_reads(
    tmp_path: Path, tiny_model_folder: Path
) -> None:
    few = [conversation(number, THINGS[:3]) for number in range(3)]
    files = [written(tmp_path / "talk.jsonl", few)]
    config = RetrievalConfig(
        data=files, out=tmp_path / "run", algorithm="grpo", reward="answer", steps=1, top_k=2,
        samples=2, questions_per_step=1, held_out=0.4, reader=str(tiny_model_folder),
    )  # fmt: skip
    run = train_task("retrieval", recipe_with(Letters()), config)
    answers = (run / "reader.jsonl").read_text("utf-8").splitlines()
    assert answers and all(json.loads(line)["answer"] for line in answers)
    measured = json.loads((run / "metrics.jsonl").read_text("utf-8").splitlines()[0])
    assert 0 <= measured["reward_turns"] <= 1
    assert load_ranker(run / "final").made_from["reward"] == "answer"


def test_the_answer_as_the_reward_needs_grpo() -> None:
    with pytest.raises(ValueError, match="reward=answer needs algorithm=grpo"):
        RetrievalConfig(reward="answer")


def test_probabilities_tell_what_is_answered() -> None:
    told = rows()
    trainer = RankerTrainer(told, RetrievalConfig(steps=10))
    for _ in range(10):
        trainer.advance()
    probability = fit_probability(trainer.linear(0), told, turns_part)
    assert np.isfinite(probability.answerable).all()
    assert (probability.hit[:2] >= 0).all()


def test_talks_that_no_memory_is_read_from_train_a_ranker_of_turns() -> None:
    asked = ("Why so blue?", "What about the kite?", "Where is it?", "Is it in the shed?")
    turns = tuple(
        RawTurn(f"1:{at}", ("Ann", "Ben")[at % 2], text, datetime(2024, 1, 1), 1)
        for at, text in enumerate(asked)
    )
    question = Question("q", "Where is the kite?", "shed", "single", ("1:3",))
    talk = Conversation("c", ("Ann", "Ben"), turns, (question,), ())
    told = list(rows_of(told_of([talk], set_name="s", group="g"), Letters()))
    assert [row.items for row in told] == [None]
    trainer = RankerTrainer(told, RetrievalConfig(steps=1))
    trainer.advance()
    # Nothing was taught of items, so theirs is the order of fusion and not that of learning.
    features = np.zeros((2, len(FEATURES)))
    features[:, FEATURES.index("fusion.log")] = [-1.0, 0.0]
    assert trainer.linear(1).scores(features).argmax() == 1
    for kind, part in enumerate((turns_part, items_part)):
        probability = fit_probability(trainer.linear(kind), told, part)
        assert np.isfinite(probability.answerable).all()


def test_a_ranker_that_finds_fewer_items_than_fusion_is_not_adopted() -> None:
    told = rows()
    trainer = RankerTrainer(told, RetrievalConfig(steps=40))
    while trainer.step < 40:
        trainer.advance()
    turns, items = trainer.linear(0), trainer.linear(1)
    judges = [replace(row, turns=replace(row.turns, fused=-row.turns.fused)) for row in told]
    judged = guard(judges, turns, items, 1)
    assert judged["adopted"] and judged["items"]["questions"] == judged["questions"]
    backwards = replace(items, weights=-items.weights)
    assert not guard(judges, turns, backwards, 1)["adopted"]


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


def test_several_processes_are_refused_before_there_is_a_folder(files: list[Path]) -> None:
    job = recipe_with(Letters()).make_job(RetrievalConfig(data=files), None)
    with pytest.raises(BadInput, match=r"retrieval trains in one process: .* without torchrun"):
        job.share(World(size=2))


def test_whole_conversations_are_held_out(files: list[Path]) -> None:
    kept, held = split(sources_of(files), RetrievalConfig(held_out=0.4))
    ids = [{one.id for source in part for one in source.conversations} for part in (kept, held)]
    assert (len(ids[0]), len(ids[1])) == (3, 2)
    assert not ids[0] & ids[1]


def test_nothing_is_measured_that_was_trained_on(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"eval_data holds c0, .*, which data holds too"):
        split(sources_of(files), RetrievalConfig(data=files, eval_data=files))
    run = tmp_path / "run"
    told = RetrievalConfig(data=files, held_out=0.4).model_dump_json()
    RunFolder.create(run, told, task="retrieval")
    save_ranker(shipped_ranker(), run / "final" / RANKER_FILE)
    with pytest.raises(BadInput, match=r"was trained on c\d, .* give others with --data"):
        evaluate(run, Evaluation(files[0]))
    with pytest.raises(BadInput, match="--conversation and --baselines are for runs on"):
        evaluate(run, Evaluation(files[0], ["c1"]))


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
