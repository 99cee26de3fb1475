"""DQN: logits are read as action values, exploration is epsilon-greedy (arXiv:1312.5602).

    target of (s, a, r, s')   r + gamma max Q_target(s', .)       r at the end of a walk
    epsilon                    epsilon * epsilon_decay ^ step, not below epsilon_min

Past decisions are replayed from a bounded buffer; the target network follows slowly
(arXiv:1509.02971). Invariants: actions that are not allowed are neither tried nor maximised over;
the replay buffer is part of the state.
"""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from memograd.memory.manager.trained.network import Batch
from memograd.tasks.memory_ops.learning.experience import Decisions
from memograd.tasks.memory_ops.learning.trainer import GRPOMemoryTrainer
from memograd.tasks.memory_ops.settings import OperationsConfig

REPLAYED: Final = 10_000  # decisions; about 400 MB of observations at 384 dimensions
FOLLOW: Final = 0.05  # of the way to the network, after every step of the optimiser


class DQNMemoryTrainer(GRPOMemoryTrainer):
    """Q-learning with replay and a target network."""

    name: ClassVar[str] = "dqn"
    compares: ClassVar[bool] = False

    def __init__(self, network: nn.Module, config: OperationsConfig) -> None:
        super().__init__(network, config)
        self._target = copy.deepcopy(network)
        self._replay: Decisions | None = None

    @property
    def epsilon(self) -> float:
        """Share of random actions now."""
        config = self.config
        return max(config.epsilon_min, config.epsilon * config.epsilon_decay**self.step)

    def choose_group(self, states: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The best action, or with probability epsilon any allowed one; log-probabilities too."""
        with torch.no_grad():
            values_BA = self.network(states)[0]
        allowed_BA = torch.from_numpy(states.allowed_BA)
        greedy_BA = functional.one_hot(values_BA.argmax(dim=1), values_BA.shape[1])
        any_BA = allowed_BA / allowed_BA.sum(dim=1, keepdim=True)
        drawn_BA = (1 - self.epsilon) * greedy_BA + self.epsilon * any_BA
        actions_BG = self._draw(drawn_BA, self.group_size)
        return actions_BG.numpy(), drawn_BA.gather(1, actions_BG).log().numpy()

    def learn(self, decisions: Decisions) -> dict[str, float]:
        """Add the decisions to the replay buffer and learn from as many drawn out of it."""
        self._replay = decisions if self._replay is None else _joined(self._replay, decisions)
        self._replay = _last(self._replay, REPLAYED)
        drawn = torch.randint(
            len(self._replay), (len(decisions),), generator=self.generator
        ).numpy()
        measured = super().learn(_take(self._replay, drawn))
        return {**measured, "epsilon": self.epsilon}

    def targets(self, decisions: Decisions) -> np.ndarray:
        """Nothing beforehand: targets move with the target network."""
        return np.zeros((len(decisions), 1))

    def loss(
        self, decisions: Decisions, targets: np.ndarray, rows: np.ndarray
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Squared error of the tried actions' values, beyond 1 its absolute (Huber)."""
        assert self._replay is not None
        values_BA = self.network(decisions.states.take(rows))[0]
        tried_BG = values_BA.gather(1, torch.from_numpy(decisions.actions_NG[rows]))
        target_BG = torch.from_numpy(decisions.rewards_NG[rows]).float()
        following_B = decisions.following_N[rows]
        goes_on_B = following_B >= 0
        if self.config.gamma > 0 and goes_on_B.any():
            with torch.no_grad():
                next_states = self._replay.states.take(following_B[goes_on_B])
                best_B = self._target(next_states)[0].max(dim=1).values
            target_BG[torch.from_numpy(goes_on_B), 0] += self.config.gamma * best_B
        self._follow()
        return functional.smooth_l1_loss(tried_BG, target_BG), {}

    def state_dict(self) -> dict[str, Any]:
        """With the target network and the replay buffer."""
        replay = None
        if self._replay is not None:
            replay = {
                **{name: torch.from_numpy(value) for name, value in _arrays(self._replay).items()},
                **{
                    f"states.{field.name}": torch.from_numpy(
                        getattr(self._replay.states, field.name)
                    )
                    for field in fields(Batch)
                },
            }
        return {**super().state_dict(), "target": self._target.state_dict(), "replay": replay}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """With the target network and the replay buffer."""
        super().load_state_dict(state)
        self._target.load_state_dict(state["target"])
        stored = state["replay"]
        if stored is not None:
            arrays = {name: value.numpy() for name, value in stored.items()}
            states = Batch(*(arrays.pop(f"states.{field.name}") for field in fields(Batch)))
            self._replay = Decisions(states=states, outcomes_W=np.zeros(0), explored=0, **arrays)

    def _follow(self) -> None:
        with torch.no_grad():
            for slow, fast in zip(
                self._target.parameters(), self.network.parameters(), strict=True
            ):
                slow.lerp_(fast, FOLLOW)
            # Scales of the features are fitted at once, not learnt step by step.
            for old, new in zip(self._target.buffers(), self.network.buffers(), strict=True):
                old.copy_(new)


def _arrays(decisions: Decisions) -> dict[str, np.ndarray]:
    return {
        field.name: getattr(decisions, field.name)
        for field in fields(Decisions)
        if field.name not in ("states", "outcomes_W", "explored")
    }


def _joined(first: Decisions, second: Decisions) -> Decisions:
    """Both, one behind the other; followers keep naming the same decisions."""
    moved_N = np.where(second.following_N >= 0, second.following_N + len(first), -1)
    arrays = {
        name: np.concatenate([value, moved_N if name == "following_N" else _arrays(second)[name]])
        for name, value in _arrays(first).items()
    }
    states = Batch(
        *(
            np.concatenate([getattr(first.states, field.name), getattr(second.states, field.name)])
            for field in fields(Batch)
        )
    )
    return Decisions(states=states, outcomes_W=np.zeros(0), explored=0, **arrays)


def _last(decisions: Decisions, count: int) -> Decisions:
    """The newest `count` decisions; walks are whole or lose their beginning."""
    if len(decisions) <= count:
        return decisions
    kept = _take(decisions, np.arange(len(decisions) - count, len(decisions)))
    moved_N = np.where(kept.following_N >= 0, kept.following_N - (len(decisions) - count), -1)
    return Decisions(
        kept.states,
        kept.actions_NG,
        kept.logprobs_NG,
        kept.rewards_NG,
        moved_N,
        kept.walk_N,
        kept.gold_N,
        kept.outcomes_W,
    )


def _take(decisions: Decisions, rows: np.ndarray) -> Decisions:
    """Some decisions; `following_N` still counts in the whole."""
    arrays = {name: value[rows] for name, value in _arrays(decisions).items()}
    return Decisions(
        states=decisions.states.take(rows), outcomes_W=np.zeros(0), explored=0, **arrays
    )
