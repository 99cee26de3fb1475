"""Values come from the states that predict the tokens, whichever forward computes them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from test_forward import forests

from memograd.errors import BadInput
from memograd.policy.language_model import LanguageModel
from memograd.policy.rows import row_logprobs
from memograd.policy.token_logprobs import ValueHead
from memograd.policy.tree_forward import packed_logprobs, tree_logprobs
from memograd.rollout import TokenTree


def random_head(hidden_size: int) -> ValueHead:
    head = ValueHead(hidden_size, torch.device("cpu"))
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return head


@pytest.mark.parametrize("shared", [packed_logprobs, tree_logprobs])
@settings(max_examples=40, deadline=None)
@given(trees=forests)
def test_values_and_their_gradients_are_equal_by_tree_and_by_rows(
    tiny_model, shared, trees
) -> None:
    head = random_head(tiny_model.config.hidden_size)
    parameters = [*head.parameters(), *tiny_model.parameters()]
    results = []
    for forward in (shared, row_logprobs):
        scores = forward(tiny_model, trees, temperature=0.8, value_head=head)
        assert scores.values_RT is not None
        assert not scores.values_RT[~scores.mask_RT].any()
        scalar = (scores.values_RT * torch.arange(1, scores.values_RT.shape[1] + 1)).sum()
        gradients = (
            torch.autograd.grad(scalar, parameters, allow_unused=True)
            if scores.mask_RT.any()
            else ()
        )
        results.append((scores.values_RT, gradients))
    (tree, tree_gradients), (rows, row_gradients) = results
    torch.testing.assert_close(tree, rows, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(tree_gradients, row_gradients, strict=True):
        if theirs is None or ours is None:
            assert ours is None or not ours.any()
            assert theirs is None or not theirs.any()
        else:
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_a_value_is_the_heads_of_the_state_before_the_token(tiny_model) -> None:
    """Against the model called plainly: the state at the token before, after the last layer."""
    head, tree = (
        random_head(tiny_model.config.hidden_size),
        TokenTree.from_branches([3, 4], [[5, 6]]),
    )
    hidden = tiny_model.model(torch.tensor([[3, 4, 5]])).last_hidden_state
    expected = head.linear(hidden[:, 1:].float())[..., 0]
    for forward in (tree_logprobs, row_logprobs):
        values_RT = forward(tiny_model, [tree], temperature=1.0, value_head=head).values_RT
        torch.testing.assert_close(values_RT, expected)


def test_without_a_value_head_a_policy_is_as_it_was(tiny_policy: LanguageModel) -> None:
    trees = [TokenTree.from_branches([3, 4], [[5, 6], [7]])]
    parameters = len(tiny_policy.parameters())
    plain = tiny_policy.logprobs(trees, temperature=1.0)
    assert plain.values_RT is None
    tiny_policy.add_value_head(None)
    scores = tiny_policy.logprobs(trees, temperature=1.0)
    assert torch.equal(scores.logprobs_RT, plain.logprobs_RT)
    assert scores.values_RT is not None and not scores.values_RT.any()  # it begins at zero
    assert len(tiny_policy.parameters()) == parameters + 2
    assert tiny_policy.reference_logprobs(trees, temperature=1.0).values_RT is None


def test_it_is_saved_beside_the_adapter(tiny_policy: LanguageModel, tmp_path: Path) -> None:
    trees = [TokenTree.from_branches([3, 4], [[5, 6], [7]])]
    tiny_policy.save(tmp_path / "without")
    assert not (tmp_path / "without" / "value_head.safetensors").exists()
    tiny_policy.value_head = random_head(32)
    tiny_policy.save(tmp_path / "with")
    again = LanguageModel.load_adapter(tiny_policy.name, tmp_path / "with", device="cpu")
    again.add_value_head(tmp_path / "with")
    values_RT = again.logprobs(trees, temperature=1.0).values_RT
    assert values_RT is not None and values_RT.any()
    torch.testing.assert_close(
        values_RT, tiny_policy.logprobs(trees, temperature=1.0).values_RT, atol=0, rtol=0
    )
    again.add_value_head(tmp_path / "without")  # nothing in it: a fresh one
    assert not again.logprobs(trees, temperature=1.0).values_RT.any()


def test_the_head_of_another_model_is_refused(tmp_path: Path) -> None:
    random_head(5).save(tmp_path)
    with pytest.raises(BadInput, match="is no value head of this model"):
        random_head(4).load(tmp_path)
    (tmp_path / "value_head.safetensors").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="is no value head of this model"):
        random_head(4).load(tmp_path)
