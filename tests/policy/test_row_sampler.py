"""The plain sampler agrees with `generate` of transformers and with the tree sampler."""

from __future__ import annotations

import numpy as np
import torch

from memograd.policy.rows import row_logprobs, sample_rows
from memograd.policy.sampler import TokenDraw, sample_trees


def test_greedy_equals_generate_and_the_tree_sampler(tiny_model, random_ids) -> None:
    prompts = [random_ids(length) for length in (3, 17, 9)]
    draw = TokenDraw(0, 8, frozenset(range(40)))
    rows = sample_rows(tiny_model, prompts, draw, num_generations=2)
    trees = sample_trees(tiny_model, prompts, draw, num_generations=2)
    for prompt, ours, theirs in zip(prompts, rows, trees, strict=True):
        expected = tiny_model.generate(
            torch.tensor([prompt]), do_sample=False, max_new_tokens=8, eos_token_id=list(range(40))
        )[0, len(prompt) :]
        for row in range(2):
            assert list(ours.tree.branch(row)) == expected.tolist()
            assert ours.tree.branch(row) == theirs.tree.branch(row)
        assert ours.stop_reasons == theirs.stop_reasons
        np.testing.assert_allclose(ours.logprobs[0], theirs.logprobs[0], atol=1e-5)


def test_log_probabilities_are_those_of_the_drawn_tokens(tiny_model, random_ids) -> None:
    groups = sample_rows(
        tiny_model,
        [random_ids(5), random_ids(12)],
        TokenDraw(0.7, 6, frozenset(range(40)), torch.Generator().manual_seed(0)),
        num_generations=3,
    )
    scores = row_logprobs(tiny_model, [group.tree for group in groups], temperature=0.7)
    sampled = [logprobs for group in groups for logprobs in group.logprobs]
    for row, logprobs in enumerate(sampled):
        np.testing.assert_allclose(
            scores.logprobs_RT[row, : len(logprobs)].detach().numpy(), logprobs, atol=1e-5
        )


def test_each_prompt_may_have_its_own_number_of_answers(tiny_model, random_ids) -> None:
    """Greedy, so that every answer to a prompt is known."""
    prompts = [random_ids(length) for length in (3, 17, 9)]
    draw = TokenDraw(0, 6, frozenset(range(40)))
    rows = sample_rows(tiny_model, prompts, draw, num_generations=[2, 1, 3])
    trees = sample_trees(tiny_model, prompts, draw, num_generations=1)
    assert [len(group.tree.branches) for group in rows] == [2, 1, 3]
    for ours, theirs in zip(rows, trees, strict=True):
        for row in range(len(ours.tree.branches)):
            assert ours.tree.branch(row) == theirs.tree.branch(0)
            np.testing.assert_allclose(ours.logprobs[row], theirs.logprobs[0], atol=1e-5)
