"""`LanguageModel`: a Hugging Face causal language model with a LoRA adapter, as a `Policy`.

The adapter (peft) is all that training moves; the reference policy of the KL term is the same model
with the adapter switched off, or with a frozen copy of the adapter that training began with: there
is no second model.

Invariants: right after loading, the policy and its reference give the same log-probabilities (a
fresh adapter adds zero). Within a block that exchanges weights or switches adapters off, and
nowhere else, the model computes something else; afterwards it computes what it did, also when the
block failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, cast

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model_state_dict
from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.policy.loading import (
    REFERENCE,
    TRAINED,
    Quantization,
    choose_device,
    fresh_adapter,
    load_causal_lm,
    load_tokenizer,
    stored_adapter,
)
from memograd.policy.memory_model import MemoryBudget
from memograd.policy.model_policy import ModelPolicy
from memograd.policy.protocol import Published
from memograd.policy.remote.adapters import AdapterVersion
from memograd.policy.remote.sampler import Speaker
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.rollout.token_tree import TokenTree


def check_adapter(folder: Path) -> None:
    """Raise BadInput where no adapter is in `folder`."""
    if not (folder / "adapter_config.json").is_file():
        raise BadInput(f"{folder} holds no adapter (adapter_config.json is missing)")


class LanguageModel(ModelPolicy):
    """A causal language model with a LoRA adapter; fulfils `memograd.policy.Policy`.

    `peft_model` is the model with its adapter, `model` the causal language model inside (its layers
    carry the adapter), for whoever needs the libraries' own objects.
    """

    def __init__(
        self,
        peft_model: PeftModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        forward: str = "auto",
        waits_for: torch.device | None = None,
    ) -> None:
        self.peft_model = peft_model.eval()
        base = cast(PreTrainedModel, peft_model.get_base_model())
        super().__init__(base, tokenizer, name=name, forward=forward, waits_for=waits_for)

    @classmethod
    def load(
        cls,
        model: str,
        *,
        lora: LoraConfig,
        device: str = "auto",
        seed: int = 0,
        forward: str = "auto",
        to_cut: bool = False,
        quantization: Quantization = "none",
    ) -> LanguageModel:
        """Open `model` with a fresh adapter whose random half is drawn from `seed`.

        `to_cut`: `shard` will be called next, and until then no weight is on the device.
        `quantization`: as of `memograd.policy.loading.load_causal_lm`.
        """
        tokenizer = load_tokenizer(model)
        chosen = choose_device(device)
        base = load_causal_lm(model, chosen, to_cut=to_cut, quantization=quantization)
        peft_model = fresh_adapter(base, lora, seed=seed, name=model)
        waits_for = chosen if to_cut else None
        return cls(peft_model, tokenizer, name=model, forward=forward, waits_for=waits_for)

    @classmethod
    def load_adapter(
        cls,
        model: str,
        folder: Path,
        *,
        reference: Path | Literal["saved"] | None = "saved",
        device: str = "auto",
        forward: str = "auto",
        to_cut: bool = False,
        quantization: Quantization = "none",
    ) -> LanguageModel:
        """Open `model` with the adapter that `save` wrote into `folder`, ready to train on.

        The KL term holds the policy near the adapter in the folder `reference`, or near the model
        alone if that is None. Unless given, it is as it was when `save` wrote the folder. `to_cut`
        and `quantization` are as in `load`.
        """
        check_adapter(folder)
        chosen = choose_device(device)
        base = load_causal_lm(model, chosen, to_cut=to_cut, quantization=quantization)
        peft_model = stored_adapter(base, folder, reference=reference)
        return cls(
            peft_model,
            load_tokenizer(model),
            name=model,
            forward=forward,
            waits_for=chosen if to_cut else None,
        )

    def shard(self) -> Callable[[], None]:
        """Cut the frozen weights of the layers; the adapter stays whole."""
        adapter = [weight for name, weight in self.model.named_parameters() if "lora_" in name]
        return self._shard(whole=adapter)

    def plan_memory(self, *, ranks: int = 1) -> MemoryBudget:
        """As of `ModelPolicy`, with the adapter trained."""
        return self._plan(lora=self._settings_of(TRAINED), ranks=ranks)

    @property
    def has_reference(self) -> bool:
        """An adapter can always be switched off, or exchanged for the one that it began as."""
        return True

    @torch.no_grad()
    def reference_logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float
    ) -> BranchLogprobs:
        """Scores under what training began with: the model, or the adapter of an earlier run."""
        self._set_training(False)
        with self._weights_at_start():
            return self._forward_for(trees)(self.model, trees, temperature=temperature)

    def _set_training(self, training: bool) -> None:
        """Switch the adapter's dropout; the base model's stays off, as when sampling."""
        for name, module in self.peft_model.named_modules():
            if "lora_dropout" in name:
                module.train(training)

    def prepared(self, speaker: Speaker, *, keep: bool) -> Callable[[int, str], AdapterVersion]:
        """What makes a version of the adapter that training moves, or of the one it began with, as
        it is now; its weights are always kept."""
        return partial(self._adapter_version, speaker)

    def followed(self, published: Published, *, keep: bool) -> AdapterVersion:
        """The version that another process made of this adapter."""
        return self._adapter_version("trained", published.version, published.name)

    def _adapter_version(self, speaker: Speaker, version: int, name: str) -> AdapterVersion:
        chosen = REFERENCE if speaker == "start" else TRAINED
        tensors = get_peft_model_state_dict(
            self.peft_model, adapter_name=chosen, save_embedding_layers=False
        )
        return AdapterVersion(
            version,
            name,
            self._settings_of(chosen),
            {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()},
            self._copies(),
        )

    @property
    def adapter_rank(self) -> int:
        """The rank of the adapter's matrices."""
        return int(self._settings_of(TRAINED).r)

    def _settings_of(self, adapter: str) -> PeftLoraConfig:
        return cast(PeftLoraConfig, self.peft_model.peft_config[adapter])

    def _moved(self) -> list[torch.nn.Parameter]:
        return [weight for weight in self.peft_model.parameters() if weight.requires_grad]

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
        before: Speaker = self.speaker
        self.speaker: Speaker = speaker
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

    def saver(self) -> Callable[[Path], None]:
        """What writes the policy into a folder; nothing of an adapter is elsewhere."""
        return self.save

    def save(self, folder: Path) -> None:
        """Write adapter (safetensors), the one of the reference if there is one, and tokenizer,
        which `load_adapter` reads, and the value head, which `add_value_head` does."""
        adapters = [name for name in (TRAINED, REFERENCE) if name in self.peft_model.peft_config]
        try:
            self.peft_model.save_pretrained(
                str(folder), selected_adapters=adapters, save_embedding_layers=False
            )
        except SafetensorError as error:
            raise OSError(f"the adapter: {error}") from error
        if self.value_head is not None:
            self.value_head.save(folder)
        self.tokenizer.save_pretrained(folder)
