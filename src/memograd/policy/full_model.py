"""`FullModel`: a causal language model of which training moves all weights (`tuning=full`).

There is no adapter to switch off, so the reference of the KL term is a second, frozen copy of the
model; it is there only where a KL term asks for it, and is cut among the ranks as the model is. A
checkpoint is a plain Hugging Face folder, in the number type that the model computes in; what was
rounded away for it is in the optimiser's masters (`memograd.grpo.optimizer`).

Where the model computes in half precision, gradients are summed up in fp32.

Invariants: right after loading without a checkpoint, the policy and its reference give the same
log-probabilities; what was written is loaded by `model=` as any other model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import torch
import torch.distributed as dist
from safetensors import SafetensorError
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memograd.errors import BadInput, MemogradError
from memograd.policy.loading import choose_device, load_causal_lm, load_tokenizer
from memograd.policy.memory_model import MemoryBudget
from memograd.policy.model_policy import ModelPolicy
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.policy.tree_attention import use_tree_attention
from memograd.rollout.token_tree import TokenTree


class FullModel(ModelPolicy):
    """A causal language model without an adapter: all its weights are trained.

    `start` is the frozen copy of what training began with, None where nothing asks for it; where a
    task asks for the untrained model all the same (`at_start`, `untrained`), it is loaded then.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        forward: str = "auto",
        waits_for: torch.device | None = None,
        start: PreTrainedModel | None = None,
        untouched: bool = True,
    ) -> None:
        """`untouched`: the weights are those of `name`. The rest is as of `ModelPolicy`."""
        self._dtype = model.dtype
        self._start = start
        half = self._dtype != torch.float32
        if half and not hasattr(torch.Tensor, "grad_dtype"):
            raise BadInput(
                "tuning=full in half precision sums gradients in fp32, which this torch "
                f"({torch.__version__}) cannot: upgrade torch to 2.10 or newer."
            )
        for weight in cast(torch.nn.Module, model).parameters():
            weight.requires_grad_(True)
            if half:
                weight.grad_dtype = torch.float32
        super().__init__(model, tokenizer, name=name, forward=forward, waits_for=waits_for)
        if start is not None:
            self._freeze(start)
        self._untouched = self._model_version() if untouched else ()

    @classmethod
    def open(
        cls,
        model: str,
        folder: Path | None = None,
        *,
        reference: bool,
        device: str = "auto",
        forward: str = "auto",
        to_cut: bool = False,
    ) -> FullModel:
        """Open `model`, with the weights that `save` wrote into `folder` if there is one.

        `reference`: keep a frozen copy of `model` too. `to_cut` is as in `LanguageModel.load`.
        """
        chosen = choose_device(device)
        trained = model if folder is None else str(folder)
        return cls(
            load_causal_lm(trained, chosen, to_cut=to_cut),
            load_tokenizer(trained),
            name=model,
            forward=forward,
            waits_for=chosen if to_cut else None,
            start=load_causal_lm(model, chosen, to_cut=to_cut) if reference else None,
            untouched=folder is None,
        )

    def shard(self) -> Callable[[], None]:
        """Cut the weights of the layers, and those of the reference, among the ranks (FSDP2)."""
        was_untouched = self._untouched == self._model_version()
        follow = self._shard(whole=(), reference=self._start)
        if was_untouched:
            self._untouched = self._model_version()
        return follow

    def _model_version(self) -> tuple[int, ...]:
        return tuple(weight._version for weight in self.model.parameters())

    @property
    def dtype(self) -> torch.dtype:
        """The number type that the model computes in; shares of cut layers are kept in fp32."""
        return self._dtype

    def _moved(self) -> list[torch.nn.Parameter]:
        return [weight for weight in self.model.parameters() if weight.requires_grad]

    def plan_memory(self, *, ranks: int = 1) -> MemoryBudget:
        """As of `ModelPolicy`, with everything trained."""
        return self._plan(lora=None, reference=self._start, ranks=ranks)

    @property
    def has_reference(self) -> bool:
        """Whether a copy was asked for."""
        return self._start is not None

    @torch.no_grad()
    def reference_logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float
    ) -> BranchLogprobs:
        """Scores under the frozen copy. Raises `MemogradError` where there is none."""
        if self._start is None:
            raise MemogradError(
                "this policy was opened without a copy of what it began with, so there is no KL"
            )
        return self._forward_for(trees)(self._start, trees, temperature=temperature)

    @contextmanager
    def at_start(self) -> Iterator[None]:
        """Within this block the policy is the model that training began with."""
        if self._untouched == self._model_version():
            yield
            return
        start = self._start or self._start_alone
        if start is None:
            start = self._start_alone = self._freeze(load_causal_lm(self.name, self.device))
        trained, self.model = self.model, start
        try:
            yield
        finally:
            self.model = trained

    _start_alone: PreTrainedModel | None = None
    """The untrained model, loaded for `at_start` where no KL term keeps it."""

    @contextmanager
    def untrained(self) -> Iterator[None]:
        """The same: what a run begins with is what it was trained from."""
        with self.at_start():
            yield

    def _freeze(self, model: PreTrainedModel) -> PreTrainedModel:
        cast(torch.nn.Module, model).requires_grad_(False)
        if self._packs:
            use_tree_attention(model)
        return model

    def _set_training(self, training: bool) -> None:
        """There is no dropout of an adapter, and the model's own stays off."""

    def saver(self) -> Callable[[Path], None]:
        """What writes a plain Hugging Face folder: every rank gives its share of the weights, and
        rank 0 has all of them."""
        leads = not dist.is_initialized() or dist.get_rank() == 0  # who writes
        whole: dict[int, torch.Tensor] = {}
        state = {}
        for name, weight in cast(torch.nn.Module, self.model).state_dict().items():
            # Two names of one weight (a tied output layer) stay one.
            key = weight.data_ptr() if not isinstance(weight, DTensor) else id(weight)
            if key not in whole:
                gathered = weight.full_tensor() if isinstance(weight, DTensor) else weight
                gathered = gathered.detach()
                if gathered.is_floating_point():
                    gathered = gathered.to(self._dtype)
                whole[key] = gathered.cpu() if leads else torch.empty(0)
            state[name] = whole[key]
        return partial(self._write, state)

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as one plain folder, and the value head, if there is one."""
        self.saver()(folder)

    def _write(self, state: dict[str, torch.Tensor], folder: Path) -> None:
        try:
            self.model.save_pretrained(folder, state_dict=state)
        except SafetensorError as error:
            raise OSError(f"the weights: {error}") from error
        if self.value_head is not None:
            self.value_head.save(folder)
        self.tokenizer.save_pretrained(folder)
