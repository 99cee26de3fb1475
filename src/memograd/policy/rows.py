"""The plain way: every rollout is a row of its own, prompt and all, drawn and scored.

This is the reference that token trees are measured against, and what a run falls back to when a
model's architecture makes the two disagree. It calls the model as any Hugging Face user would
(prompts padded left, an attention mask, the model's own cache) and shares nothing with the tree
forward but the result type. A group with more than `CHUNK` states to score goes a few rows at a
time, each piece computed again in the backward pass, so that the logits of a whole group never
exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, PreTrainedModel

from memograd.policy.prefill import batches_by_tokens
from memograd.policy.sampler import SampledTree, TokenDraw
from memograd.policy.token_logprobs import CHUNK, BranchLogprobs, ValueHead, restricted
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import TokenMask, TokenMasks, each

ROW_TOKENS = 32_768
"""Padded tokens of all rows that are decoded together."""


def row_logprobs(
    model: PreTrainedModel,
    trees: Sequence[TokenTree],
    *,
    temperature: float,
    entropy_gradient: bool = False,
    value_head: ValueHead | None = None,
    chunk: int = CHUNK,
) -> BranchLogprobs:
    """Log-probabilities of every branch of `trees`, computed row by row; as `tree_logprobs`.

    At most `chunk` states, but at least one row, meet the output layer at once.
    """
    longest = max(len(branch) for tree in trees for branch in tree.branches)
    together = rows_at_once(longest, chunk)
    parts = []
    for tree in trees:
        count = len(tree.branches)
        for start in range(0, count, together):
            rows = range(start, min(start + together, count))
            arguments = (model, tree, rows, longest, temperature, entropy_gradient, value_head)
            if torch.is_grad_enabled() and count > together:
                parts.append(checkpoint(_some_rows, *arguments, use_reentrant=False))
            else:
                parts.append(_some_rows(*arguments))
    logprobs, entropies, masks, values = zip(*parts, strict=True)
    return BranchLogprobs(
        torch.cat(logprobs),
        torch.cat(entropies),
        torch.cat(masks),
        None if value_head is None else torch.cat(values),
    )


def rows_at_once(longest: int, chunk: int = CHUNK) -> int:
    """How many rows go together if the longest answer has so many tokens."""
    return max(1, chunk // (longest + 1))


def _some_rows(
    model: PreTrainedModel,
    tree: TokenTree,
    rows: Sequence[int],
    longest: int,
    temperature: float,
    entropy_gradient: bool,
    value_head: ValueHead | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The fields of `BranchLogprobs` for these branches of one tree."""
    prompt, count = tree.prompt, len(rows)
    ids = torch.zeros((count, len(prompt) + longest), dtype=torch.long)
    mask = torch.zeros_like(ids)
    mask_RT = torch.zeros((count, longest), dtype=torch.bool)
    for line, row in enumerate(rows):
        tokens = torch.tensor(prompt + tree.branch(row))
        ids[line, : len(tokens)] = tokens
        mask[line, : len(tokens)] = 1
        mask_RT[line, : len(tree.branches[row])] = torch.from_numpy(tree.scored[row])
    ids, mask, mask_RT = ids.to(model.device), mask.to(model.device), mask_RT.to(model.device)
    # One more state than answer tokens: the prompt's last token predicts the first.
    output = model(
        input_ids=ids,
        attention_mask=mask,
        logits_to_keep=longest + 1,
        use_cache=False,
        output_hidden_states=value_head is not None,
    )
    scores_RTV = output.logits[:, :-1].float() / temperature
    answers_RT = ids[:, len(prompt) :]
    masks = [mask for row in rows for mask in _padded(tree.allowed_in(row), longest)]
    scores_RTV = restricted(scores_RTV.flatten(0, 1), masks).view_as(scores_RTV)
    all_logprobs = torch.log_softmax(scores_RTV, dim=-1)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        entropies_RT = -(all_logprobs.exp() * all_logprobs).sum(-1)
    logprobs_RT = all_logprobs.gather(-1, answers_RT[..., None])[..., 0]
    values_RT = None
    if value_head is not None:
        states_RTD = output.hidden_states[-1][:, len(prompt) - 1 : -1]
        values_RT = value_head(states_RTD) * mask_RT
    return logprobs_RT * mask_RT, entropies_RT * mask_RT, mask_RT, values_RT


def _padded(masks: TokenMasks, length: int) -> list[TokenMask | None]:
    return [*masks, *[None] * (length - len(masks))]


def sample_rows(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    draw: TokenDraw,
    *,
    num_generations: int | Sequence[int],
) -> list[SampledTree]:
    """Draw answers as `sample_trees` does, without sharing anything."""
    sampled: dict[int, SampledTree] = {}
    counts = each(num_generations, len(prompts))
    lengths = [
        (len(prompt) + draw.max_completion_length) * count
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
    draw: TokenDraw,
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
