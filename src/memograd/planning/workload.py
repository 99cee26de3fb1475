"""What one step of GRPO has to do, in tokens.

A step asks `prompts` questions, each answered `group` times. Answers have `answer` tokens on
average; the longest decides how long a batch is sampled, so their spread counts too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memograd.errors import BadInput

Train = Literal["lora", "full"]


@dataclass(frozen=True)
class Workload:
    """prompt, answer: mean tokens. spread: coefficient of variation of the answers' lengths.

    train: an adapter of rank `rank`, or all weights. passes: optimisation passes over a step's
    rollouts. reference: a frozen copy is asked too (`beta` above 0; an adapter needs no copy).
    checkpointing: activations are computed again in the backward pass.
    """

    prompts: int = 16
    group: int = 8
    prompt: int = 1024
    answer: int = 256
    spread: float = 0.5
    train: Train = "lora"
    rank: int = 16
    passes: int = 1
    reference: bool = False
    checkpointing: bool = True

    def __post_init__(self) -> None:
        for name in ("prompts", "group", "prompt", "answer", "rank", "passes"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}.")
        if not 0 <= self.spread <= 3:
            raise BadInput(f"spread must be between 0 and 3, not {self.spread}.")
        if self.train not in ("lora", "full"):
            raise BadInput(f'train must be "lora" or "full", not {self.train!r}.')

    @property
    def rollouts(self) -> int:
        """Answers of a step."""
        return self.prompts * self.group

    @property
    def answer_tokens(self) -> int:
        """Tokens sampled in a step."""
        return self.rollouts * self.answer

    @property
    def longest(self) -> float:
        """Expected tokens of the longest answer of the step.

        For N draws of mean m and deviation s it is below m + s sqrt(2 ln N) (the Gaussian bound).
        """
        from math import log, sqrt

        return self.answer * (1 + self.spread * sqrt(2 * log(max(self.rollouts, 2))))

    @property
    def tree_tokens(self) -> int:
        """Tokens the learner computes of one group as a tree whose answers share the prompt."""
        return self.prompt + self.group * self.answer

    @property
    def row_tokens(self) -> int:
        """Tokens of the same group row by row."""
        return self.group * (self.prompt + self.answer)

    @property
    def tree_pairs(self) -> float:
        """Pairs of query and key in one group's tree under its mask."""
        prompt = self.prompt * (self.prompt + 1) / 2
        own = self.answer * (self.answer + 1) / 2
        return prompt + self.group * (self.answer * self.prompt + own)
