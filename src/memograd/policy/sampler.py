"""Sampling G answers a prompt, with every shared token computed once.

Each prompt is prefilled once. Its G answers then grow as one token tree: at every step the distinct
live nodes of all prompts go through the model in a single batch of one row a prompt, where a node
attends to the prompt's keys and values and to its own ancestors. So the prompt's cache is never
copied G times, two samples that agree so far cost one token, a finished sample stops costing
anything at once, and a prompt whose samples have all finished leaves the batch. Prompts that go on
from earlier answers find those answers' keys and values in `KeptPrefixes`, if the caller has some:
of such a prompt only what is new is run. What new prompts open with alike is run once for all of
them.

Invariants: each sample is drawn from softmax(logits / temperature) of the tokens before it,
whatever else is in the batch; the returned log-probabilities are those of the drawn ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import Cache, PreTrainedModel

from memograd.errors import MemogradError
from memograd.policy.kv_cache import NOTHING, KeptPrefixes, KVBuffer
from memograd.policy.prefill import common_beginning, prefill
from memograd.policy.token_logprobs import body_of, head_of
from memograd.policy.tree_forward import additive_mask
from memograd.rollout.token_tree import TokenTree, TreeBuilder
from memograd.rollout.types import each

Stopped = Callable[[Sequence[int]], bool]
"""Whether an answer of these token ids is over, though its last one is no end token."""


def never(ids: Sequence[int]) -> bool:
    """Only end tokens end an answer."""
    return False


@dataclass(frozen=True)
class SampledTree:
    """The tree of one prompt's answers; branch i has `logprobs[i]` [C_i] and `stop_reasons[i]`.

    The first `reused_tokens` of the prompt were not run for it: keys and values were there.
    """

    tree: TokenTree
    logprobs: tuple[np.ndarray, ...]
    stop_reasons: tuple[str, ...]
    reused_tokens: int = 0


@dataclass
class _GrowingAnswer:
    """One growing answer: its nodes, their token ids and log-probabilities, and why it stopped."""

    nodes: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    stop_reason: str | None = None

    @property
    def last(self) -> int:
        return self.nodes[-1] if self.nodes else 0


@dataclass
class _Growth:
    """One prompt's tree while it grows; `visible[node]`: the answer slots it attends to."""

    prompt: Sequence[int]
    builder: TreeBuilder
    samples: list[_GrowingAnswer]
    visible: dict[int, tuple[int, ...]] = field(default_factory=lambda: {0: ()})

    @property
    def prompt_length(self) -> int:
        return len(self.prompt)

    def frontier(self) -> list[int]:
        """The distinct nodes that live samples stand on."""
        return sorted({sample.last for sample in self.samples if sample.stop_reason is None})


@torch.no_grad()
def sample_trees(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    draw: TokenDraw,
    *,
    num_generations: int | Sequence[int],
    kept: KeptPrefixes | None = None,
) -> list[SampledTree]:
    """Draw `num_generations` answers to each prompt, or to each its own number of them (token ids
    in, token ids out).

    `kept` hands over what it has and is left with the answers of this call that ended, for prompts
    that go on from them: what no prompt of this call went on from is given up. Raises
    `MemogradError` for a model whose cache is not keys and values a layer.
    """
    growths = [
        _Growth(prompt, TreeBuilder(prompt), [_GrowingAnswer() for _ in range(count)])
        for prompt, count in zip(prompts, each(num_generations, len(prompts)), strict=True)
    ]
    beginnings = [NOTHING if kept is None else kept.longest(prompt) for prompt in prompts]
    reused = [beginning.length for beginning in beginnings]
    new = [row for row, beginning in enumerate(beginnings) if not beginning.length]
    shared = common_beginning(model, [prompts[row] for row in new])
    if shared is not None:
        for row in new:
            beginnings[row] = shared
            reused[row] = 0 if row == new[0] else shared.length  # it was run for the first of them
    if kept is not None:
        kept.clear()
    logits_BV, buffers = prefill(model, prompts, beginnings)
    del beginnings  # copied into the buffers, so they need not stay beside them
    cache = Cache(layers=list(buffers))
    draw.extend(growths, {(row, 0): row for row in range(len(growths))}, logits_BV)
    live = list(range(len(growths)))
    while True:
        still = [row for row, index in enumerate(live) if growths[index].frontier()]
        if kept is not None:
            for row in sorted(set(range(len(live))) - set(still)):
                _keep(kept, growths[live[row]], buffers, row)
        if not still:
            break
        if len(still) < len(live):
            cache.batch_select_indices(torch.tensor(still, device=model.device))
            live = [live[row] for row in still]
        batch = [growths[index] for index in live]
        logits_FV, state_of = _decode(model, batch, cache)
        draw.extend(batch, state_of, logits_FV)
    return [
        SampledTree(
            growth.builder.build([sample.nodes for sample in growth.samples]),
            tuple(np.asarray(sample.logprobs, dtype=np.float32) for sample in growth.samples),
            tuple(str(sample.stop_reason) for sample in growth.samples),
            tokens,
        )
        for growth, tokens in zip(growths, reused, strict=True)
    ]


@dataclass(frozen=True)
class TokenDraw:
    """How the next token is chosen and when an answer ends.

    Temperature 0 takes the most likely token. A drawn end token is the answer's last token, and so
    is one after which `stopped` says so of the answer.
    """

    temperature: float
    max_completion_length: int
    end_ids: frozenset[int] = frozenset()
    generator: torch.Generator | None = None
    stopped: Stopped = never

    def why_over(self, ids: Sequence[int]) -> str | None:
        """Why an answer ends with the last of `ids`, if it does."""
        if ids[-1] in self.end_ids or self.stopped(ids):
            return "end"
        return "length" if len(ids) == self.max_completion_length else None

    def choose(
        self, logits_FV: torch.Tensor, states: torch.Tensor
    ) -> tuple[list[int], list[float]]:
        """One token and its log-probability for each of `states` (rows of `logits_FV`)."""
        logprobs_FV = torch.log_softmax(logits_FV.float() / (self.temperature or 1.0), dim=-1)
        if self.temperature == 0:
            tokens = logprobs_FV.argmax(-1)[states]
        else:
            tokens = self._draw(logprobs_FV.exp(), states)
        return tokens.tolist(), logprobs_FV[states, tokens].tolist()

    def _draw(self, probabilities_FV: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """One token for each of `states`. Raises `MemogradError` for what is no distribution."""
        if probabilities_FV.device.type != "cpu":
            return torch.multinomial(probabilities_FV[states], 1, generator=self.generator)[:, 0]
        # `multinomial` draws a random number for every entry of the vocabulary: on a CPU that takes
        # a tenth of all sampling. The inverse of the distribution function needs one for a sample.
        cumulative_SV = probabilities_FV.cumsum(-1)[states]
        total_S1 = cumulative_SV[:, -1:]
        if not bool(total_S1.isfinite().all()):
            raise MemogradError(
                "the model's probabilities of the next token are not numbers (NaN or infinity), so "
                "nothing can be drawn; its weights have probably diverged"
            )
        drawn_S1 = total_S1 * torch.rand(total_S1.shape, generator=self.generator)
        # The first entry above the number: one that has probability 0 is never it.
        return torch.searchsorted(cumulative_SV, drawn_S1, right=True)[:, 0]

    def extend(
        self,
        batch: Sequence[_Growth],
        state_of: dict[tuple[int, int], int],
        logits_FV: torch.Tensor,
    ) -> None:
        """Give every live sample of `batch` one more token.

        `state_of[(row, node)]` is the row of `logits_FV` that predicts what follows that node.
        """
        drawers = [
            (growth, sample, state_of[row, sample.last])
            for row, growth in enumerate(batch)
            for sample in growth.samples
            if sample.stop_reason is None
        ]
        states = torch.tensor([state for *_, state in drawers], device=logits_FV.device)
        tokens, logprobs = self.choose(logits_FV, states)
        for (growth, sample, _), token, logprob in zip(drawers, tokens, logprobs, strict=True):
            sample.nodes.append(growth.builder.child(sample.last, token))
            sample.ids.append(token)
            sample.logprobs.append(logprob)
            sample.stop_reason = self.why_over(sample.ids)


def _keep(kept: KeptPrefixes, growth: _Growth, buffers: Sequence[KVBuffer], row: int) -> None:
    """Remember the keys and values of a prompt with each of its answers that ended by itself; from
    one that was cut nothing goes on."""
    for sample in growth.samples:
        if sample.stop_reason != "end":
            continue
        run = sample.nodes[:-1]  # the last token was drawn and never run
        answer_slots = growth.visible[run[-1]] if run else ()
        slots = torch.tensor([*range(growth.prompt_length), *answer_slots])
        ids = [*growth.prompt, *(growth.builder.token(node) for node in run)]
        kept.keep(ids, [buffer.slots(row, slots) for buffer in buffers])


def _decode(
    model: PreTrainedModel, batch: Sequence[_Growth], cache: Cache
) -> tuple[torch.Tensor, dict[tuple[int, int], int]]:
    """Run the frontier nodes of all prompts; returns logits [F, V] and which row is whose."""
    frontiers = [growth.frontier() for growth in batch]
    width = max(len(frontier) for frontier in frontiers)
    used = cache.get_seq_length()
    nodes_BQ = np.zeros((len(batch), width), dtype=np.int64)
    positions_BQ = np.zeros((len(batch), width), dtype=np.int64)
    visible_BQK = np.zeros((len(batch), width, used + width), dtype=bool)
    # Padded queries see the first prompt token, so that their softmax is defined.
    visible_BQK[:, :, 0] = True
    state_of: dict[tuple[int, int], int] = {}
    chosen: list[int] = []
    for row, (growth, frontier) in enumerate(zip(batch, frontiers, strict=True)):
        for column, node in enumerate(frontier):
            slots = (*growth.visible[growth.builder.parent(node)], used + column)
            growth.visible[node] = slots
            nodes_BQ[row, column] = growth.builder.token(node)
            positions_BQ[row, column] = growth.prompt_length + len(slots) - 1
            visible_BQK[row, column, : growth.prompt_length] = True
            visible_BQK[row, column, list(slots)] = True
            state_of[row, node] = len(chosen)
            chosen.append(row * width + column)
    device = model.device
    hidden_BQD = body_of(model)(
        input_ids=torch.from_numpy(nodes_BQ).to(device),
        position_ids=torch.from_numpy(positions_BQ).to(device),
        attention_mask=additive_mask(visible_BQK, model.dtype, device),
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    states_F = torch.tensor(chosen, device=device)
    return head_of(model)(hidden_BQD.flatten(0, 1)[states_F]), state_of
