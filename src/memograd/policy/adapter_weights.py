"""The adapter that training moves, the one that it began with, and the model without any.

Invariant: within a block that exchanges weights or switches adapters off, and nowhere else, the
model computes something else; afterwards it computes what it did, also when the block failed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, cast

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model, get_peft_model_state_dict
from safetensors import SafetensorError
from transformers import PreTrainedModel

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.policy.remote.sampler import Speaker

TRAINED = "default"
"""Name of the adapter that training moves: peft's own, which it saves without a subfolder."""
REFERENCE = "reference"
"""Name, and subfolder of a checkpoint, of the frozen adapter that training began with."""


@contextmanager
def _quiet_peft() -> Iterator[None]:
    """Without the notice that peft reads an attribute which transformers has renamed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing")
        yield


def fresh_adapter(base: PreTrainedModel, lora: LoraConfig, *, seed: int, name: str) -> PeftModel:
    """`base` with an adapter that adds zero, its random half drawn from `seed`.

    Raises `BadInput` where the model, called `name`, has none of the layers.
    """
    adapter = PeftLoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.target_modules),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), _quiet_peft():
        torch.manual_seed(seed)
        try:
            return cast(PeftModel, get_peft_model(base, adapter))
        except ValueError as error:
            modules = ", ".join(lora.target_modules)
            raise BadInput(
                f"model={name} has none of the layers lora.target_modules={modules}"
            ) from error


def stored_adapter(
    base: PreTrainedModel, folder: Path, *, reference: Path | Literal["saved"] | None
) -> PeftModel:
    """`base` with the adapter in `folder`, ready to train on, and the frozen one in the folder
    `reference`; "saved": the one that was saved beside it, if any."""
    with _quiet_peft():
        peft_model = PeftModel.from_pretrained(base, folder, is_trainable=True)
        if reference == "saved":
            reference = folder / REFERENCE if (folder / REFERENCE).is_dir() else None
        if reference is not None:
            peft_model.load_adapter(str(reference), REFERENCE, is_trainable=False)
    return peft_model


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

    def _save_adapters(self, folder: Path) -> None:
        adapters = [name for name in (TRAINED, REFERENCE) if name in self.peft_model.peft_config]
        try:
            self.peft_model.save_pretrained(
                str(folder), selected_adapters=adapters, save_embedding_layers=False
            )
        except SafetensorError as error:
            raise OSError(f"the adapter: {error}") from error

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
