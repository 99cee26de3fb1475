"""GRPO on later questions: decisions are compared by what can be answered afterwards.

A step takes the next message of `batch` dialogues. `group` joint decisions of each are drawn from
the policy (`decisions`), in the same state, and scored by `questions`: the advantage of one is what
it is worth beside the others. The loss is that of `grpo.loss`, on the policy that drew them, with
every single choice of a joint decision as a token; a KL term keeps it near the model that training
began with. No dropout: the policy is the model that serves.

Dialogues are walked by the decisions without noise, so the states are those of the policy itself.

Invariant: a run that was stopped and resumed gives the weights of the run that never stopped; the
advantages of a group sum to zero.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from memograd.grpo.advantage import group_advantages
from memograd.grpo.loss import LossTerms, grpo_loss
from memograd.memory.relations.rows import RowBuilder
from memograd.tasks.relations.decisions import (
    DecisionDistributions,
    Posed,
    State,
    by_rule,
    carried,
    policy_of,
    posed_for_training,
)
from memograd.tasks.relations.learning import Steps
from memograd.tasks.relations.network import batch_of
from memograd.tasks.relations.questions import AskedDialogue, Held
from memograd.tasks.relations.rows import TOKENS_A_BATCH
from memograd.tasks.relations.settings import RelationsConfig


class _ReadingPlace(NamedTuple):
    """Where a dialogue is being read, and what the memory holds of it."""

    dialogue: int
    turn: int
    held: dict[str, Held]


@dataclass
class DialogueWalk:
    """Several dialogues side by side, each turn in its order; a new one where one ends.

    Invariant: what comes next is a function of the seed and of `state`.
    """

    dialogues: Sequence[AskedDialogue]
    seed: int
    started: int = 0
    places: list[_ReadingPlace] = field(default_factory=list)

    def next(self, count: int) -> list[tuple[_ReadingPlace, State]]:
        """The next states that a model decides about, at most one a dialogue."""
        while len(self.places) < count:
            self.places.append(_ReadingPlace(self._drawn(self.started), 0, {}))
            self.started += 1
        found: list[tuple[_ReadingPlace, State]] = []
        places, self.places = self.places, []
        for place in places:
            settled = self._ruled(place)
            if settled is not None:
                found.append((settled, self._state(settled)))
        return found if found else self.next(count)

    def move(self, place: _ReadingPlace, held: dict[str, Held]) -> None:
        """Go on behind that place with what the memory holds then."""
        if place.turn + 1 < len(self.dialogues[place.dialogue].turns):
            self.places.append(_ReadingPlace(place.dialogue, place.turn + 1, held))

    @property
    def state(self) -> dict[str, Any]:
        """What `restore` needs, of plain values."""
        return {
            "started": self.started,
            "places": [
                [one.dialogue, one.turn, {name: [*held] for name, held in one.held.items()}]
                for one in self.places
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.started = state["started"]
        self.places = [
            _ReadingPlace(dialogue, turn, {name: Held(*held) for name, held in of.items()})
            for dialogue, turn, of in state["places"]
        ]

    def _state(self, place: _ReadingPlace) -> State:
        return State(self.dialogues[place.dialogue], place.turn, place.held)

    def _ruled(self, place: _ReadingPlace) -> _ReadingPlace | None:
        """The first place from here on that a model decides about; None where there is none."""
        while (held := by_rule(self._state(place))) is not None:
            if place.turn + 1 == len(self.dialogues[place.dialogue].turns):
                return None
            place = _ReadingPlace(place.dialogue, place.turn + 1, held)
        return place

    def _drawn(self, number: int) -> int:
        passed, at = divmod(number, len(self.dialogues))
        order = list(range(len(self.dialogues)))
        random.Random(f"{self.seed}:{passed}:walk").shuffle(order)
        return order[at]


@dataclass
class QuestionTraining(Steps):
    """Learns which decisions leave later questions answerable."""

    dialogues: Sequence[AskedDialogue] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.network.eval()
        self._start = copy.deepcopy(self.network).requires_grad_(False)
        self._walk = DialogueWalk(self.dialogues, self.config.seed)
        self._builder = RowBuilder(self.e5)

    def more_state(self) -> dict[str, Any]:
        """Where the dialogues are."""
        return {"walk": self._walk.state}

    def go_on(self, state: dict[str, Any]) -> None:
        """Take up where the dialogues were."""
        self._walk.restore(state["walk"])

    def loss(self) -> tuple[torch.Tensor, dict[str, Any]]:
        """The loss of one group a dialogue; moves every dialogue on."""
        config, later = self.config, self.config.later
        thresholds = self.about["thresholds"]
        rng = random.Random(f"{config.seed}:{self.step}:states")
        found = self._walk.next(config.batch)
        posed = [
            posed_for_training(
                state, self.examples, self._builder, config.items_as_read, later, thresholds, rng
            )
            for _, state in found
        ]
        policy, reference = self._policies(posed)
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + self.step)
        items_BGI, segments_BGS = policy.sample(config.group, generator)
        rewards_BG = rewards(posed, items_BGI, segments_BGS, config)
        advantages = group_advantages(
            rewards_BG.ravel(), [config.group] * len(posed), config.advantage
        )
        for b, ((place, _), one) in enumerate(zip(found, posed, strict=True)):
            chosen = policy.without_noise(b, len(one.items), len(one.segments))
            self._walk.move(place, carried(one, *chosen))

        logprobs_RT = policy.logprobs(items_BGI, segments_BGS).flatten(0, 1)
        rollouts = len(logprobs_RT)
        # A joint decision is one action: the log-probabilities of its choices add up.
        weights_RT = policy.real_BT.repeat_interleave(config.group, 0) / rollouts
        parts = grpo_loss(
            # Nothing is clipped: every decision is learnt from once, as it was drawn.
            LossTerms(beta=config.beta),
            logprobs_RT=logprobs_RT,
            old_logprobs_RT=logprobs_RT.detach(),
            reference_logprobs_RT=reference.logprobs(items_BGI, segments_BGS).flatten(0, 1),
            entropies_RT=torch.zeros_like(logprobs_RT),
            advantages_RT=torch.from_numpy(advantages.advantages_K).float()[:, None],
            weights_RT=weights_RT,
        )
        return parts.loss, {
            "reward_mean": float(rewards_BG.mean()),
            "reward_std": float(rewards_BG.std()),
            "reward_normalised_mean": float(advantages.advantages_K.mean()),
            "reward_normalised_std": float(advantages.advantages_K.std()),
            "varied": float(advantages.varied_B.mean()),
            "kl": float(parts.kl),
            "pass": (self._walk.started - 1) // len(self.dialogues),
            "tokens": sum(len(one.row.tokens) for one in posed),
        }

    def _policies(
        self, posed: Sequence[Posed]
    ) -> tuple[DecisionDistributions, DecisionDistributions]:
        """The policy, and that of the start. Rows of like length are computed together, and at most
        TOKENS_A_BATCH tokens at once; what does not learn is computed once for both."""
        order = sorted(range(len(posed)), key=lambda n: len(posed[n].row.tokens))
        parts: list[list[int]] = [[]]
        for n in order:
            if (len(parts[-1]) + 1) * len(posed[n].row.tokens) > TOKENS_A_BATCH // 2 and parts[-1]:
                parts.append([])
            parts[-1].append(n)
        now, then = [], []
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(self.config.bfloat16)):
            for part in parts:
                batch = batch_of([posed[n].row for n in part], self.table, self.e5.pad)
                encoded = self.network.encode(batch)
                now.append(self.network.read(encoded, batch))
                with torch.no_grad():
                    if not self.network.frozen:
                        encoded = self._start.encode(batch)
                    then.append(self._start.read(encoded, batch))
        back = torch.tensor(order).argsort()
        temperatures = (self.about["relation_temperature"], self.about["worth_temperature"])
        policy, reference = (
            policy_of(
                _beside([relations for relations, _ in computed])[back],
                _beside([values for _, values in computed])[back],
                posed,
                temperatures,
                self.about["thresholds"],
            )
            for computed in (now, then)
        )
        return policy, reference


def rewards(
    posed: Sequence[Posed],
    items_BGI: torch.Tensor,
    segments_BGS: torch.Tensor,
    config: RelationsConfig,
) -> np.ndarray:
    """What every joint decision is worth `[B, G]`."""
    found = np.zeros(items_BGI.shape[:2])
    for b, one in enumerate(posed):
        known: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        for g in range(found.shape[1]):
            chosen = (
                tuple(items_BGI[b, g, : len(one.items)].tolist()),
                tuple(segments_BGS[b, g, : len(one.segments)].tolist()),
            )
            if chosen not in known:
                known[chosen] = one.reward(*chosen, config.later)
            found[b, g] = known[chosen]
    return found


def _beside(logits: Sequence[torch.Tensor]) -> torch.Tensor:
    """`[b, spans, labels]` one after the other, padded to the most spans."""
    most = max(part.shape[1] for part in logits)
    padded = [torch.nn.functional.pad(part, (0, 0, 0, most - part.shape[1])) for part in logits]
    return torch.cat(padded)
