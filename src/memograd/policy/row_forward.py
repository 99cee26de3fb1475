"""The plain forward: every rollout is a row of its own, prompt and all.

This is the reference that the tree forward is measured against, and what a run falls back to when a
model's architecture makes the two disagree. It calls the model as any Hugging Face user would and
shares nothing with the tree forward but the result type. Tested in
`tests/policy/test_forward.py`. May import torch and transformers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from memograd.policy.token_logprobs import BranchLogprobs
from memograd.rollout.token_tree import TokenTree


def row_logprobs(
    model: PreTrainedModel,
    trees: Sequence[TokenTree],
    *,
    temperature: float,
    entropy_gradient: bool = False,
) -> BranchLogprobs:
    """Log-probabilities of every branch of `trees`, computed row by row; as `tree_logprobs`."""
    longest = max(len(branch) for tree in trees for branch in tree.branches)
    parts = [_one_group(model, tree, longest, temperature, entropy_gradient) for tree in trees]
    return BranchLogprobs(
        torch.cat([part.logprobs_RT for part in parts]),
        torch.cat([part.entropies_RT for part in parts]),
        torch.cat([part.mask_RT for part in parts]),
    )


def _one_group(
    model: PreTrainedModel,
    tree: TokenTree,
    longest: int,
    temperature: float,
    entropy_gradient: bool,
) -> BranchLogprobs:
    prompt, count = tree.prompt, len(tree.branches)
    ids = torch.zeros((count, len(prompt) + longest), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row in range(count):
        tokens = torch.tensor(prompt + tree.branch(row))
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    ids, mask = ids.to(model.device), mask.to(model.device)
    # One more state than answer tokens: the prompt's last token predicts the first.
    output = model(input_ids=ids, attention_mask=mask, logits_to_keep=longest + 1, use_cache=False)
    logits_RTV = output.logits[:, :-1]
    answers_RT = ids[:, len(prompt) :]
    mask_RT = mask[:, len(prompt) :].bool()
    all_logprobs = torch.log_softmax(logits_RTV.float() / temperature, dim=-1)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        entropies_RT = -(all_logprobs.exp() * all_logprobs).sum(-1)
    logprobs_RT = all_logprobs.gather(-1, answers_RT[..., None])[..., 0]
    return BranchLogprobs(logprobs_RT * mask_RT, entropies_RT * mask_RT, mask_RT)
