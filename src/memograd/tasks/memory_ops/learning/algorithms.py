"""The algorithms beside GRPO: REINFORCE, PPO, DQN, one reward a walk, copying gold operations.

    REINFORCE    an action's return against the batch's mean return (Williams 1992)
    PPO          advantages from a learned value of the state (arXiv:1707.06347)
    DQN          logits are read as action values, exploration is epsilon-greedy (arXiv:1312.5602)
    trajectory   whole walks through the same episode compared with each other, one reward each:
                 how most memory agents are trained; the baseline of credit assignment
    supervised   told at each of its own decisions what a careful keeper would have done there
                 (DAgger, arXiv:1011.0686): the honest baseline

    discounted return    R_t = r_t + gamma R_{t+1}
    GAE                  A_t = d_t + gamma lambda A_{t+1},  d_t = r_t + gamma V_{t+1} - V_t
                         (arXiv:1506.02438)
    DQN's target         r + gamma max Q_target(s', .), and r at the end of a walk
    its epsilon          epsilon * epsilon_decay ^ step, not below epsilon_min

REINFORCE, PPO and DQN hear of one action a state, or of `trials`, each with its own reward. DQN
replays past decisions from a bounded buffer; its target network follows slowly (arXiv:1509.02971).

Invariants: adding a constant to all returns changes nothing in REINFORCE; values enter PPO's
advantages as numbers, and with lambda 1 GAE is the return minus the value; nothing flows from one
walk into another, and walks weigh the same however long they are; decisions without a gold
operation have no gradient; actions that are not allowed are neither tried nor maximised over, and
the replay buffer is part of the state. Imports what the trainer imports.
"""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from memograd.errors import BadInput
from memograd.grpo.advantage import STD_FLOOR, group_advantages
from memograd.memory.manager.trained.network import Batch
from memograd.tasks.memory_ops.learning.trainer import Decisions, GRPOMemoryTrainer, clipped_loss
from memograd.tasks.memory_ops.settings import OperationsConfig


class ReinforceMemoryTrainer(GRPOMemoryTrainer):
    """Policy gradient by returns, with the batch's mean as baseline and its spread as scale."""

    name: ClassVar[str] = "reinforce"
    compares: ClassVar[bool] = False

    def targets(self, decisions: Decisions) -> np.ndarray:
        """Returns, brought to mean 0 and spread 1 over the batch [N, G]."""
        returns_NG = decisions.rewards_NG
        if self.config.gamma > 0:
            returns_NG = discounted_returns(
                returns_NG[:, 0], decisions.following_N, self.config.gamma
            )[:, None]
        scaled_NG: np.ndarray = (returns_NG - returns_NG.mean()) / (returns_NG.std() + STD_FLOOR)
        return scaled_NG


VALUE_COEF: Final = 0.5
NO_GOLD: Final = (
    "algorithm=supervised needs logs with gold operations, and these have none: train on generated"
    " logs, or choose algorithm=grpo."
)


class PPOMemoryTrainer(GRPOMemoryTrainer):
    """Clipped surrogate over generalised advantages, and a value of the state."""

    name: ClassVar[str] = "ppo"
    compares: ClassVar[bool] = False

    def targets(self, decisions: Decisions) -> np.ndarray:
        """Advantages with mean 0 and spread 1, and the returns that values should be [N, 2 G]."""
        with torch.no_grad():
            values_N1 = self.network(decisions.states)[1].numpy().astype(np.float64)[:, None]
        advantages_NG = decisions.rewards_NG - values_N1
        if self.config.gamma > 0:
            advantages_NG = gae(
                decisions.rewards_NG[:, 0],
                values_N1[:, 0],
                decisions.following_N,
                gamma=self.config.gamma,
                lambda_=self.config.gae_lambda,
            )[:, None]
        spread = advantages_NG.std() + STD_FLOOR
        scaled_NG = (advantages_NG - advantages_NG.mean()) / spread
        return np.concatenate([scaled_NG, advantages_NG + values_N1], axis=1)

    def loss(
        self, decisions: Decisions, targets: np.ndarray, rows: np.ndarray
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """The clipped surrogate and the values' squared error."""
        logits_BA, values_B = self.network(decisions.states.take(rows))
        scaled_NG, returns_NG = np.split(targets, 2, axis=1)
        loss, measured = clipped_loss(logits_BA, decisions, scaled_NG, rows, self.config)
        returns_BG = torch.from_numpy(returns_NG[rows]).float()
        value_loss = functional.mse_loss(values_B[:, None].expand_as(returns_BG), returns_BG)
        return loss + VALUE_COEF * value_loss, {
            **measured,
            "value_loss": float(value_loss.detach()),
        }


def discounted_returns(rewards_N: np.ndarray, following_N: np.ndarray, gamma: float) -> np.ndarray:
    """The return of every decision [N]; a decision's follower stands behind it."""
    returns_N = rewards_N.astype(np.float64).copy()
    for row in range(len(returns_N) - 1, -1, -1):
        if following_N[row] >= 0:
            returns_N[row] += gamma * returns_N[following_N[row]]
    return returns_N


def gae(
    rewards_N: np.ndarray,
    values_N: np.ndarray,
    following_N: np.ndarray,
    *,
    gamma: float,
    lambda_: float,
) -> np.ndarray:
    """Generalised advantage estimates [N]; the value behind the end of a walk is 0."""
    advantages_N = np.zeros(len(rewards_N))
    for row in range(len(rewards_N) - 1, -1, -1):
        after = following_N[row]
        value, later = (values_N[after], advantages_N[after]) if after >= 0 else (0.0, 0.0)
        surprise = rewards_N[row] + gamma * value - values_N[row]
        advantages_N[row] = surprise + gamma * lambda_ * later
    return advantages_N


class TrajectoryMemoryTrainer(GRPOMemoryTrainer):
    """GRPO over walks: `num_generations` walks, one behind the other, go through one episode."""

    name: ClassVar[str] = "trajectory"
    compares: ClassVar[bool] = False

    @property
    def group_size(self) -> int:
        """One action a state; the group are the walks."""
        return 1

    def targets(self, decisions: Decisions) -> np.ndarray:
        """The advantage of each decision's walk [N, 1]; raises BadInput without groups of walks."""
        walks, size = len(decisions.outcomes_W), self.config.num_generations
        if not walks or walks % size:
            raise BadInput(
                f"Credit by whole walks compares {size} walks through the same log, and these"
                f" decisions have {walks} rewards of walks: collect them with by_outcome=True,"
                " num_generations walks behind each other."
            )
        advantages_W = group_advantages(
            decisions.outcomes_W, [size] * (walks // size), self.config.advantage
        ).advantages_K
        lengths_W = np.bincount(decisions.walk_N, minlength=walks)
        weights_W = lengths_W.mean() / lengths_W
        targets_N: np.ndarray = (advantages_W * weights_W)[decisions.walk_N]
        return targets_N[:, None]


class SupervisedMemoryTrainer(GRPOMemoryTrainer):
    """Cross entropy against the gold operations."""

    name: ClassVar[str] = "supervised"
    compares: ClassVar[bool] = False

    @property
    def group_size(self) -> int:
        """One action a state."""
        return 1

    def targets(self, decisions: Decisions) -> np.ndarray:
        """The gold actions [N, 1]; raises BadInput where there is none in the whole batch."""
        if not (decisions.gold_N >= 0).any():
            raise BadInput(NO_GOLD)
        return decisions.gold_N[:, None]

    def loss(
        self, decisions: Decisions, targets: np.ndarray, rows: np.ndarray
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Mean cross entropy over the decisions that have a gold operation."""
        told = rows[targets[rows, 0] >= 0]
        logits_BA, _ = self.network(decisions.states.take(told if len(told) else rows))
        if not len(told):
            return logits_BA.masked_fill(torch.isinf(logits_BA), 0.0).sum() * 0.0, {}
        gold_B = torch.from_numpy(targets[told, 0])
        right = float((logits_BA.argmax(dim=1) == gold_B).float().mean())
        return functional.cross_entropy(logits_BA, gold_B), {"gold_accuracy": right}


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
