"""Which forward computes trees: what each would cost, counted beforehand, and whether it is right.

Three forwards give the same numbers: `packed` (one depth-first row), `tree` (two passes, with a
cache of keys and values and a dense mask) and `rows`. What shares tokens is `packed` where the
model's attention can be exchanged, since it pads nothing and was as fast or faster wherever it was
measured (`docs/performance.md`), and `tree` where it cannot. Whether that is cheaper than rows
depends on shapes alone, so it is counted, in multiply-adds of one forward pass:

    tokens x weights of the layers   +   pairs of query and key x 2 x width of attention

Padding counts, since it is computed, and so do pairs that a mask hides but a kernel computes. Rows
that are many are computed once more in the backward pass, which makes three passes' worth four.
Where trees are larger than may be computed at once, `cut_branches` says where they are cut.

The tree forwards assume a decoder that takes their mask and an output layer without extras. Most
causal language models fulfil that; some (sliding windows, scaled or capped logits) do not, and
would train on wrong numbers without a word. So before the first gradient a run compares
log-probabilities and gradients of both forwards on two small subtrees of its own first batch.

Invariant: the choice is a function of the trees' shapes, the model's and the kind of device, never
of a timing, so a run that is resumed computes as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from transformers import PreTrainedModel

from memograd.policy.rows import row_logprobs, rows_at_once
from memograd.policy.sampler import SampledTree
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.policy.tree_attention import blocks_computed, pack
from memograd.policy.tree_forward import tree_logprobs
from memograd.rollout.token_tree import TokenTree


@dataclass(frozen=True)
class LayerCosts:
    """Multiply-adds of all layers: for a token, and for a pair of query and key."""

    token: int
    pair: int

    @classmethod
    def of(cls, model: PreTrainedModel) -> LayerCosts:
        """Counted from the weights of `model`, adapters included."""
        config = model.config.get_text_config()
        ends = {
            id(weight)
            for end in (model.get_input_embeddings(), model.get_output_embeddings())
            if end is not None
            for weight in end.parameters()
        }
        weights = sum(
            weight.numel()
            for weight in model.parameters()
            if weight.dim() == 2 and id(weight) not in ends
        )
        heads = config.num_attention_heads
        head = getattr(config, "head_dim", None) or config.hidden_size // heads
        return cls(weights, 2 * heads * head * config.num_hidden_layers)


def predicted_costs(
    trees: Sequence[TokenTree], layers: LayerCosts, device: torch.device
) -> dict[str, int]:
    """Multiply-adds of one forward pass over `trees`, by the name of the forward."""
    row = pack(trees)
    if device.type == "cuda":
        pairs = blocks_computed(row)
    else:
        pairs = sum(tile.pairs for tile in row.tiles())
    costs = {"packed": len(row) * layers.token + pairs * layers.pair}

    trunk = max(1, *(len(tree.trunk) for tree in trees))
    inner = max(1, *(len(tree.inner_M) for tree in trees))
    pairs = len(trees) * (trunk * (trunk + 1) // 2 + inner * (trunk + inner))
    costs["tree"] = len(trees) * (trunk + inner) * layers.token + pairs * layers.pair

    longest = max((len(branch) for tree in trees for branch in tree.branches), default=0)
    tokens = pairs = 0
    for tree in trees:
        length = len(tree.prompt) + longest
        count = len(tree.branches)
        padded = any(len(branch) < longest for branch in tree.branches)
        tokens += count * length
        pairs += count * (length * length if padded else length * (length + 1) // 2)
    costs["rows"] = tokens * layers.token + pairs * layers.pair
    if any(len(tree.branches) > rows_at_once(longest) for tree in trees):
        costs["rows"] = costs["rows"] * 4 // 3
    return costs


def cheapest(costs: dict[str, int], allowed: Sequence[str]) -> str:
    """The name with the smallest cost of those that are `allowed`; the first of equal ones."""
    return min(allowed, key=lambda name: costs[name])


def cut_branches(tree: TokenTree, limit: int) -> list[list[int]]:
    """The branches of `tree` in order, in parts whose own trees have at most `limit` tokens each,
    or one branch.

    Every part has the trunk again; a beginning that branches of two parts share is in both.
    """
    if tree.tree_tokens <= limit:
        return [list(range(len(tree.branches)))]
    trunk = len(tree.trunk)
    inner = set(tree.inner_M.tolist())
    parts: list[list[int]] = []
    seen: set[int] = set()
    for row, branch in enumerate(tree.branches):
        own = {0, *branch.tolist()} & inner
        if parts and trunk + len(seen | own) <= limit:
            parts[-1].append(row)
            seen |= own
        else:
            parts.append([row])
            seen = own
    return parts


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
