"""Drawing the actions of episodes: what a turn left behind in the layers serves the next one.

The prompt of an episode's next turn is the tokens of the turn before it and a new observation. So
their keys and values stay, and only the new tokens are run: the last action's last token, which was
drawn and never run, and the observation.

    turn 1   [prompt: run once for the group] action
    turn 2   [kept ............................... ] observation, action

One `TurnSampler` serves one batch of episodes, as `memograd.rollout.lockstep` plays them. It keeps
what the last call drew: an episode that was not in the next call is over, and an episode that
starts a new row finds of its old one just what the new one begins with. Where there is no room, the
prompt is run anew; `Turn.reused_tokens` says of every turn what was spared.

Invariant: what is drawn, and its log-probabilities, is what `ModelPolicy.sample` would draw, to
rounding; weights that have moved in place are noticed, and nothing older is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from memograd.policy.kv_cache import KeptPrefixes
from memograd.policy.protocol import SampledGroup

if TYPE_CHECKING:
    import torch

TURN_TOKENS = {"cpu": 32_768, "cuda": 65_536, "mps": 16_384}
"""Tokens of all live episodes whose keys and values are kept between two turns, by device."""


class Draws(Protocol):
    """A policy that can go on from keys and values that are kept."""

    def weights_version(self) -> tuple[int, ...]:
        """Differs from what it was if a weight has moved."""
        ...

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None = None,
        kept: KeptPrefixes | None = None,
    ) -> list[SampledGroup]:
        """Draw answers."""
        ...


class TurnSampler:
    """`ModelPolicy.sample` with a memory from one call to the next, of at most `tokens` tokens;
    fulfils `memograd.rollout.lockstep.Sampler`."""

    def __init__(self, policy: Draws, tokens: int) -> None:
        self._policy = policy
        self._kept = KeptPrefixes(tokens)
        self._versions: tuple[int, ...] = ()

    @property
    def kept_tokens(self) -> int:
        """Tokens whose keys and values are held at the moment."""
        return self._kept.tokens

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None,
    ) -> list[SampledGroup]:
        """Draw answers; raises what `ModelPolicy.sample` raises."""
        versions = self._policy.weights_version()
        if versions != self._versions:
            self._kept.clear()
            self._versions = versions
        return self._policy.sample(
            prompts,
            num_generations=num_generations,
            temperature=temperature,
            max_completion_length=max_completion_length,
            generator=generator,
            kept=self._kept,
        )
