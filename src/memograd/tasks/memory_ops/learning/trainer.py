"""Training a policy over a few actions: GRPO, and the base of every other algorithm here.

    actions, _ = trainer.choose_group(states)          G actions a state
    trainer.update_policy(                             better ones become more probable
        rewards, states, actions, explored=trainer.explored
    )

`GRPOMemoryTrainer` compares the G actions that were tried on one and the same state. REINFORCE, PPO
and DQN are subclasses that override `choose_group` and `loss`; so can yours. Any torch module that
maps a `Batch` to logits [B, A] (-inf where not allowed) and values [B] can be trained.

What is walked through is a `DecisionProcess`, which any task fits whose episodes are decisions with
a fixed set of actions.

Invariants: `collect` writes down the probabilities that the policy had when it acted; all state is
in the network, the optimiser, `generator` and what `state_dict` returns, so a resumed run goes on
to the bit; on policy, the gradient is the mean of advantage x gradient of log-probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from memograd.errors import BadInput, MemogradError
from memograd.grpo.advantage import group_advantages
from memograd.grpo.loss import LossTerms, grpo_loss
from memograd.memory.manager.trained.network import Batch
from memograd.memory.manager.trained.observation import Observation
from memograd.tasks.memory_ops.settings import OperationsConfig


class DecisionProcess(Protocol):
    """An episode of decisions."""

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        ...

    def observe(self) -> Observation:
        """What is to be decided now."""
        ...

    def rewards(self) -> np.ndarray:
        """The reward of every action here [A]."""
        ...

    def outcome(self) -> float:
        """One reward for the whole episode, once it is over."""
        ...

    def take(self, action: int) -> None:
        """Decide, and go on."""
        ...

    def gold_action(self) -> int | None:
        """The action that a teacher would take here; None where there is no teacher."""
        ...


class Chooser(Protocol):
    """Something that tries actions in a batch of states."""

    @property
    def explored(self) -> int:
        """How many actions of a group, the last ones, are not drawn from the policy."""
        ...

    def choose_group(self, states: Batch) -> tuple[np.ndarray, np.ndarray]:
        """`actions_BG` and the log-probability of each under the policy; the first is taken."""
        ...


@dataclass(frozen=True)
class Decisions:
    """N decisions of several walks, walk after walk in time.

    states: what was seen. actions_NG, logprobs_NG, rewards_NG: the G actions tried in each state;
    the first one was taken. following_N: number of the walk's next decision, -1 at its end. walk_N:
    number of the walk. gold_N: the teacher's action, -1 where there is none. outcomes_W: one reward
    for each walk, where that is what is compared; else empty. explored: how many of the G actions,
    the last ones, were not drawn from the policy.
    """

    states: Batch
    actions_NG: np.ndarray
    logprobs_NG: np.ndarray
    rewards_NG: np.ndarray
    following_N: np.ndarray
    walk_N: np.ndarray
    gold_N: np.ndarray
    outcomes_W: np.ndarray
    explored: int = 0

    def __len__(self) -> int:
        return len(self.states)


def collect(
    chooser: Chooser, walks: Sequence[DecisionProcess], *, by_outcome: bool = False
) -> Decisions:
    """Walk all processes to their ends side by side.

    by_outcome: actions have no rewards of their own (they are 0), each walk has one.
    """
    rows: list[tuple[int, Observation, np.ndarray, np.ndarray, np.ndarray, int]] = []
    live = [number for number, walk in enumerate(walks) if not walk.over]
    while live:
        observations = [walks[number].observe() for number in live]
        actions_BG, logprobs_BG = chooser.choose_group(Batch.of(observations))
        for place, number in enumerate(live):
            walk, actions_G = walks[number], actions_BG[place]
            rewards_G = np.zeros(len(actions_G)) if by_outcome else walk.rewards()[actions_G]
            gold = walk.gold_action()
            rows.append(
                (
                    number,
                    observations[place],
                    actions_G,
                    logprobs_BG[place],
                    rewards_G,
                    -1 if gold is None else gold,
                )
            )
            walk.take(int(actions_G[0]))
        live = [number for number in live if not walks[number].over]
    rows.sort(key=lambda row: row[0])  # stable: in time within a walk
    walk_N = np.array([row[0] for row in rows])
    following_N = np.arange(1, len(rows) + 1)
    following_N[np.append(walk_N[1:] != walk_N[:-1], True)] = -1
    return Decisions(
        states=Batch.of([row[1] for row in rows]),
        actions_NG=np.stack([row[2] for row in rows]),
        logprobs_NG=np.stack([row[3] for row in rows]),
        rewards_NG=np.stack([row[4] for row in rows]),
        following_N=following_N,
        walk_N=walk_N,
        gold_N=np.array([row[5] for row in rows]),
        outcomes_W=np.array([walk.outcome() for walk in walks] if by_outcome else []),
        explored=chooser.explored,
    )


LAST_RATE_SHARE = 0.1


class GRPOMemoryTrainer:
    """Group-relative policy optimisation (arXiv:2402.03300) over actions on the same state.

    group_size: actions tried in each state. compares: whether an action is judged by the others
    that were tried in its state; algorithms with another baseline can do with one.
    """

    name: ClassVar[str] = "grpo"
    compares: ClassVar[bool] = True

    def __init__(self, network: nn.Module, config: OperationsConfig) -> None:
        self.network = network
        self.config = config
        self.step = 0
        self.optimizer = torch.optim.AdamW(
            network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.generator = torch.Generator().manual_seed(config.seed)

    @property
    def group_size(self) -> int:
        """Actions tried in each state."""
        return self.config.num_generations if self.compares else self.config.trials

    @property
    def explored(self) -> int:
        """How many of them, the last ones, are not drawn from the policy."""
        if not self.compares:
            return 0
        return min(round(self.config.explore * self.group_size), self.group_size - 2)

    # Acting

    def choose_action(self, state: Observation) -> int:
        """One action in one state, as training draws it."""
        actions_BG, _ = self.choose_group(Batch.of([state]))
        return int(actions_BG[0, 0])

    def choose_group(self, states: Batch) -> tuple[np.ndarray, np.ndarray]:
        """`group_size` actions for each state, and their log-probabilities under the policy.

        Most are drawn from the policy, the first of them is taken; the rest (`explored`) are drawn
        evenly over the kinds of operation, so that a policy that has become sure still hears of
        what would be better (as in self-imitation, arXiv:1806.05779).
        """
        with torch.no_grad():
            logprobs_BA = functional.log_softmax(self.network(states)[0], dim=1)
        actions_BG = self._draw(logprobs_BA.exp(), self.group_size - self.explored)
        if self.explored:
            even_BA = even_chances_BA(torch.from_numpy(states.allowed_BA))
            evenly_BG = self._draw(even_BA, self.explored)
            actions_BG = torch.cat([actions_BG, evenly_BG], dim=1)
        return actions_BG.numpy(), logprobs_BA.gather(1, actions_BG).numpy()

    def _draw(self, chances_BA: torch.Tensor, count: int) -> torch.Tensor:
        return torch.multinomial(chances_BA, count, replacement=True, generator=self.generator)

    def best_action(self, state: Observation) -> int:
        """The most probable action, as the running memory takes it."""
        with torch.no_grad():
            return int(self.network(Batch.of([state]))[0][0].argmax())

    # Learning

    def update_policy(
        self,
        rewards: np.ndarray,
        states: Batch,
        actions: np.ndarray,
        *,
        logprobs: np.ndarray | None = None,
        following: np.ndarray | None = None,
        explored: int = 0,
    ) -> dict[str, float]:
        """One training step on N decisions of G actions each, `rewards` and `actions` [N, G].

        G need not be the `group_size` of the settings where an algorithm compares; others take that
        many.
        logprobs: of the actions under the policy that drew them; the present one if not given.
        following: number of the same walk's next decision, -1 where there is none (the default).
        explored: how many actions of each state, the last ones, were not drawn from the policy:
        `self.explored` of what `choose_group` gave. Returns metrics by name. Raises BadInput when
        the shapes do not fit, MemogradError when a number is not finite.
        """
        count = len(states)
        self._check_group(np.shape(rewards), np.shape(actions), count, explored)
        if logprobs is None:
            with torch.no_grad():
                logprobs = functional.log_softmax(self.network(states)[0], dim=1).numpy()
            logprobs = np.take_along_axis(logprobs, actions, axis=1)
        decisions = Decisions(
            states,
            actions,
            logprobs,
            rewards,
            np.full(count, -1) if following is None else following,
            walk_N=np.zeros(count, int),
            gold_N=np.full(count, -1),
            outcomes_W=np.zeros(0),
            explored=explored,
        )
        return self.learn(decisions)

    def learn(self, decisions: Decisions) -> dict[str, float]:
        """What `update_policy` does, of decisions that were collected."""
        for rewards in (decisions.rewards_NG, decisions.outcomes_W):
            if not np.isfinite(rewards).all():
                raise MemogradError(
                    f"A reward of step {self.step + 1} is not finite: look at what computes it;"
                    " nothing was learnt from this step."
                )
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        targets = self.targets(decisions)
        sums: dict[str, float] = {}
        pieces = 0
        for _ in range(self.config.passes):
            order = torch.randperm(len(decisions), generator=self.generator).numpy()
            for start in range(0, len(order), self.config.minibatch):
                rows = order[start : start + self.config.minibatch]
                for name, value in self._descend(decisions, targets, rows).items():
                    sums[name] = sums.get(name, 0.0) + value
                pieces += 1
        measured = {name: total / pieces for name, total in sums.items()}
        return {
            **measured,
            "reward_normalised_mean": float(targets[:, :1].mean()),
            "reward_normalised_std": float(targets.std()),
            "learning_rate": self._learning_rate(),
        }

    def targets(self, decisions: Decisions) -> np.ndarray:
        """What the loss needs to know of all decisions at once: here the advantages [N, G]."""
        rewards_NG, count = decisions.rewards_NG, len(decisions)
        own = rewards_NG.shape[1] - decisions.explored
        compared = group_advantages(
            rewards_NG[:, :own].flatten(), [own] * count, self.config.advantage
        )
        own_NG = compared.advantages_K.reshape(count, own)
        # What was explored is compared with what the policy does, and teaches where it is better:
        # pushing down what is improbable already would only make noise.
        better_NG = rewards_NG[:, own:] - rewards_NG[:, :own].mean(axis=1, keepdims=True)
        return np.concatenate([own_NG, np.maximum(better_NG, 0.0)], axis=1)

    def loss(
        self, decisions: Decisions, targets: np.ndarray, rows: np.ndarray
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """The loss of some decisions, and what a log wants to know."""
        logits_BA, _ = self.network(decisions.states.take(rows))
        return clipped_loss(logits_BA, decisions, targets, rows, self.config)

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs; subclasses add theirs."""
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])

    def _check_group(
        self, rewards: tuple[int, ...], actions: tuple[int, ...], count: int, explored: int
    ) -> None:
        if rewards != actions or len(actions) != 2 or actions[0] != count:
            raise BadInput(
                f"rewards {rewards} and actions {actions} must both have the shape [{count}, G]:"
                " G actions for each state, one reward for each action."
            )
        size = self.group_size
        if not self.compares and actions[1] != size:
            wanted = "one action" if size == 1 else f"{size} actions"
            raise BadInput(
                f"The algorithm {self.name} learns from {wanted} a state, not {actions[1]}: give"
                f" rewards and actions of the shape [{count}, {size}]."
            )
        if self.compares and actions[1] - explored < 2:
            raise BadInput(
                f"The algorithm {self.name} compares at least two actions a state that the policy"
                f" drew, not {actions[1] - explored}: try more of them."
            )

    def _descend(
        self, decisions: Decisions, targets: np.ndarray, rows: np.ndarray
    ) -> dict[str, float]:
        loss, measured = self.loss(decisions, targets, rows)
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        if not math.isfinite(float(loss.detach())) or not math.isfinite(float(norm)):
            raise MemogradError(
                f"The loss of step {self.step} is {float(loss.detach())} and its gradient has norm"
                f" {float(norm)}: lower learning_rate, or look for rewards that are not finite."
            )
        self.optimizer.step()
        return {"loss": float(loss.detach()), "grad_norm": float(norm), **measured}

    def _learning_rate(self) -> float:
        config = self.config
        done = min(1.0, (self.step - 1) / max(1, config.steps - 1))
        share = LAST_RATE_SHARE + (1 - LAST_RATE_SHARE) * (1 + math.cos(math.pi * done)) / 2
        return config.learning_rate * share


def even_chances_BA(allowed_BA: torch.Tensor) -> torch.Tensor:
    """Chances that give every kind of operation that is allowed the same, and its items too."""
    places = (allowed_BA.shape[1] - 2) // 2
    kinds = allowed_BA.float().split([1, 1, places, places], dim=1)
    within = [kind / kind.sum(dim=1, keepdim=True).clamp_min(1) for kind in kinds]
    chances_BA = torch.cat(within, dim=1)
    return chances_BA / chances_BA.sum(dim=1, keepdim=True)


def clipped_loss(
    logits_BA: torch.Tensor,
    decisions: Decisions,
    advantages_NG: np.ndarray,
    rows: np.ndarray,
    config: OperationsConfig,
) -> tuple[torch.Tensor, dict[str, float]]:
    """The clipped surrogate with an entropy bonus, every action of every state weighing the same.

    It is the function that trains language models, on answers of one token.
    """
    logprobs_BA = functional.log_softmax(logits_BA, dim=1)
    chosen_BG = logprobs_BA.gather(1, torch.from_numpy(decisions.actions_NG[rows]))
    impossible_BA = torch.isinf(logits_BA)
    finite_BA = logprobs_BA.masked_fill(impossible_BA, 0.0)
    entropy_B = -(finite_BA.exp() * finite_BA).masked_fill(impossible_BA, 0.0).sum(dim=1)
    size = chosen_BG.numel()
    parts = grpo_loss(
        LossTerms(epsilon=config.clip, entropy_coef=config.entropy_coef),
        logprobs_RT=chosen_BG.reshape(size, 1),
        old_logprobs_RT=torch.from_numpy(decisions.logprobs_NG[rows]).reshape(size, 1),
        reference_logprobs_RT=None,
        entropies_RT=entropy_B[:, None].expand_as(chosen_BG).reshape(size, 1),
        advantages_RT=torch.from_numpy(advantages_NG[rows]).float().reshape(size, 1),
        weights_RT=torch.full((size, 1), 1 / size),
    )
    return parts.loss, {
        "entropy": float(parts.entropy),
        "clip_fraction": float(parts.clip_fraction),
    }
