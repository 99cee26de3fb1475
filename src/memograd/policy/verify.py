"""Is the tree forward right for this model? Asked once, before the first gradient of a run.

The tree forward assumes a decoder that takes a 4-D mask and an output layer without extras. Most
causal language models fulfil that; some (sliding windows, scaled or capped logits) do not, and
would train on wrong numbers without a word. So the run compares log-probabilities and gradients of
both forwards on two small subtrees of its own first batch. Tested in
`tests/policy/test_verify.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from memograd.policy.row_forward import row_logprobs
from memograd.policy.sampler import SampledTree
from memograd.policy.tree_forward import tree_logprobs
from memograd.rollout.token_tree import TokenTree

TOLERANCES = {
    torch.float32: (1e-3, 1e-2),
    torch.bfloat16: (0.5, 0.2),
    torch.float16: (0.1, 0.1),
}
"""(max |log-prob difference|, relative gradient error) by the model's dtype. Rounding alone gives
1e-5 and 1e-5 in fp32; a wrong mask or missing scale gives differences of order 1."""


@dataclass(frozen=True)
class Agreement:
    """How far the two forwards are apart on the same trees."""

    logprob_error: float
    gradient_error: float
    dtype: torch.dtype

    @property
    def holds(self) -> bool:
        """Whether the difference is rounding only (False for NaN as well)."""
        logprob_limit, gradient_limit = TOLERANCES[self.dtype]
        return self.logprob_error <= logprob_limit and self.gradient_error <= gradient_limit


@torch.no_grad()
def sampling_error(
    model: PreTrainedModel, sampled: Sequence[SampledTree], *, temperature: float
) -> float:
    """The largest difference (nats) between the sampler's log-probabilities and the row forward's.

    Looks at the first two answers of the two shortest prompts: enough to tell, cheap to run.
    """
    shortest = sorted(sampled, key=lambda group: len(group.tree.trunk))[:2]
    scores = row_logprobs(
        model, small_subtrees([group.tree for group in shortest]), temperature=temperature
    )
    drawn = [logprobs for group in shortest for logprobs in group.logprobs[:2]]
    return max(
        float((scores.logprobs_RT[row, : len(values)].cpu() - torch.from_numpy(values)).abs().max())
        for row, values in enumerate(drawn)
    )


def small_subtrees(trees: Sequence[TokenTree]) -> list[TokenTree]:
    """The two trees with the shortest prompts, two branches of each: cheap, and enough to tell."""
    shortest = sorted(trees, key=lambda tree: len(tree.trunk))[:2]
    return [
        TokenTree.from_branches(
            tree.prompt, [tree.branch(row) for row in range(min(2, len(tree.branches)))]
        )
        for tree in shortest
    ]


def compare_forwards(
    model: PreTrainedModel,
    parameters: Sequence[torch.nn.Parameter],
    trees: Sequence[TokenTree],
    *,
    temperature: float,
) -> Agreement:
    """Run both forwards and their gradients with respect to `parameters` on `trees`.

    The scalar whose gradient is compared weights every token differently (a fixed cosine pattern),
    so that errors cannot cancel. Leaves `.grad` untouched.
    """
    results = []
    for forward in (tree_logprobs, row_logprobs):
        scores = forward(model, trees, temperature=temperature)
        count = scores.logprobs_RT.numel()
        weights = torch.cos(torch.arange(count, device=scores.logprobs_RT.device) * 0.7)
        scalar = (scores.logprobs_RT.flatten() * weights).sum()
        gradients = torch.autograd.grad(scalar, list(parameters), allow_unused=True)
        flat = torch.cat([g.flatten().float() for g in gradients if g is not None])
        results.append((scores.logprobs_RT.detach(), flat))
    (tree_RT, tree_gradient), (row_RT, row_gradient) = results
    norm = row_gradient.norm().clamp_min(1e-12)
    return Agreement(
        logprob_error=float((tree_RT - row_RT).abs().max()) if tree_RT.numel() else 0.0,
        gradient_error=float((tree_gradient - row_gradient).norm() / norm),
        dtype=model.dtype,
    )
