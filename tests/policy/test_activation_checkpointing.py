"""Layers that are computed again in the backward pass give the same values and gradients."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from test_forward import forests
from transformers import PreTrainedModel

from memograd.errors import BadInput
from memograd.policy.activation_checkpointing import checkpoint_layers
from memograd.policy.language_model import LanguageModel
from memograd.policy.rows import row_logprobs
from memograd.policy.tree_forward import packed_logprobs, tree_logprobs
from memograd.rollout import TokenTree


@pytest.fixture(scope="session")
def checkpointed_model(tiny_model: PreTrainedModel) -> PreTrainedModel:
    """The tiny model once more."""
    model = copy.deepcopy(tiny_model)
    assert checkpoint_layers(model) == 2
    return model


@settings(max_examples=15, deadline=None)
@given(trees=forests)
def test_values_and_gradients_are_the_same(tiny_model, checkpointed_model, trees) -> None:
    for forward in (packed_logprobs, tree_logprobs, row_logprobs):
        results = []
        for model in (tiny_model, checkpointed_model):
            scores = forward(model, trees, temperature=0.8)
            gradients = ()
            if scores.mask_RT.any():
                gradients = torch.autograd.grad(
                    scores.logprobs_RT.square().sum(), list(model.parameters()), allow_unused=True
                )
            results.append((scores.logprobs_RT, gradients))
        (plain_RT, plain), (again_RT, again) = results
        assert torch.equal(plain_RT, again_RT)
        for theirs, ours in zip(plain, again, strict=True):
            if theirs is None:
                assert ours is None
            else:
                torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)


@pytest.fixture
def saved_bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of every tensor that autograd keeps for a backward pass, as they are kept."""
    sizes: list[int] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        sizes.append(tensor.numel() * tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield sizes


@pytest.mark.parametrize("forward", [packed_logprobs, tree_logprobs])
def test_less_is_kept_for_the_backward_pass(
    tiny_model, checkpointed_model, random_ids, saved_bytes, forward
) -> None:
    tree = TokenTree.from_branches(random_ids(60), [random_ids(9) for _ in range(4)])
    kept = []
    for model in (tiny_model, checkpointed_model):
        saved_bytes.clear()
        forward(model, [tree], temperature=1.0)
        kept.append(sum(saved_bytes))
    assert kept[1] < kept[0] / 4


def test_sampling_is_as_it_was(tiny_policy: LanguageModel) -> None:
    def drawn() -> list[tuple[int, ...]]:
        (group,) = tiny_policy.sample(
            [[5, 6, 7]],
            num_generations=4,
            temperature=1.0,
            max_completion_length=6,
            generator=torch.Generator().manual_seed(0),
        )
        return [group.tree.branch(row) for row in range(4)]

    before = drawn()
    tiny_policy.checkpoint_activations()
    assert drawn() == before


def test_dropout_is_drawn_once(tiny_policy: LanguageModel) -> None:
    """The second computation drops what the first dropped, or the gradient would be another's."""
    for name, module in tiny_policy.peft_model.named_modules():
        if "lora_dropout" in name and isinstance(module, torch.nn.ModuleDict):
            module["default"] = torch.nn.Dropout(0.5)
    trees = [TokenTree.from_branches([5, 6, 7], [[8, 9], [8, 4]])]
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        scores = tiny_policy.logprobs(trees, temperature=1.0)
        results.append(torch.autograd.grad(scores.logprobs_RT.sum(), tiny_policy.parameters()))
        tiny_policy.checkpoint_activations()
    for plain, again in zip(*results, strict=True):
        torch.testing.assert_close(again, plain, atol=1e-6, rtol=1e-4)


def test_a_model_whose_layers_are_not_marked_is_refused() -> None:
    class Plain(torch.nn.Module):
        pass

    with pytest.raises(BadInput, match="Plain does not mark its layers"):
        checkpoint_layers(Plain())  # type: ignore[arg-type]
