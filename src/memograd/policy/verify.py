"""Is a tree forward right for this model? Asked once, before the first gradient of a run.

The tree forwards assume a decoder that takes their mask and an output layer without extras. Most
causal language models fulfil that; some (sliding windows, scaled or capped logits) do not, and
would train on wrong numbers without a word. So the run compares log-probabilities and gradients of
both forwards on two small subtrees of its own first batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from transformers import PreTrainedModel

from memograd.policy.rows import row_logprobs
from memograd.policy.sampler import SampledTree
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.policy.tree_forward import tree_logprobs
from memograd.rollout.token_tree import TokenTree

T = TypeVar("T")

TOLERANCES = {torch.float32: (5e-4, 1e-3), torch.bfloat16: (0.5, 0.2)}
"""(max |log-prob difference| in nats, relative gradient error) by the model's dtype. Rounding alone
gives 1e-5 and 1e-5 in fp32; a wrong mask or a missing scale gives differences of order 1."""


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

    Looks at two answers of each of two prompts, the one that is longest with its longest answer and
    the shortest; NaN if anything is.
    """
    errors = []
    for group in _extremes(sampled, key=lambda group: length_of(group.tree)):
        rows = _telling_branches(group.tree)
        scores = row_logprobs(model, [_only(group.tree, rows)], temperature=temperature)
        for line, row in enumerate(rows):
            drawn = torch.from_numpy(group.logprobs[row])
            errors.append((scores.logprobs_RT[line, : len(drawn)].cpu() - drawn).abs().max())
    return float(torch.stack(errors).max())


def small_subtrees(trees: Sequence[TokenTree]) -> list[TokenTree]:
    """The trees whose longest rows are the longest and the shortest, two branches of each.

    The longest, because limited attention shows only there; both, because padding shows only
    between unequal ones; two branches, because that is enough to see each other wrongly.
    """
    return [_only(tree, _telling_branches(tree)) for tree in _extremes(trees, key=length_of)]


def length_of(tree: TokenTree) -> int:
    """Tokens of the prompt with its longest branch."""
    return len(tree.trunk) + 1 + max(map(len, tree.branches), default=0)


def _extremes(items: Sequence[T], key: Callable[[T], int]) -> list[T]:
    ordered = sorted(items, key=key)
    return [ordered[-1], *ordered[:1]] if len(ordered) > 1 else ordered


def _telling_branches(tree: TokenTree) -> list[int]:
    """The longest branch, and the longest one that differs from it if there is one."""
    rows = sorted(range(len(tree.branches)), key=lambda row: -len(tree.branches[row]))
    others = [row for row in rows[1:] if tree.branch(row) != tree.branch(rows[0])]
    return [rows[0], *others[:1]]


def _only(tree: TokenTree, rows: Sequence[int]) -> TokenTree:
    answers = [tree.branch(row) for row in rows]
    allowed = [tree.allowed_in(row) for row in rows]
    return TokenTree.from_branches(tree.prompt, answers, allowed=allowed)


def compare_forwards(
    model: PreTrainedModel,
    parameters: Sequence[torch.nn.Parameter],
    trees: Sequence[TokenTree],
    *,
    temperature: float,
    forward: Callable[..., BranchLogprobs] = tree_logprobs,
) -> Agreement:
    """Run `forward` and rows, and their gradients with respect to `parameters`, on `trees`.

    The scalar whose gradient is compared weights every token differently (a fixed cosine pattern),
    so that errors cannot cancel. Leaves `.grad` untouched.
    """
    results = []
    for compute in (forward, row_logprobs):
        scores = compute(model, trees, temperature=temperature)
        count = scores.logprobs_RT.numel()
        weights = torch.cos(torch.arange(count, device=scores.logprobs_RT.device) * 0.7)
        scalar = (scores.logprobs_RT.flatten() * weights).sum()
        gradients = torch.autograd.grad(scalar, list(parameters), allow_unused=True)
        flat = torch.cat(
            [
                (torch.zeros_like(p) if g is None else g).flatten().float()
                for p, g in zip(parameters, gradients, strict=True)
            ]
        )
        results.append((scores.logprobs_RT.detach(), flat))
    (tree_RT, tree_gradient), (row_RT, row_gradient) = results
    norm = row_gradient.norm().clamp_min(1e-12)
    return Agreement(
        logprob_error=float((tree_RT - row_RT).abs().max()) if tree_RT.numel() else 0.0,
        gradient_error=float((tree_gradient - row_gradient).norm() / norm),
        dtype=model.dtype,
    )
