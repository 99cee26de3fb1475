"""Chunking the output layer changes neither values nor gradients."""

from __future__ import annotations

import pytest
import torch

from memograd.policy.token_logprobs import token_logprobs


@pytest.mark.parametrize("entropy_gradient", [False, True])
@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_chunks_equal_one_piece(chunk: int, entropy_gradient: bool) -> None:
    torch.manual_seed(0)
    head = torch.nn.Linear(5, 11).double()
    rows_N = torch.tensor([6, 0, 0, 3, 2, 6, 1])
    tokens_N = torch.tensor([1, 10, 3, 0, 7, 2, 9])
    results = []
    for size in (chunk, 100):
        hidden_MD = torch.linspace(-1, 1, 35, dtype=torch.float64).reshape(7, 5).requires_grad_()
        logprobs_N, entropies_M = token_logprobs(
            hidden_MD,
            head,
            rows_N,
            tokens_N,
            temperature=0.7,
            entropy_gradient=entropy_gradient,
            chunk=size,
        )
        scalar = (logprobs_N * torch.arange(7)).sum() + entropies_M.square().sum()
        (gradient,) = torch.autograd.grad(scalar, hidden_MD)
        results.append((logprobs_N, entropies_M, gradient))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_values_against_the_definition() -> None:
    logits = torch.tensor([[1.0, 2.0, 0.5]])
    logprobs, entropies = token_logprobs(
        logits,
        lambda x: x,
        torch.tensor([0, 0]),
        torch.tensor([1, 2]),
        temperature=0.5,
        entropy_gradient=False,
    )
    weights = [2.718281828 ** (x / 0.5) for x in (1.0, 2.0, 0.5)]
    p = torch.tensor(weights) / sum(weights)
    torch.testing.assert_close(logprobs, p[[1, 2]].log())
    torch.testing.assert_close(entropies, -(p * p.log()).sum()[None])
