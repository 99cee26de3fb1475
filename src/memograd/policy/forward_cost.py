"""What each way of computing trees would cost, counted before it is done, and where trees are cut.

Three forwards give the same numbers: `packed` (one depth-first row), `tree` (two passes, with a
cache of keys and values and a dense mask) and `rows`. What shares tokens is `packed` where the
model's attention can be exchanged, since it pads nothing and was as fast or faster wherever it was
measured (`docs/performance.md`), and `tree` where it cannot. Whether that is cheaper than rows
depends on shapes alone, so it is counted, in multiply-adds of one forward pass:

    tokens x weights of the layers   +   pairs of query and key x 2 x width of attention

Padding counts, since it is computed, and so do pairs that a mask hides but a kernel computes. Rows
that are many are computed once more in the backward pass, which makes three passes' worth four.

Invariant: the choice is a function of the trees' shapes, the model's and the kind of device, never
of a timing, so a run that is resumed computes as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from memograd.policy.rows import rows_at_once
from memograd.policy.tree_attention import blocks_computed, pack
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
