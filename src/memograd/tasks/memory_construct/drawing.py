"""How a step of memory-construct is drawn: walks through cases, groups as the credit compares them.

    local               at every chunk G answers from one prompt, each on a fork of one book; one
                        of them, drawn by the generator, is gone on with; a group a chunk and walk
    trajectory          G whole attempts at a case; a rollout is an attempt, a turn a chunk
    mem_alpha_original  the same attempts; a rollout is one chunk, and a group all of a case

So a step has more groups than scenarios, or larger ones: what counts and replaces groups by
scenario (dynamic sampling, pass rates, replay) does not go with this drawing.

Invariants: what is drawn depends on cases, policy, generator and step alone, so a resumed run draws
what the uninterrupted one would have drawn; `old_logprobs` are those of the very tokens in the
trees; the answers of a local group are to the same tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memograd.grpo.batch import Draw, rollout_ids
from memograd.grpo.drawing import Attempts, attempts_of
from memograd.policy.protocol import Policy, SampledGroup
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.types import Group, Rollout, Scenario, Turn
from memograd.tasks.memory_construct.answer_format import read
from memograd.tasks.memory_construct.case import BuildCase
from memograd.tasks.memory_construct.credit import (
    CREDITS,
    chunk_rewards,
    global_terms,
    local_rewards,
)
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.walk import BookWalk, Rules, Tried, tools_of

if TYPE_CHECKING:
    import torch


class Speaker:
    """A policy that answers the views of walks, tokens in and tokens out."""

    def __init__(
        self, policy: Policy, chat: ChatIds, rules: Rules, *, max_completion_length: int
    ) -> None:
        self.rules = rules
        self._policy = policy
        self._chat = chat
        self._max_completion_length = max_completion_length

    def prompt(self, walk: BookWalk) -> tuple[int, ...]:
        """The token ids of the walk's view."""
        return self._chat.first(walk.view.messages, tools_of(self.rules.build.format)).ids

    def sample(
        self,
        walks: Sequence[BookWalk],
        counts: Sequence[int],
        *,
        temperature: float,
        generator: torch.Generator | None,
    ) -> list[SampledGroup]:
        """So many answers to the view of each walk; every prompt is computed once."""
        return self._policy.sample(
            [self.prompt(walk) for walk in walks],
            num_generations=list(counts),
            temperature=temperature,
            max_completion_length=self._max_completion_length,
            generator=generator,
        )

    def tried(self, walk: BookWalk, sampled: SampledGroup, row: int) -> Tried:
        """What one of the answers makes of the walk's book."""
        said = self._chat.action_text(sampled.tree.branch(row))
        return walk.attempt(said, cut=sampled.stop_reasons[row] == "length")


@dataclass(frozen=True)
class Spoken:
    """An answer with its tokens, and the scenario it answers."""

    scenario: Scenario
    turn: Turn
    tried: Tried

    def rollout(self, rollout_id: str, reward: float) -> Rollout:
        """The answer as a rollout of its own."""
        return Rollout(
            id=rollout_id,
            turns=(self.turn,),
            completion=self.tried.answer,
            reward=reward,
            failed_calls=failures([self.tried]),
        )


class ConstructDrawing:
    """A `Drawing` whose scenarios are cases, known by their ids."""

    def __init__(
        self,
        speaker: Speaker,
        cases: Mapping[str, BuildCase],
        texts: Texts,
        *,
        num_generations: int,
    ) -> None:
        self._speaker = speaker
        self._cases = cases
        self._texts = texts
        self._num_generations = num_generations
        self._build = speaker.rules.build
        self._credit = CREDITS[self._build.credit]

    def __call__(self, scenarios: Sequence[Scenario], draw: Draw) -> Attempts:
        """Walk through the case of every scenario, and reward what was answered."""
        sizes = draw.sizes_of(scenarios, self._num_generations)
        local = self._credit.compared == "answers"
        walked = [
            self._started(scenario, draw.step, self._build.walks if local else size)
            for scenario, size in zip(scenarios, sizes, strict=True)
        ]
        counts = [size if local else 1 for size in sizes]
        spoken = self._go(walked, counts, scenarios, draw.temperature, draw.generator)
        groups: list[Group] = []
        for scenario, walks, chosen in zip(scenarios, walked, spoken, strict=True):
            groups += (
                self._by_answers(walks, chosen)
                if local
                else self._by_attempts(scenario, walks, chosen)
            )
        return attempts_of(_named(groups, draw))

    def metrics(self, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        """How often which operation was asked for, per answer, and the share of failed calls."""
        answers = [
            message["content"]
            for rollout in rollouts
            for message in rollout.attempt
            if message["role"] == "assistant"
        ] or [rollout.completion for rollout in rollouts]
        calls = [call for said in answers for call in read(said, self._build.format)]
        asked = Counter("malformed" if call.kind is None else call.kind.value for call in calls)
        failed = sum(sum(rollout.failed_calls.values()) for rollout in rollouts)
        return {
            "calls_per_chunk": len(calls) / len(answers),
            "calls": {name.lower(): count / len(answers) for name, count in sorted(asked.items())},
            "failed_call_fraction": failed / len(calls) if calls else 0.0,
        }

    def _started(self, scenario: Scenario, step: int, count: int) -> list[BookWalk]:
        case = self._cases[scenario.id].first_chunks(self._build.chunks_at(step))
        return [BookWalk(case, self._texts, self._speaker.rules) for _ in range(count)]

    def _go(
        self,
        walked: Sequence[Sequence[BookWalk]],
        counts: Sequence[int],
        scenarios: Sequence[Scenario],
        temperature: float,
        generator: torch.Generator | None,
    ) -> list[list[list[_ChunkAnswers]]]:
        """Take all walks to their ends, chunk by chunk together: [scenarios][walks][chunks]."""
        said: list[list[list[_ChunkAnswers]]] = [[[] for _ in walks] for walks in walked]
        while True:
            live = [
                (place, number)
                for place, walks in enumerate(walked)
                for number, walk in enumerate(walks)
                if not walk.over
            ]
            if not live:
                return said
            sampled = self._speaker.sample(
                [walked[place][number] for place, number in live],
                [counts[place] for place, _ in live],
                temperature=temperature,
                generator=generator,
            )
            for (place, number), group in zip(live, sampled, strict=True):
                walk = walked[place][number]
                one = self._said(scenarios[place], walk, number, group, generator)
                said[place][number].append(one)
                walk.take(one.answers[one.chosen].tried)

    def _said(
        self,
        scenario: Scenario,
        walk: BookWalk,
        number: int,
        group: SampledGroup,
        generator: torch.Generator | None,
    ) -> _ChunkAnswers:
        name = f"{scenario.id}/chunk-{walk.position}"
        of_chunk = Scenario(
            id=name if number == 0 else f"{name}/walk-{number}",
            messages=walk.view.messages,
            columns=scenario.columns,
        )
        rows = range(len(group.texts))
        answers = [
            Spoken(
                of_chunk,
                Turn(
                    observation_ids=group.tree.prompt,
                    action_ids=group.tree.branch(row),
                    logprobs=group.logprobs[row],
                    stop_reason=group.stop_reasons[row],
                ),
                self._speaker.tried(walk, group, row),
            )
            for row in rows
        ]
        rewards = [0.0] * len(answers)
        if self._credit.compared == "answers":
            rewards = local_rewards(walk, [one.tried for one in answers])
        return _ChunkAnswers(answers, rewards, _drawn(len(answers), generator))

    def _by_answers(
        self, walks: Sequence[BookWalk], said: Sequence[Sequence[_ChunkAnswers]]
    ) -> list[Group]:
        groups = []
        terms = global_terms(walks)
        for of_walk, of_chunks in zip(said, terms, strict=True):
            for one, term in zip(of_walk, of_chunks, strict=True):
                rewards = list(one.rewards)
                rewards[one.chosen] += term
                rollouts = tuple(
                    answer.rollout("", reward)
                    for answer, reward in zip(one.answers, rewards, strict=True)
                )
                groups.append(Group(one.answers[0].scenario, rollouts))
        return groups

    def _by_attempts(
        self, scenario: Scenario, walks: Sequence[BookWalk], said: Sequence[Sequence[_ChunkAnswers]]
    ) -> list[Group]:
        rollouts: list[Rollout] = []
        for walk, of_walk in zip(walks, said, strict=True):
            rewards = chunk_rewards(walk)
            spoken = [one.answers[0] for one in of_walk]
            if self._credit.compared == "attempts":
                rollouts.append(_attempt(spoken, sum(rewards) / len(rewards)))
            else:
                rollouts += [
                    one.rollout("", reward) for one, reward in zip(spoken, rewards, strict=True)
                ]
        return [Group(scenario, tuple(rollouts))]


@dataclass(frozen=True)
class _ChunkAnswers:
    """The answers to one chunk, what each is worth, and which one the walk went on with."""

    answers: list[Spoken]
    rewards: list[float]
    chosen: int


def failures(tried: Sequence[Tried]) -> dict[str, int]:
    """How often calls failed, by the reason; reasons that name a number are one reason."""
    reasons = [one.failure for each in tried for one in each.outcomes if one.failure is not None]
    return dict(Counter("".join(c for c in reason if not c.isdigit()) for reason in reasons))


def _drawn(count: int, generator: torch.Generator | None) -> int:
    """A number below `count`; drawn only where there is a choice."""
    if count == 1:
        return 0
    import torch

    device = "cpu" if generator is None else generator.device
    return int(torch.randint(count, (1,), generator=generator, device=device))


def _attempt(spoken: Sequence[Spoken], reward: float) -> Rollout:
    """A whole attempt: every chunk a turn that starts a row of its own."""
    messages = []
    for one in spoken:
        messages += [*one.scenario.messages, {"role": "assistant", "content": one.tried.answer}]
    return Rollout(
        id="",
        turns=tuple(one.turn for one in spoken),
        completion=spoken[-1].tried.answer,
        reward=reward,
        messages=tuple(messages),  # type: ignore[arg-type]
        opening_length=len(spoken[0].scenario.messages),
        failed_calls=failures([one.tried for one in spoken]),
    )


def _named(groups: Sequence[Group], draw: Draw) -> list[Group]:
    """The groups with the ids that their rollouts go by."""
    ids = rollout_ids(
        [group.scenario for group in groups],
        [len(group.rollouts) for group in groups],
        draw,
    )
    return [
        Group(
            group.scenario,
            tuple(replace(one, id=name) for one, name in zip(group.rollouts, names, strict=True)),
        )
        for group, names in zip(groups, ids, strict=True)
    ]
