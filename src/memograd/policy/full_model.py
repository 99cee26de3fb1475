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

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from memograd.policy.protocol import Published
from memograd.policy.remote.adapters import WeightsVersion
from memograd.policy.remote.sampler import Speaker
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
        # Servers have the trained weights only: what is asked for here is drawn here.
        trained, remote = self.model, self.remote
        self.model, self.remote, self.speaker = start, None, "start"
        try:
            yield
        finally:
            self.model, self.remote, self.speaker = trained, remote, "trained"

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

    def prepared(self, speaker: Speaker, *, keep: bool) -> Callable[[int, str], WeightsVersion]:
        """What makes a version of all weights as they are now, which must be written before they
        move; every rank gives its share of them."""
        if speaker != "trained":
            raise MemogradError(
                "sampling servers have the weights in training only, and were asked for those that "
                "it began with"
            )
        fill = partial(self._write_model, self._whole_state())
        weights = self._copies() if keep else None
        return lambda version, name: WeightsVersion(version, name, fill, weights)

    def followed(self, published: Published, *, keep: bool) -> WeightsVersion:
        """The version that another process made of these weights, and wrote."""
        weights = self._copies() if keep else None
        return WeightsVersion(published.version, published.name, None, weights)

    def probed(self) -> dict[str, torch.Tensor]:
        """Copies of the embedding, on which all keys and values depend, and of the output layer;
        every rank has both whole."""
        ends = (self.model.get_input_embeddings(), self.model.get_output_embeddings())
        return {
            name: weight.detach().to("cpu", copy=True)
            for name, weight in cast(torch.nn.Module, self.model).named_parameters()
            if any(weight is getattr(end, "weight", None) for end in ends)
        }

    @contextmanager
    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> Iterator[None]:
        """As of `ModelPolicy`; weights that nothing has moved still count as such afterwards."""
        was_untouched = self._untouched == self._model_version()
        with super().with_weights(weights):
            yield
        if was_untouched:
            self._untouched = self._model_version()

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """All ranks enter it together; within it one of them alone may make versions, in which what
        the ranks share out is as it is now."""
        self._shares_now = self._gathered_shares()
        try:
            yield
        finally:
            self._shares_now = None

    _shares_now: dict[str, torch.Tensor] | None = None

    def _gathered_shares(self) -> dict[str, torch.Tensor]:
        """The weights that are cut among the ranks, put together on rank 0; nothing elsewhere."""
        shares = {}
        for name, weight in cast(torch.nn.Module, self.model).state_dict().items():
            if isinstance(weight, DTensor):
                whole = self._stored(weight.full_tensor())
                shares[name] = whole.cpu() if self._leads else torch.empty(0)
        return shares

    @property
    def _leads(self) -> bool:
        return not dist.is_initialized() or dist.get_rank() == 0

    def _stored(self, weight: torch.Tensor) -> torch.Tensor:
        """A weight in the number type that it is written in."""
        weight = weight.detach()
        return weight.to(self._dtype) if weight.is_floating_point() else weight

    def _whole_state(self) -> dict[str, torch.Tensor]:
        """All weights as they are written, on rank 0; every rank gives its share of them."""
        shares = self._gathered_shares() if self._shares_now is None else self._shares_now
        whole: dict[int, torch.Tensor] = {}
        state = {}
        for name, weight in cast(torch.nn.Module, self.model).state_dict().items():
            if name in shares:
                state[name] = shares[name]
                continue
            key = weight.data_ptr()  # two names of one weight (a tied output layer) stay one
            if key not in whole:
                whole[key] = self._stored(weight).cpu() if self._leads else torch.empty(0)
            state[name] = whole[key]
        return state

    def saver(self) -> Callable[[Path], None]:
        """What writes a plain Hugging Face folder: every rank gives its share of the weights, and
        rank 0 has all of them."""
        return partial(self._write, self._whole_state())

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as one plain folder, and the value head, if there is one."""
        self.saver()(folder)

    def _write_model(self, state: dict[str, torch.Tensor], folder: Path) -> None:
        try:
            self.model.save_pretrained(folder, state_dict=state)
        except SafetensorError as error:
            raise OSError(f"the weights: {error}") from error

    def _write(self, state: dict[str, torch.Tensor], folder: Path) -> None:
        self._write_model(state, folder)
        if self.value_head is not None:
            self.value_head.save(folder)
        self.tokenizer.save_pretrained(folder)
