"""Continuous batching: samples join and leave a running batch between two decoding steps.

`memograd.policy.sampler` is for prompts that come together, as in training. A server's requests
come when they come: here newcomers are prefilled together and join at the next step, and the place
of one that has finished is free at once. Every sample has its own temperature, nucleus and random
numbers. What a newcomer's prompt shares with one that is there, or was there lately, is not
computed again: an agent's next call begins with the one before it, and G attempts at one scenario
begin alike.

Invariant: what is drawn for a sample depends on its request alone, up to the rounding of matrix
products, whoever shares the batch; the returned log-probabilities are those of the drawn ids in
softmax(logits / temperature) of the tokens before them, over the allowed tokens where a request
has a constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import PreTrainedModel

from memograd.errors import MemogradError
from memograd.policy.kv_cache import LEAST_SHARED, Beginning, KeptPrefixes, SlotCache, common
from memograd.policy.prefill import PREFILL_TOKENS, prefill
from memograd.policy.token_logprobs import Constraint, body_of, head_of, restricted
from memograd.policy.tree_forward import additive_mask
from memograd.rollout.types import TokenMask

KEPT_TOKENS = {"cpu": 4096, "cuda": 65_536, "mps": 8_192}
"""Tokens of finished samples whose keys and values are kept for prompts that go on from them."""


@dataclass(frozen=True)
class SampleRequest:
    """What one sample is drawn from. Temperature 0 takes the most likely token.

    `constraint` says which tokens may come; the sample is drawn from the distribution over these.
    `top_p` cuts what is drawn to the most likely tokens that have that much probability (Holtzman
    et al. 2019, arXiv:1904.09751); `top_logprobs` is how many alternatives a token are reported.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0
    top_logprobs: int = 0
    constraint: Constraint | None = None


@dataclass(eq=False)
class Sample:
    """A sample while it grows: drawn `ids`, `logprobs` of each, `tops` (id, log-probability), and
    the tokens `allowed` in each place, where the request has a constraint."""

    request: SampleRequest
    generator: torch.Generator
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tops: list[list[tuple[int, float]]] = field(default_factory=list)
    allowed: list[TokenMask | None] = field(default_factory=list)
    constraint: Constraint | None = None
    stop_reason: str | None = None

    def __post_init__(self) -> None:
        if self.request.constraint is not None:
            self.constraint = self.request.constraint.fork()

    def may_come(self) -> TokenMask | None:
        """The tokens that may come next; None: all."""
        return None if self.constraint is None else self.constraint.allowed()


class ContinuousSampler:
    """The running batch of one model; for one thread, which owns the model meanwhile."""

    def __init__(self, model: PreTrainedModel, end_ids: frozenset[int]) -> None:
        self._model = model
        self._end_ids = end_ids
        self._layers = model.config.get_text_config().num_hidden_layers
        self._cache = SlotCache(self._layers)
        self._kept = KeptPrefixes(KEPT_TOKENS[model.device.type])
        self.samples: list[Sample] = []
        self.computed_tokens = 0

    def together(self, requests: Sequence[SampleRequest]) -> list[int]:
        """Places of the requests that are best added at once, at least one.

        One that begins like another of them waits for it, and need not compute that again.
        """
        chosen: list[int] = []
        tokens = 0
        for place, request in enumerate(requests):
            prompt = np.asarray(request.prompt)
            known, _ = self._known(request.prompt)
            alike = (common(np.asarray(requests[other].prompt), prompt) for other in chosen)
            if max(alike, default=0) >= known + LEAST_SHARED:
                continue
            tokens += len(prompt) - known
            if chosen and tokens > PREFILL_TOKENS[self._model.device.type]:
                break
            chosen.append(place)
        return chosen

    @torch.no_grad()
    def add(self, requests: Sequence[SampleRequest]) -> list[Sample]:
        """Prefill the prompts and draw their first tokens; the samples have joined unless they are
        over. If it fails, none has."""
        samples = [
            Sample(request, torch.Generator().manual_seed(request.seed)) for request in requests
        ]
        prompts = [request.prompt for request in requests]
        beginnings = [self._beginning(prompt) for prompt in prompts]
        logits_BV, buffers = prefill(self._model, prompts, beginnings)
        self.computed_tokens += sum(map(len, prompts)) - sum(one.length for one in beginnings)
        self._draw(samples, logits_BV)
        for row, (sample, prompt) in enumerate(zip(samples, prompts, strict=True)):
            slots = torch.arange(len(prompt), device=logits_BV.device)
            keys_values = [buffer.slots(row, slots) for buffer in buffers]
            if sample.stop_reason is None:
                # Most answers are shorter than they may be, so room is made for a part of it.
                room = len(prompt) + min(sample.request.max_tokens, 128)
                self._cache.add(keys_values, room=room)
                self.samples.append(sample)
            else:
                self._kept.keep(prompt, keys_values)
        return samples

    @torch.no_grad()
    def step(self) -> list[Sample]:
        """One more token for every sample; returns them all. Those that are over have left."""
        batch = list(self.samples)
        if not batch:
            return []
        lengths = np.asarray(self._cache.lengths)
        visible_B1K = (np.arange(lengths.max() + 1)[None] <= lengths[:, None])[:, None]
        device = self._model.device
        hidden_B1D = body_of(self._model)(
            input_ids=torch.tensor([[sample.ids[-1]] for sample in batch], device=device),
            position_ids=torch.from_numpy(lengths[:, None]).to(device),
            attention_mask=additive_mask(visible_B1K, self._model.dtype, device),
            past_key_values=self._cache.cache,
            use_cache=True,
        ).last_hidden_state
        self._cache.grown()
        self.computed_tokens += len(batch)
        self._draw(batch, head_of(self._model)(hidden_B1D[:, 0]))
        for sample in batch:
            if sample.stop_reason is not None:
                self.remove(sample)
        return batch

    def remove(self, sample: Sample) -> None:
        """Take a sample out of the batch, at its end or before it."""
        row = self.samples.index(sample)
        length = self._cache.lengths[row]
        ids = (*sample.request.prompt, *sample.ids)[:length]
        self._kept.keep(ids, self._cache.row(row, length))
        self._cache.remove(row)
        self.samples[row] = self.samples[-1]
        self.samples.pop()
        if not self.samples:
            self._cache = SlotCache(self._layers)  # buffers as long as the longest ever are freed

    def forget(self) -> None:
        """The weights have changed: nothing computed so far may be used again.

        Raises ValueError while samples are being drawn.
        """
        if self.samples:
            raise ValueError(f"{len(self.samples)} samples are still being drawn")
        self._kept.clear()

    def _beginning(self, prompt: tuple[int, ...]) -> Beginning:
        """The longest known beginning of `prompt`, kept or in the batch, without its last token."""
        length, row = self._known(prompt)
        if row is None:
            return self._kept.longest(prompt)
        return Beginning(length, self._cache.row(row, length))

    def _known(self, prompt: tuple[int, ...]) -> tuple[int, int | None]:
        """How much of `prompt` is known, and in which row of the batch; None: it is kept."""
        best, source = self._kept.longest(prompt).length, None
        wanted = np.asarray(prompt[:-1])
        for row, sample in enumerate(self.samples):
            known = (*sample.request.prompt, *sample.ids)[: self._cache.lengths[row]]
            length = common(np.asarray(known), wanted)
            if length >= LEAST_SHARED and length > best:
                best, source = length, row
        return best, source

    def _draw(self, batch: Sequence[Sample], logits_BV: torch.Tensor) -> None:
        """Give every sample of `batch` one more token. Raises MemogradError for NaN."""
        asked = [sample.request for sample in batch]
        temperatures = torch.tensor([request.temperature or 1.0 for request in asked])
        masks = [sample.may_come() for sample in batch]
        scores_BV = restricted(logits_BV.float().cpu() / temperatures[:, None], masks)
        logprobs_BV = torch.log_softmax(scores_BV, dim=-1)
        if bool(logprobs_BV.isnan().any()):
            raise MemogradError(
                "the model's probabilities of the next token are not numbers (NaN or infinity), so "
                "nothing can be drawn; its weights have probably diverged"
            )
        drawn = self._choose(batch, logprobs_BV)
        chosen = logprobs_BV[torch.arange(len(batch)), drawn].tolist()
        for row, (sample, token) in enumerate(zip(batch, drawn.tolist(), strict=True)):
            sample.ids.append(token)
            sample.logprobs.append(chosen[row])
            if sample.request.top_logprobs:
                values, ids = logprobs_BV[row].topk(sample.request.top_logprobs)
                sample.tops.append(list(zip(ids.tolist(), values.tolist(), strict=True)))
            if sample.constraint is not None:
                sample.allowed.append(masks[row])
                sample.constraint.advance(token)
            if token in self._end_ids:
                sample.stop_reason = "end"
            elif len(sample.ids) >= sample.request.max_tokens:
                sample.stop_reason = "length"

    def _choose(self, batch: Sequence[Sample], logprobs_BV: torch.Tensor) -> torch.Tensor:
        """One token a row: the first whose cumulative probability is above a random number."""
        probabilities_BV = logprobs_BV.exp()
        for row, sample in enumerate(batch):
            if sample.request.top_p < 1:
                probabilities_BV[row] = _nucleus(probabilities_BV[row], sample.request.top_p)
        cumulative_BV = probabilities_BV.cumsum(-1)
        random_B = torch.stack([torch.rand((), generator=sample.generator) for sample in batch])
        aim_B1 = cumulative_BV[:, -1:] * random_B[:, None]
        drawn_B = torch.searchsorted(cumulative_BV, aim_B1, right=True)[:, 0]
        greedy = torch.tensor([sample.request.temperature == 0 for sample in batch])
        return torch.where(greedy, logprobs_BV.argmax(-1), drawn_B)


def _nucleus(probabilities_V: torch.Tensor, top_p: float) -> torch.Tensor:
    """The probabilities of the smallest set of most likely tokens that reaches `top_p`; else 0."""
    ordered_V, ids_V = probabilities_V.sort(descending=True, stable=True)
    before_V = ordered_V.cumsum(0) - ordered_V
    before_V[0] = 0.0  # the most likely token stays, whatever the rounding
    return torch.zeros_like(probabilities_V).scatter_(0, ids_V, ordered_V * (before_V < top_p))
