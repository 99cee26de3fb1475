"""The adapter that training moves, the one that it began with, and the model without any.

Invariant: within a block that exchanges weights or switches adapters off, and nowhere else, the
model computes something else; afterwards it computes what it did, also when the block failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model_state_dict

from memograd.policy.remote.sampler import Speaker

TRAINED = "default"
"""Name of the adapter that training moves: peft's own, which it saves without a subfolder."""
REFERENCE = "reference"
"""Name, and subfolder of a checkpoint, of the frozen adapter that training began with."""


class AdapterWeights:
    """The part of a `LanguageModel` that knows its adapters.

    `speaker` is who answers where servers draw.
    """

    peft_model: PeftModel
    speaker: Speaker

    def adapter(
        self, speaker: Speaker
    ) -> tuple[PeftLoraConfig, dict[str, torch.Tensor], list[torch.Tensor]]:
        """Copies on the CPU of the adapter that training moves, or of the one it began with: its
        settings, its tensors as peft saves them, and the weights in the order of training."""
        chosen = REFERENCE if speaker == "start" else TRAINED
        tensors = get_peft_model_state_dict(
            self.peft_model, adapter_name=chosen, save_embedding_layers=False
        )
        return (
            cast(PeftLoraConfig, self.peft_model.peft_config[chosen]),
            {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()},
            [weight.detach().cpu().clone() for weight in self._adapter_weights()],
        )

    @property
    def adapter_rank(self) -> int:
        """The rank of the adapter's matrices."""
        return int(cast(PeftLoraConfig, self.peft_model.peft_config[TRAINED]).r)

    def _adapter_weights(self) -> list[torch.nn.Parameter]:
        return [weight for weight in self.peft_model.parameters() if weight.requires_grad]

    @contextmanager
    def with_weights(self, weights: Sequence[torch.Tensor]) -> Iterator[None]:
        """Within this block the adapter has these weights, one for each that training moves."""
        own = self._adapter_weights()
        kept = [weight.detach().clone() for weight in own]

        def put(new: Sequence[torch.Tensor]) -> None:
            with torch.no_grad():
                for weight, values in zip(own, new, strict=True):
                    weight.copy_(values)

        put(weights)
        try:
            yield
        finally:
            put(kept)

    @contextmanager
    def at_start(self) -> Iterator[None]:
        """Within this block the policy is what training began with: the model, or the adapter of
        an earlier run."""
        speaker: Speaker = "start" if REFERENCE in self.peft_model.peft_config else "base"
        with self._weights_at_start(), self._speaking(speaker):
            yield

    @contextmanager
    def _weights_at_start(self) -> Iterator[None]:
        """The same for what is computed here; servers may be drawing from the trained policy."""
        if REFERENCE in self.peft_model.peft_config:
            with self._reference():
                yield
        else:
            with self.peft_model.disable_adapter():
                yield

    @contextmanager
    def untrained(self) -> Iterator[None]:
        """Within this block the adapter is off: the policy is the model it was trained from."""
        with self.peft_model.disable_adapter(), self._speaking("base"):
            yield

    @contextmanager
    def _speaking(self, speaker: Speaker) -> Iterator[None]:
        before, self.speaker = self.speaker, speaker
        try:
            yield
        finally:
            self.speaker = before

    @contextmanager
    def _reference(self) -> Iterator[None]:
        """Within this block the frozen adapter that training began with is the active one."""
        self.peft_model.set_adapter(REFERENCE)
        try:
            yield
        finally:
            self.peft_model.set_adapter(TRAINED)
