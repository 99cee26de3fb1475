"""House contract 2: tree forwards equal the row forward, values and gradients, for any tree."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quick import quick

from memograd.policy.forward_choice import compare_forwards
from memograd.policy.rows import row_logprobs
from memograd.policy.tree_forward import packed_logprobs, tree_logprobs
from memograd.rollout import TokenTree

answers = st.lists(st.lists(st.integers(2, 5), max_size=6), min_size=1, max_size=5)
prompts = st.lists(st.integers(2, 60), min_size=1, max_size=12)


@st.composite
def scored_trees(draw: st.DrawFn) -> TokenTree:
    """A tree in which any tokens may be observations, or none."""
    given_answers = draw(answers)
    masks = [
        draw(st.lists(st.booleans(), min_size=len(answer), max_size=len(answer)))
        for answer in given_answers
    ]
    scored = draw(st.sampled_from([None, masks]))
    return TokenTree.from_branches(draw(prompts), given_answers, scored)


forests = st.lists(scored_trees(), min_size=1, max_size=3)


shared = pytest.mark.parametrize("shared", [packed_logprobs, tree_logprobs])


@shared
@settings(max_examples=60, deadline=None)
@given(trees=forests)
def test_tree_equals_rows_for_any_trees(tiny_model, shared, trees: list[TokenTree]) -> None:
    for entropy_gradient in (False, True):
        results = []
        for forward in (shared, row_logprobs):
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


@pytest.mark.parametrize("shared", quick([tree_logprobs, packed_logprobs], (0,)))
def test_tree_equals_rows_on_smollm2(smollm2, random_ids, shared) -> None:
    """Ragged prompts and answers, shared beginnings, equal, empty and single answers, one batch."""
    start = random_ids(5)
    trees = [
        TokenTree.from_branches(
            random_ids(24),
            [start, start, start[:3], start[:2] + random_ids(4), [], random_ids(12)],
        ),
        TokenTree.from_branches(random_ids(9), [random_ids(3)]),
        TokenTree.from_branches(random_ids(1), [random_ids(4), []]),
    ]
    agreement = compare_forwards(
        smollm2.model, smollm2.parameters(), trees, temperature=0.8, forward=shared
    )
    assert agreement.logprob_error <= 5e-5
    assert agreement.gradient_error <= 2e-5


def test_only_empty_answers_give_empty_scores(tiny_model) -> None:
    trees = [TokenTree.from_branches([3, 4], [[], []])]
    for forward in (packed_logprobs, tree_logprobs, row_logprobs):
        scores = forward(tiny_model, trees, temperature=1.0)
        assert scores.logprobs_RT.shape == scores.mask_RT.shape == (2, 0)


@shared
def test_shared_tokens_are_computed_once(tiny_model, random_ids, shared) -> None:
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
        shared(tiny_model, [tree], temperature=1.0)
    finally:
        hook.remove()
    assert sum(seen) == tree.tree_tokens == 39 + 3


def test_rows_in_pieces_equal_rows_at_once(tiny_model, random_ids) -> None:
    tree = TokenTree.from_branches(random_ids(9), [random_ids(n) for n in (5, 2, 0, 5, 3)])
    results, logits_rows = [], []
    hook = tiny_model.register_forward_hook(
        lambda module, arguments, output: logits_rows.append(output.logits.shape[:2].numel())
    )
    try:
        # Six states a row: all five rows, then two at a time, then one (a limit below one row).
        for chunk in (30, 12, 1):
            scores = row_logprobs(
                tiny_model, [tree], temperature=0.8, entropy_gradient=True, chunk=chunk
            )
            scalar = scores.logprobs_RT.sum() + scores.entropies_RT.square().sum()
            gradients = torch.autograd.grad(scalar, list(tiny_model.parameters()))
            results.append((scores.logprobs_RT, scores.entropies_RT, scores.mask_RT, *gradients))
            logits_rows.append(0)
    finally:
        hook.remove()
    for pieces in results[1:]:
        for ours, theirs in zip(pieces, results[0], strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    # Pieces are computed forward, and again in the backward pass, the last one first.
    assert logits_rows == [30, 0, *[12, 12, 6], *[6, 12, 12], 0, *[6] * 10, 0]
