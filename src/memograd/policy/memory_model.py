"""How much memory learning takes, and so how many tokens go through the model at once.

What a learner holds is weights, what the optimiser keeps of trained ones, and, between forward and
backward, activations, which grow with the tokens of a micro-batch:

    needed(tokens) = fixed + tokens x per_token

`fixed` is weights, gradients, moments and fp32 masters, the logits of one chunk of states, and a
reserve. `per_token` is first *counted*: one layer of the model is made on the meta device, where
tensors have shapes and no numbers, a row goes through it, and the bytes that autograd keeps are
added up. Once the run has taken micro-batches, it is what they were *measured* to take
(`MemoryBudget`): on CUDA by the allocator's peak, which is the whole truth, on a CPU by the tensors
that autograd kept, which does not depend on what else the machine does.

Invariants: a budget never depends on a clock, and what it has learnt goes into checkpoints, so a
run that is resumed cuts its trees as before; what is measured changes how a batch is cut, and
nothing that is computed.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedConfig, PreTrainedModel

from memograd.policy.activation_checkpointing import checkpoint_layers, decoder_layers
from memograd.policy.token_logprobs import CHUNK
from memograd.rollout.token_tree import TokenTree

GIB = 2**30

RESERVED = {"cuda": 2 * GIB, "cpu": GIB // 2, "mps": GIB}
"""For the driver, the allocator and everything that is not counted here, by device."""

SHARE = 0.9
"""Of the memory that is there, how much is planned with."""

GRADIENT, MOMENTS, MASTER = 4, 8, 4
"""Bytes beside a trained weight, all in fp32; the master only of a weight in half precision."""

ENOUGH_TOKENS = {"cpu": 1024, "mps": 4096}
"""Tokens of a forward with gradients from which on more at once are no faster, by device; on CUDA
they are as many as memory takes."""

UNPLANNED_TOKENS = 16_384
"""Tokens that memory is taken to have room for where `plan_memory` was not called."""

_COUNTED = 128


class PlannedMemory(ABC):
    """The part of a `ModelPolicy` that cuts its work to the device's memory."""

    model: PreTrainedModel
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

    @abstractmethod
    def plan_memory(self, *, ranks: int = 1) -> MemoryBudget:
        """Let memory decide how many tokens a micro-batch has, and return what it decides by.

        `ranks`: over how many processes weights will be cut. Call it before `shard`.
        """

    def _plan(
        self,
        *,
        lora: LoraConfig | None,
        reference: PreTrainedModel | None = None,
        ranks: int,
    ) -> MemoryBudget:
        needs = learner_needs(
            self.model,
            self.parameters(),
            saved_bytes(self.model.config, self.model.dtype, lora=lora),
            self.device,
            checkpointing=self.checkpointing,
            reference=reference,
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


class MemoryBudget:
    """How many tokens a micro-batch may have, from what is counted and then from what is measured.

    `have` bytes are there. Until something is measured, `needs` says what a token takes. A
    measurement counts if its micro-batch had at least `TELLING` tokens: of fewer, what does not
    grow with them is most.
    """

    TELLING = 64

    def __init__(self, needs: LearnerNeeds, have: int) -> None:
        self.needs = needs
        self.have = have
        self.measured = 0.0
        """The most bytes that a token was measured to take; 0: nothing was measured yet."""

    @property
    def per_token(self) -> float:
        """Bytes that a token of a micro-batch is expected to take."""
        return self.measured or self.needs.per_token + self.needs.layer_again

    @property
    def tokens(self) -> int:
        """Tokens that a micro-batch may have; at least one, for a try is better than nothing."""
        room = SHARE * self.have - self.needs.fixed
        return max(1, int(room / self.per_token))

    def observe(self, tokens: int, taken: float) -> None:
        """A micro-batch of `tokens` lifted memory by `taken` bytes."""
        if tokens >= self.TELLING:
            self.measured = max(self.measured, taken / tokens)

    def says(self, tokens: int) -> str:
        """The sentence before a run whose micro-batches have so many tokens."""
        return (
            f"this needs about {self.needs.total(tokens) / GIB:.1f} GiB for micro-batches of "
            f"{tokens:,} tokens; there are {self.have / GIB:.1f}"
        )

    def fits(self, tokens: int) -> bool:
        """Whether micro-batches of so many tokens are expected to fit."""
        return self.needs.total(tokens) <= self.have


@dataclass(frozen=True)
class LearnerNeeds:
    """Bytes that a learner takes on one device; `per_token` is that of a micro-batch's tokens."""

    weights: int
    optimiser: int
    logits: int
    layer_again: float
    per_token: float
    reserved: int

    @property
    def fixed(self) -> float:
        """Bytes that are there however few tokens a micro-batch has."""
        return self.weights + self.optimiser + self.logits + self.reserved

    def total(self, tokens: int) -> float:
        """Bytes with a micro-batch of so many tokens."""
        return self.fixed + tokens * (self.per_token + self.layer_again)


def learner_needs(
    model: PreTrainedModel,
    trained: list[torch.nn.Parameter],
    saved: SavedBytes,
    device: torch.device,
    *,
    checkpointing: bool,
    reference: PreTrainedModel | None = None,
    ranks: int = 1,
) -> LearnerNeeds:
    """What learning with `model`, of which `trained` weights move, takes on `device`.

    `reference`: a frozen copy that is there too. `ranks`: over how many processes layers are cut
    as `memograd.policy.sharding` cuts them: under an adapter the frozen weights, else all, and then
    what the optimiser keeps as well. The logits of one chunk are there in the model's numbers, in
    fp32, as log-softmax and as its gradient.
    """
    moved = set(trained)
    full = all(weight in moved for weight in model.parameters())
    weights = optimiser = 0
    cut: set[torch.nn.Parameter] = set()
    for one in (model, reference):
        if one is None:
            continue
        layers = decoder_layers(one) if ranks > 1 else []
        own = {w for layer in layers for w in layer.parameters() if full or w not in moved}
        sizes = {weight: weight.numel() * weight.element_size() for weight in one.parameters()}
        weights += sum(size // ranks if w in own else size for w, size in sizes.items())
        if layers:  # one of them is whole while it is computed
            weights += sum(sizes[weight] for weight in own) // len(layers)
        cut |= own
    for weight in trained:
        gradient, kept = weight.numel() * GRADIENT, weight.numel() * MOMENTS
        if weight.dtype != torch.float32:
            kept += weight.numel() * MASTER
        optimiser += gradient // ranks if weight in cut else gradient
        optimiser += kept // ranks if full else kept
    vocabulary = model.config.get_text_config().vocab_size
    number = torch.finfo(model.dtype).bits // 8
    return LearnerNeeds(
        weights=weights,
        optimiser=optimiser,
        logits=CHUNK * vocabulary * (number + 12),
        layer_again=saved.layer if checkpointing else 0.0,
        per_token=saved.per_token(checkpointing=checkpointing),
        reserved=RESERVED[device.type],
    )


@cache
def memory_of(device: torch.device) -> int:
    """Bytes of a GPU; of a CPU's memory, what is free plus what this process has, when first
    asked."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            resident = int(_lines(Path("/proc/self/statm"))[0].split()[1])
            return int(line.split()[1]) * 1024 + resident * os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="ascii").splitlines() if path.is_file() else []


@dataclass(frozen=True)
class SavedBytes:
    """What one token leaves behind between forward and backward.

    `layer` bytes in one decoder layer; `hidden` bytes of the states that go into it, which is all
    that is kept of a layer whose activations are computed again. `layers` of them.
    """

    layer: float
    hidden: int
    layers: int

    def per_token(self, *, checkpointing: bool) -> float:
        """Bytes of all layers together."""
        return self.layers * (self.hidden if checkpointing else self.layer)


_saved: dict[tuple[str, torch.dtype, str], SavedBytes] = {}


def saved_bytes(
    config: PreTrainedConfig, dtype: torch.dtype, *, lora: LoraConfig | None
) -> SavedBytes:
    """Count what a model of this `config` keeps, with an adapter (fp32) or, `lora` None, trained
    whole.

    Nothing of the model's size is made: two small models are, on the meta device, of one layer and
    of two, and what the second keeps more is a layer's. There attention keeps all of its weights,
    as no kernel does that computes; two lengths tell these, which grow with the square, apart. A
    process counts once for a `config`.
    """
    text = config.get_text_config()
    asked = (text.to_json_string(), dtype, str(lora and lora.to_dict()))
    if asked not in _saved:
        _saved[asked] = _count(text, dtype, lora)
    return _saved[asked]


def _count(text: PreTrainedConfig, dtype: torch.dtype, lora: LoraConfig | None) -> SavedBytes:
    one, two = (_kept(text, dtype, lora, layers) for layers in (1, 2))
    short, long = (more - less for more, less in zip(two, one, strict=True))
    number = torch.finfo(dtype).bits // 8
    return SavedBytes(
        layer=2 * short / _COUNTED - long / (2 * _COUNTED),
        hidden=text.hidden_size * number,
        layers=text.num_hidden_layers,
    )


def _kept(
    config: PreTrainedConfig, dtype: torch.dtype, lora: LoraConfig | None, layers: int
) -> tuple[int, int]:
    """Bytes that a model of so many layers keeps of a row, and of one twice as long."""
    small = deepcopy(config)
    small.num_hidden_layers = layers
    if getattr(small, "layer_types", None):  # one for each layer
        small.layer_types = small.layer_types[:layers]
    small.vocab_size = 8
    small.pad_token_id = small.bos_token_id = small.eos_token_id = None
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(small, dtype=dtype, attn_implementation="sdpa")
        if lora is not None:
            get_peft_model(model, deepcopy(lora))
    body = model.get_decoder()

    def of(length: int) -> int:
        ids = torch.zeros((1, length), dtype=torch.long, device="meta")
        with kept_bytes(weights=model.parameters()) as counted:
            # With a cache, or transformers would look for packed sequences in numbers, and there
            # are none. What it returns holds what is counted until the count is done.
            states = body(input_ids=ids, past_key_values=DynamicCache(), use_cache=True)
        del states
        return counted()

    return of(_COUNTED), of(2 * _COUNTED)


@contextmanager
def kept_bytes(*, weights: Iterator[torch.nn.Parameter]) -> Iterator[Callable[[], int]]:
    """Within this block, count the bytes of what autograd keeps: each storage once, weights left
    out."""
    ours = {weight.untyped_storage()._cdata for weight in weights}
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in ours:
            # Held, so that its address is not another one's later.
            storages[storage._cdata] = storage
        return tensor

    total = 0
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield lambda: total or sum(storage.nbytes() for storage in storages.values())
    total = sum(storage.nbytes() for storage in storages.values())
    storages.clear()
