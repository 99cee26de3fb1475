"""The plain sampler: every sample is a row of its own, prompt and all, decoded to the end.

The reference for `memograd.policy.sampler`, and what a run falls back to when a model's
architecture makes tree and row computation disagree. It calls the model as any Hugging Face user
would: prompts padded left, an attention mask, the model's own cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from memograd.policy.batching import batches_by_tokens
from memograd.policy.sampler import Draw, SampledTree, Stopped, never
from memograd.rollout.counts import each
from memograd.rollout.token_tree import TokenTree

ROW_TOKENS = 32_768
"""Padded tokens of all rows that are decoded together."""


def sample_rows(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    *,
    num_generations: int | Sequence[int],
    temperature: float,
    max_completion_length: int,
    end_ids: frozenset[int],
    generator: torch.Generator | None,
    stopped: Stopped = never,
) -> list[SampledTree]:
    """Draw answers as `sample_trees` does, without sharing anything."""
    draw = Draw(temperature, max_completion_length, end_ids, generator, stopped)
    sampled: dict[int, SampledTree] = {}
    counts = each(num_generations, len(prompts))
    lengths = [
        (len(prompt) + max_completion_length) * count
        for prompt, count in zip(prompts, counts, strict=True)
    ]
    for batch in batches_by_tokens(lengths, ROW_TOKENS):
        groups = _sample_batch(
            model,
            [prompts[index] for index in batch],
            [counts[index] for index in batch],
            draw,
        )
        sampled |= dict(zip(batch, groups, strict=True))
    return [sampled[index] for index in range(len(prompts))]


@torch.no_grad()
def _sample_batch(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    counts: Sequence[int],
    draw: Draw,
) -> list[SampledTree]:
    rows = [
        list(prompt) for prompt, count in zip(prompts, counts, strict=True) for _ in range(count)
    ]
    longest = max(len(row) for row in rows)
    ids_RT = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    mask_RT = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    ids_RT, mask_RT = ids_RT.to(model.device), mask_RT.to(model.device)
    cache = DynamicCache(config=model.config)
    answers: list[list[int]] = [[] for _ in rows]
    logprobs: list[list[float]] = [[] for _ in rows]
    reasons: list[str | None] = [None] * len(rows)
    every_row = torch.arange(len(rows), device=model.device)
    for _ in range(draw.max_completion_length):
        positions_RT = mask_RT.cumsum(dim=1) - 1
        logits_RV = model(
            input_ids=ids_RT,
            attention_mask=mask_RT,
            position_ids=positions_RT.clamp_min(0)[:, -ids_RT.shape[1] :],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        tokens, drawn = draw.choose(logits_RV, every_row)
        for row, (token, logprob) in enumerate(zip(tokens, drawn, strict=True)):
            if reasons[row] is None:
                answers[row].append(token)
                logprobs[row].append(logprob)
                reasons[row] = draw.why_over(answers[row])
        if all(reasons):
            break
        ids_RT = torch.tensor(tokens, device=model.device)[:, None]
        mask_RT = torch.cat([mask_RT, torch.ones_like(ids_RT)], dim=1)
    ends = accumulate(counts)
    groups = [range(end - count, end) for end, count in zip(ends, counts, strict=True)]
    return [
        SampledTree(
            TokenTree.from_branches(prompt, [answers[row] for row in group]),
            tuple(np.asarray(logprobs[row], dtype=np.float32) for row in group),
            tuple(str(reasons[row]) for row in group),
        )
        for prompt, group in zip(prompts, groups, strict=True)
    ]
