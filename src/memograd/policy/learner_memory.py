"""How many tokens the learner takes at once: as many as memory was measured to have room for.

Invariant: what is measured changes how a batch is cut, and nothing that is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel
from transformers import PreTrainedModel

from memograd.policy.activation_checkpointing import checkpoint_layers
from memograd.policy.adapter_weights import TRAINED
from memograd.policy.memory_model import (
    MemoryBudget,
    kept_bytes,
    learner_needs,
    memory_of,
    saved_bytes,
)
from memograd.rollout.token_tree import TokenTree

ENOUGH_TOKENS = {"cpu": 1024, "mps": 4096}
"""Tokens of a forward with gradients from which on more at once are no faster, by device; on CUDA
they are as many as memory takes."""
UNPLANNED_TOKENS = 16_384
"""Tokens that memory is taken to have room for where `plan_memory` was not called."""


class LearnerMemory(ABC):
    """The part of a `LanguageModel` that cuts its work to the device's memory."""

    model: PreTrainedModel
    peft_model: PeftModel
    forward: str
    checkpointing: bool
    budget: MemoryBudget | None
    _unread_peak: tuple[int, int] | None

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where the weights are."""

    @abstractmethod
    def parameters(self) -> list[torch.nn.Parameter]:
        """The weights that are trained."""

    def checkpoint_activations(self) -> None:
        """Keep no activations inside layers for the backward pass: memory for time."""
        checkpoint_layers(self.model)
        self.checkpointing = True

    def plan_memory(self, *, ranks: int = 1) -> MemoryBudget:
        """Let memory decide how many tokens a micro-batch has, and return what it decides by.

        `ranks`: over how many processes weights will be cut. Call it before `shard`.
        """
        saved = saved_bytes(
            self.model.config,
            self.model.dtype,
            lora=cast(PeftLoraConfig, self.peft_model.peft_config[TRAINED]),
        )
        needs = learner_needs(
            self.model,
            self.parameters(),
            saved,
            self.device,
            checkpointing=self.checkpointing,
            ranks=ranks,
        )
        self.budget = MemoryBudget(needs, memory_of(self.device))
        return self.budget

    @property
    def token_bytes(self) -> float:
        """The most bytes that a token was measured to take in learning; 0: not measured."""
        return self.budget.measured if self.budget else 0.0

    @token_bytes.setter
    def token_bytes(self, measured: float) -> None:
        if self.budget:
            self.budget.measured = measured

    @contextmanager
    def _measured(self, trees: Sequence[TokenTree]) -> Iterator[None]:
        """Around a forward with gradients of a micro-batch: learn what its tokens take.

        On CUDA it is the peak until the next one begins, backward pass and all. On a CPU it is what
        the first telling one keeps, unless layers are computed again, which hides it.
        """
        budget, tokens = self.budget, sum(tree.tree_tokens for tree in trees)
        if budget is None or self.forward == "rows":
            yield
        elif self.device.type == "cuda":
            if self._unread_peak is not None:
                before, base = self._unread_peak
                budget.observe(before, torch.cuda.max_memory_allocated(self.device) - base)
            torch.cuda.reset_peak_memory_stats(self.device)
            self._unread_peak = (tokens, torch.cuda.memory_allocated(self.device))
            yield
        elif budget.measured or self.checkpointing or tokens < budget.TELLING:
            yield
        else:
            with kept_bytes(weights=self.model.parameters()) as kept:
                yield
            budget.observe(tokens, kept())

    def usual_tokens(self) -> int:
        """Tokens of a micro-batch where there are enough."""
        return min(self._room(), ENOUGH_TOKENS.get(self.device.type, self._room()))

    def _room(self) -> int:
        """Tokens of a micro-batch that memory has room for."""
        return self.budget.tokens if self.budget else UNPLANNED_TOKENS
