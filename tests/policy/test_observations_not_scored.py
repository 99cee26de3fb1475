"""The canary: tokens that a tool wrote never enter the loss, in no forward."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from memograd.policy.rows import row_logprobs
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.policy.tree_forward import packed_logprobs, tree_logprobs
from memograd.rollout import TokenTree

PROMPT = [11, 12, 13]
ACTION, OBSERVATION, ANSWER = [21, 22], [31, 32, 33], [41, 42]
SCORED = [True] * 2 + [False] * 3 + [True] * 2

Forward = Callable[..., BranchLogprobs]
every = pytest.mark.parametrize("forward", [packed_logprobs, tree_logprobs, row_logprobs])


def gradient(model, forward: Forward, tree: TokenTree) -> torch.Tensor:
    """Of the sum of all log-probabilities and entropies that the forward gives out."""
    scores = forward(model, [tree], temperature=0.9, entropy_gradient=True)
    weights_T = torch.arange(1, scores.logprobs_RT.shape[1] + 1)
    total = (scores.logprobs_RT * weights_T).sum() + scores.entropies_RT.sum()
    return flat(torch.autograd.grad(total, list(model.parameters())))


def flat(gradients: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.cat([part.flatten() for part in gradients])


@every
def test_the_target_of_an_observation_does_not_move_the_gradient(
    tiny_model, forward: Forward
) -> None:
    """The last token is only ever a target: as an observation it may be any token, as an action
    it may not."""

    def of(last: int, *, own: bool) -> torch.Tensor:
        tree = TokenTree.from_branches(PROMPT, [[*ACTION, last]], [[True, True, own]])
        return gradient(tiny_model, forward, tree)

    assert torch.equal(of(31, own=False), of(99, own=False))
    assert (of(31, own=True) - of(99, own=True)).abs().max() > 1e-3


@every
def test_between_actions_too_only_actions_are_in_the_loss(tiny_model, forward: Forward) -> None:
    """Against the model's own logits at the action positions, picked out by hand."""
    branch = [*ACTION, *OBSERVATION, *ANSWER]
    tree = TokenTree.from_branches(PROMPT, [branch], [SCORED])
    logits = tiny_model(torch.tensor([PROMPT + branch])).logits[0].float() / 0.9
    all_logprobs = logits.log_softmax(-1)
    total = torch.zeros(())
    for place in (0, 1, 5, 6):
        state = all_logprobs[len(PROMPT) + place - 1]
        total = total + (place + 1) * state[branch[place]] - (state.exp() * state).sum()
    expected = flat(torch.autograd.grad(total, list(tiny_model.parameters())))
    torch.testing.assert_close(gradient(tiny_model, forward, tree), expected, atol=1e-4, rtol=1e-4)


@every
def test_the_mask_and_the_zeros_say_what_is_scored(tiny_model, forward: Forward) -> None:
    tree = TokenTree.from_branches(
        PROMPT, [[*ACTION, *OBSERVATION, *ANSWER], ACTION], [SCORED, [True, False]]
    )
    scores = forward(tiny_model, [tree], temperature=0.9)
    assert scores.mask_RT.tolist() == [SCORED, [True] + [False] * 6]
    assert not scores.logprobs_RT[~scores.mask_RT].any()
    assert not scores.entropies_RT[~scores.mask_RT].any()
    assert (scores.logprobs_RT[scores.mask_RT] < 0).all()


@pytest.mark.parametrize("forward", [packed_logprobs, tree_logprobs])
def test_observations_do_not_meet_the_output_layer(tiny_model, forward: Forward) -> None:
    """Of eight states only the four that predict an action token need logits."""
    seen: list[int] = []
    hook = tiny_model.get_output_embeddings().register_forward_pre_hook(
        lambda module, arguments: seen.append(arguments[0].shape[0])
    )
    tree = TokenTree.from_branches(PROMPT, [[*ACTION, *OBSERVATION, *ANSWER]], [SCORED])
    try:
        forward(tiny_model, [tree], temperature=1.0)
    finally:
        hook.remove()
    assert sum(seen) == 4


@every
@pytest.mark.parametrize("branches", [[OBSERVATION, ACTION], [[], []], [[31]]])
def test_trees_of_which_nothing_is_scored_have_a_gradient_of_zero(
    tiny_model, forward: Forward, branches: list[list[int]]
) -> None:
    """A micro-batch may hold only such ones; the backward pass goes through it like the others."""
    scored = [[False] * len(branch) for branch in branches]
    tree = TokenTree.from_branches(PROMPT, branches, scored)
    scores = forward(tiny_model, [tree], temperature=1.0)
    assert scores.logprobs_RT.shape == (len(branches), max(map(len, branches)))
    parts = torch.autograd.grad(
        scores.logprobs_RT.sum(),
        list(tiny_model.parameters()),
        allow_unused=True,
        materialize_grads=True,
    )
    assert not flat(parts).any()
