"""House contract 2: the tree forward equals the row forward, values and gradients, for any tree."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.policy.row_forward import row_logprobs
from memograd.policy.tree_forward import tree_logprobs
from memograd.policy.verify import compare_forwards
from memograd.rollout import TokenTree

answers = st.lists(st.lists(st.integers(2, 5), max_size=6), min_size=1, max_size=5)
prompts = st.lists(st.integers(2, 60), min_size=1, max_size=12)
forests = st.lists(st.builds(TokenTree.from_branches, prompts, answers), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(trees=forests)
def test_tree_equals_rows_for_any_trees(tiny_model, trees: list[TokenTree]) -> None:
    for entropy_gradient in (False, True):
        results = []
        for forward in (tree_logprobs, row_logprobs):
            scores = forward(tiny_model, trees, temperature=0.8, entropy_gradient=entropy_gradient)
            scalar = (scores.logprobs_RT * torch.arange(1, scores.logprobs_RT.shape[1] + 1)).sum()
            if entropy_gradient:
                scalar = scalar + scores.entropies_RT.square().sum()
            gradients = (
                torch.autograd.grad(scalar, list(tiny_model.parameters()), allow_unused=True)
                if scores.mask_RT.any()
                else ()
            )
            results.append((scores, gradients))
        (tree, tree_gradients), (rows, row_gradients) = results
        assert torch.equal(tree.mask_RT, rows.mask_RT)
        # The output layer's result is cast to fp32, so values agree to its rounding.
        torch.testing.assert_close(tree.logprobs_RT, rows.logprobs_RT, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(tree.entropies_RT, rows.entropies_RT, atol=1e-5, rtol=1e-5)
        for ours, theirs in zip(tree_gradients, row_gradients, strict=True):
            if ours is None:
                ours = torch.zeros_like(theirs)
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_tree_equals_rows_on_smollm2(smollm2, random_ids) -> None:
    """Ragged prompts and answers, shared beginnings, equal, empty and single answers, one batch."""
    start = random_ids(5)
    trees = [
        TokenTree.from_branches(
            random_ids(60),
            [start, start, start[:3], start[:2] + random_ids(4), [], random_ids(12)],
        ),
        TokenTree.from_branches(random_ids(23), [random_ids(3)]),
        TokenTree.from_branches(random_ids(1), [random_ids(4), []]),
    ]
    agreement = compare_forwards(smollm2.model, smollm2.parameters(), trees, temperature=0.8)
    assert agreement.logprob_error <= 1e-4
    assert agreement.gradient_error <= 1e-4


def test_only_empty_answers_give_empty_scores(tiny_model) -> None:
    trees = [TokenTree.from_branches([3, 4], [[], []])]
    for forward in (tree_logprobs, row_logprobs):
        scores = forward(tiny_model, trees, temperature=1.0)
        assert scores.logprobs_RT.shape == scores.mask_RT.shape == (2, 0)


def test_shared_tokens_are_computed_once(tiny_model, random_ids) -> None:
    """The number of tokens that pass through the body is the tree's, not the rows'."""
    seen: list[int] = []
    hook = (
        tiny_model.get_decoder()
        .layers[0]
        .register_forward_pre_hook(
            lambda module, arguments: seen.append(arguments[0].shape[:2].numel())
        )
    )
    tree = TokenTree.from_branches(random_ids(40), [[7, 8, 9], [7, 8, 10], [7, 8, 9]])
    try:
        tree_logprobs(tiny_model, [tree], temperature=1.0)
    finally:
        hook.remove()
    assert sum(seen) == tree.tree_tokens == 39 + 3
