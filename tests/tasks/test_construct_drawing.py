"""Drawing memory-construct: whose tokens, which groups, which rewards, and the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.quick import quick

from memograd.config import LoraConfig
from memograd.data.lifelog import LifelogSettings, generate_lifelogs
from memograd.grpo.batch import Draw
from memograd.grpo.drawing import Attempts
from memograd.policy.language_model import LanguageModel
from memograd.policy.protocol import SampledGroup
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Scenario
from memograd.tasks.memory_construct.case import BuildCase, case_of_log
from memograd.tasks.memory_construct.credit import (
    CREDITS,
    LOCAL,
    MEM_ALPHA_ORIGINAL,
    TRAJECTORY,
    Credit,
    chunk_rewards,
)
from memograd.tasks.memory_construct.drawing import ConstructDrawing, Speaker
from memograd.tasks.memory_construct.measure import GoldKeeper
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.settings import ConstructConfig
from memograd.tasks.memory_construct.walk import BookWalk, Rules

CHUNKS, SIZE = 3, 4


@pytest.fixture(scope="module")
def cases() -> dict[str, BuildCase]:
    logs = generate_lifelogs(2, 5, LifelogSettings())
    return {log.id: case_of_log(log, turns_per_chunk=4).first_chunks(CHUNKS) for log in logs}


@pytest.fixture(scope="module")
def texts(trigrams) -> Texts:
    return Texts(trigrams(64))


@pytest.fixture(scope="module")
def tiny(tiny_model_folder: Path) -> LanguageModel:
    return LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")


@dataclass
class Scripted:
    """The tiny model's tokens, but answers as given: those of a chunk in turn, by its position."""

    inner: LanguageModel
    answers: Sequence[Sequence[str]]
    position: int = 0

    def sample(
        self, prompts: Sequence[Sequence[int]], *, num_generations: Any, **_: Any
    ) -> list[SampledGroup]:
        said = self.answers[self.position]
        self.position += 1
        return [self._group(prompt, said) for prompt in prompts]

    def _group(self, prompt: Sequence[int], said: Sequence[str]) -> SampledGroup:
        encode = self.inner.tokenizer.encode
        ids = [(*encode(one, add_special_tokens=False), 0) for one in said]
        return SampledGroup(
            TokenTree.from_branches(tuple(prompt), ids),
            tuple(np.full(len(row), -0.5, dtype=np.float32) for row in ids),
            tuple(said),
            ("end",) * len(ids),
        )


def drawing_of(
    policy: Any,
    tiny: LanguageModel,
    cases: dict[str, BuildCase],
    texts: Texts,
    credit: Credit = LOCAL,
    walks: int = 2,
    **weights: float,
) -> ConstructDrawing:
    chat = ChatIds(tiny.tokenizer, end_ids=tiny.end_ids)
    given = {"credit": credit.name, "walks": walks, "chunks": CHUNKS, **weights}
    build = ConstructConfig.model_validate({**given, "first_chunks": 1, "grow_every": 1})
    speaker = Speaker(policy, chat, Rules(build), max_completion_length=12)
    return ConstructDrawing(speaker, cases, texts, num_generations=SIZE)


def draw(
    drawing: ConstructDrawing, cases: dict[str, BuildCase], seed: int = 0, step: int = 9
) -> Attempts:
    return drawing(
        [Scenario(name, (), {"n": 1}) for name in cases],
        Draw(step, generator=torch.Generator().manual_seed(seed)),
    )


@pytest.mark.parametrize("name", list(CREDITS))
def test_old_logprobs_are_those_of_the_very_tokens(
    name: str, tiny: LanguageModel, cases: dict[str, BuildCase], texts: Texts
) -> None:
    drawn = draw(drawing_of(tiny, tiny, cases, texts, CREDITS[name]), cases)
    with torch.no_grad():
        scored = tiny.logprobs(drawn.trees, temperature=1.0)
    rollouts = [rollout for group in drawn.groups for rollout in group.rollouts]
    seen: dict[int, list[tuple[int, ...]]] = {}
    row = 0
    for number, tree in enumerate(drawn.trees):
        for branch, rollout in enumerate(drawn.rollouts_of_tree[number]):
            old = drawn.old_logprobs[number][branch]
            new = scored.logprobs_RT[row, : len(old)].numpy()
            keep = tree.scored[branch]
            np.testing.assert_allclose(old[keep], new[keep], atol=2e-4)
            seen.setdefault(rollout, []).append((*tree.prompt, *tree.branch(branch)))
            row += 1
    for number, rollout in enumerate(rollouts):
        assert seen[number] == [(*t.observation_ids, *t.action_ids) for t in rollout.turns]


def test_a_local_group_is_one_chunk_from_one_state(
    tiny: LanguageModel, cases: dict[str, BuildCase], texts: Texts
) -> None:
    drawn = draw(drawing_of(tiny, tiny, cases, texts), cases)
    assert len(drawn.groups) == len(cases) * 2 * CHUNKS
    first = next(iter(cases))
    assert [group.scenario.id for group in drawn.groups[: 2 * CHUNKS]] == [
        f"{first}/chunk-{chunk}{walk}" for walk in ("", "/walk-1") for chunk in range(CHUNKS)
    ]
    for group in drawn.groups:
        assert len(group.rollouts) == SIZE
        assert len({rollout.turns[0].observation_ids for rollout in group.rollouts}) == 1
        assert all(rollout.reward is not None for rollout in group.rollouts)
    ids = [rollout.id for group in drawn.groups for rollout in group.rollouts]
    assert len(set(ids)) == len(ids) and "chunk-1" in ids[SIZE]


@pytest.mark.parametrize("name", quick(list(CREDITS), (0,)))
def test_the_same_generator_draws_the_same(
    name: str, tiny: LanguageModel, cases: dict[str, BuildCase], trigrams
) -> None:
    """With texts that were embedded before, and with fresh ones, as after a resume."""
    known = Texts(trigrams(64))
    one = draw(drawing_of(tiny, tiny, cases, known, CREDITS[name]), cases, seed=3)
    again = draw(drawing_of(tiny, tiny, cases, known, CREDITS[name]), cases, seed=3)
    fresh = draw(drawing_of(tiny, tiny, cases, Texts(trigrams(64)), CREDITS[name]), cases, seed=3)
    other = draw(drawing_of(tiny, tiny, cases, known, CREDITS[name]), cases, seed=4)

    def told(drawn: Attempts) -> list[Any]:
        return [
            (r.id, r.completion, r.reward, [t.action_ids for t in r.turns])
            for group in drawn.groups
            for r in group.rollouts
        ]

    assert told(one) == told(again) == told(fresh) != told(other)


def test_cases_grow_with_the_steps(
    tiny: LanguageModel, cases: dict[str, BuildCase], texts: Texts
) -> None:
    drawing = drawing_of(tiny, tiny, cases, texts, walks=1)
    counts = [len(draw(drawing, cases, step=step).groups) for step in (1, 2, 3, 4)]
    assert counts == [len(cases) * chunks for chunks in (1, 2, 3, 3)]


def test_the_better_answer_earns_more_and_the_walk_goes_on_with_one_of_them(
    tiny: LanguageModel, cases: dict[str, BuildCase], texts: Texts
) -> None:
    name, case = next((n, c) for n, c in cases.items() if any(a.concerns(0) for a in c.asked))
    walk = BookWalk(case, texts, Rules())
    keeper = GoldKeeper()
    gold = [keeper.answer(walk) for _ in range(CHUNKS)]
    policy = Scripted(tiny, [[said, "=", "- 7", "hm"] for said in gold])
    drawn = draw(drawing_of(policy, tiny, {name: case}, texts, walks=1), {name: case})
    rewards = [[r.reward for r in group.rollouts] for group in drawn.groups]
    best, nothing, failing, talking = rewards[0]
    assert best > nothing > failing
    assert failing == pytest.approx(talking)
    # The second prompt shows what one of the answers wrote, and no other.
    written = [said.removeprefix("+ ") for said in gold[0].splitlines()]
    shown = drawn.groups[1].scenario.messages[1]["content"]
    assert all(text in shown for text in written) or "(empty)" in shown
    assert [r.failed_calls for r in drawn.groups[0].rollouts] == [
        {},
        {},
        {"there is no item ": 1},
        {"malformed": 1},
    ]


def test_the_return_of_a_walk_goes_to_what_it_went_on_with(
    tiny: LanguageModel, cases: dict[str, BuildCase], texts: Texts
) -> None:
    """Rewards with and without the global term differ in at most one answer a group, and what is
    given to one walk is taken from the other."""
    name, case = next(iter(cases.items()))
    walk = BookWalk(case, texts, Rules())
    keeper = GoldKeeper()
    said = [[keeper.answer(walk), "="] for _ in range(CHUNKS)]

    def rewards(weight: float, seed: int) -> np.ndarray:
        drawing = drawing_of(Scripted(tiny, said), tiny, {name: case}, texts, global_weight=weight)
        drawn = draw(drawing, {name: case}, seed=seed)
        return np.array([[r.reward for r in group.rollouts] for group in drawn.groups])

    all_differences = [rewards(1.0, seed) - rewards(0.0, seed) for seed in range(6)]
    # Walks that happened to choose alike have nothing to compare.
    differences = next(one for one in all_differences if one.any())
    assert (np.count_nonzero(np.abs(differences) > 1e-9, axis=1) <= 1).all()
    by_chunk = differences.sum(axis=1).reshape(2, CHUNKS)
    np.testing.assert_allclose(by_chunk.sum(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("credit", [TRAJECTORY, MEM_ALPHA_ORIGINAL], ids=lambda one: one.name)
def test_attempts(
    credit: Credit, tiny: LanguageModel, cases: dict[str, BuildCase], texts: Texts
) -> None:
    name, case = next(iter(cases.items()))
    said = ["+ Tom lives in Lyon", "=", "- 1"]
    policy = Scripted(tiny, [[one] for one in said])
    drawn = draw(drawing_of(policy, tiny, {name: case}, texts, credit), {name: case})
    walk = BookWalk(case, texts, Rules(ConstructConfig.model_validate({"credit": credit.name})))
    for one in said:
        walk.take(walk.attempt(one))
    expected = chunk_rewards(walk)
    (group,) = drawn.groups
    if credit is TRAJECTORY:
        assert len(group.rollouts) == SIZE
        rollout = group.rollouts[0]
        assert rollout.reward == pytest.approx(sum(expected) / CHUNKS)
        assert len(rollout.turns) == CHUNKS and all(turn.starts_row for turn in rollout.turns)
        assert [m["content"] for m in rollout.attempt if m["role"] == "assistant"] == said
    else:
        # All positions of all attempts in one heap: the third defect.
        assert len(group.rollouts) == SIZE * CHUNKS
        assert [r.reward for r in group.rollouts[:CHUNKS]] == pytest.approx(expected)


def test_metrics_count_operations(
    tiny: LanguageModel, cases: dict[str, BuildCase], texts: Texts
) -> None:
    name, case = next(iter(cases.items()))
    said = [["+ a\n+ b", "=", "- 1", "hm"]] * CHUNKS
    drawing = drawing_of(Scripted(tiny, said), tiny, {name: case}, texts, walks=1)
    drawn = draw(drawing, {name: case})
    metrics = drawing.metrics([r for group in drawn.groups for r in group.rollouts])
    assert metrics["calls"] == {"add": 0.5, "delete": 0.25, "malformed": 0.25}
    assert metrics["calls_per_chunk"] == 1 and 0.25 <= metrics["failed_call_fraction"] <= 0.5
