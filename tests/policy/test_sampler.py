"""Samples follow the model's distribution, whatever shares the batch with them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from memograd.errors import MemogradError
from memograd.policy import kv_cache
from memograd.policy.prefill import LEAST_COMMON
from memograd.policy.rows import row_logprobs
from memograd.policy.sampler import TokenDraw, sample_trees
from memograd.rollout import TokenTree

NO_END: frozenset[int] = frozenset()


def sample(
    model, prompts, *, temperature, max_completion_length, seed=0, end_ids=NO_END, **settings
):
    generator = torch.Generator().manual_seed(seed)
    draw = TokenDraw(temperature, max_completion_length, end_ids, generator)
    return sample_trees(model, prompts, draw, **settings)


def test_greedy_equals_generate_of_transformers(tiny_model, random_ids) -> None:
    prompts = [random_ids(length) for length in (3, 17, 9)]
    groups = sample(tiny_model, prompts, num_generations=1, temperature=0, max_completion_length=12)
    for prompt, group in zip(prompts, groups, strict=True):
        expected = tiny_model.generate(
            torch.tensor([prompt]), do_sample=False, max_new_tokens=12, eos_token_id=None
        )[0, len(prompt) :]
        assert list(group.tree.branch(0)) == expected.tolist()


@pytest.mark.slow
def test_greedy_answers_do_not_depend_on_the_batch(smollm2, random_ids) -> None:
    prompts = [random_ids(length) for length in (30, 6, 18)]
    settings = {"num_generations": 1, "temperature": 0, "max_completion_length": 6}
    together = sample(smollm2.model, prompts, **settings)
    alone = [sample(smollm2.model, [prompt], **settings)[0] for prompt in prompts]
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.tree.branch(0) == theirs.tree.branch(0)


def test_log_probabilities_are_those_of_the_drawn_tokens(tiny_model, random_ids) -> None:
    prompts = [random_ids(length) for length in (5, 21, 13, 1)]
    groups = sample(
        tiny_model,
        prompts,
        num_generations=6,
        temperature=0.7,
        max_completion_length=10,
        end_ids=frozenset(range(40)),
    )
    scores = row_logprobs(tiny_model, [group.tree for group in groups], temperature=0.7)
    sampled = [logprobs for group in groups for logprobs in group.logprobs]
    for row, logprobs in enumerate(sampled):
        np.testing.assert_allclose(
            scores.logprobs_RT[row, : len(logprobs)].detach().numpy(), logprobs, atol=1e-5
        )


def test_each_prompt_may_have_its_own_number_of_answers(tiny_model, random_ids) -> None:
    prompts = [random_ids(length) for length in (5, 21, 13)]
    settings = {"temperature": 0.7, "max_completion_length": 5, "end_ids": frozenset(range(40))}
    groups = sample(tiny_model, prompts, num_generations=[3, 1, 4], **settings)
    assert [group.tree.prompt for group in groups] == [tuple(prompt) for prompt in prompts]
    assert [len(group.tree.branches) for group in groups] == [3, 1, 4]
    scores = row_logprobs(tiny_model, [group.tree for group in groups], temperature=0.7)
    for row, logprobs in enumerate(values for group in groups for values in group.logprobs):
        found = scores.logprobs_RT[row, : len(logprobs)].detach().numpy()
        np.testing.assert_allclose(found, logprobs, atol=1e-5)
    one = sample(tiny_model, prompts, num_generations=3, **settings)
    same = sample(tiny_model, prompts, num_generations=[3, 3, 3], **settings)
    for ours, theirs in zip(one, same, strict=True):
        np.testing.assert_array_equal(ours.tree.tokens_N, theirs.tree.tokens_N)


def test_samples_follow_the_exact_distribution(tiny_model) -> None:
    """Frequencies of two-token answers against the model's own probabilities (chi-square)."""
    # A cold policy has few likely answers, so that each expected count is large.
    temperature, count, prompt = 0.15, 4000, [5, 9, 77]
    (group,) = sample(
        tiny_model,
        [prompt],
        num_generations=count,
        temperature=temperature,
        max_completion_length=2,
    )
    seen = Counter(group.tree.branch(row) for row in range(count))
    answers = list(seen)
    tree = TokenTree.from_branches(prompt, answers)
    logprobs_RT = row_logprobs(tiny_model, [tree], temperature=temperature).logprobs_RT
    expected = logprobs_RT.sum(1).exp().detach().numpy() * count
    frequent = expected >= 10
    assert frequent.sum() >= 3
    observed = np.array([seen[answer] for answer in answers])
    # What is rare is pooled into one cell.
    observed_cells = np.append(observed[frequent], observed[~frequent].sum())
    expected_cells = np.append(expected[frequent], count - expected[frequent].sum())
    chi_square = ((observed_cells - expected_cells) ** 2 / expected_cells).sum()
    degrees = len(observed_cells) - 1
    assert chi_square < degrees + 4 * np.sqrt(2 * degrees)


def test_an_end_token_ends_an_answer_and_is_its_last_token(tiny_model, random_ids) -> None:
    end_ids = frozenset(range(100))
    groups = sample(
        tiny_model,
        [random_ids(4), random_ids(8)],
        num_generations=16,
        temperature=1.0,
        max_completion_length=5,
        end_ids=end_ids,
    )
    reasons = set()
    for group in groups:
        for row, reason in enumerate(group.stop_reasons):
            answer = group.tree.branch(row)
            reasons.add(reason)
            assert not end_ids.intersection(answer[:-1])
            assert (answer[-1] in end_ids) == (reason == "end")
            assert len(answer) == 5 or reason == "end"
    assert reasons == {"end", "length"}


def test_equal_beginnings_are_computed_once(tiny_model, random_ids) -> None:
    seen: list[int] = []
    hook = (
        tiny_model.get_decoder()
        .layers[0]
        .register_forward_pre_hook(
            lambda module, arguments: seen.append(arguments[0].shape[:2].numel())
        )
    )
    try:
        (group,) = sample(
            tiny_model,
            [random_ids(20)],
            num_generations=8,
            temperature=1e-4,
            max_completion_length=6,
        )
    finally:
        hook.remove()
    # So cold that all samples agree: one token a step, and the prompt once.
    assert len({group.tree.branch(row) for row in range(8)}) == 1
    assert seen == [20, 1, 1, 1, 1, 1]


def test_the_cache_grows_past_its_first_room(tiny_model, random_ids, monkeypatch) -> None:
    prompt = random_ids(7)
    settings = {"num_generations": 3, "temperature": 1.0, "max_completion_length": 9}
    roomy = sample(tiny_model, [prompt], **settings)
    monkeypatch.setattr(kv_cache, "ROOM", 1)
    tight = sample(tiny_model, [prompt], **settings)
    assert [roomy[0].tree.branch(row) for row in range(3)] == [
        tight[0].tree.branch(row) for row in range(3)
    ]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_draws_the_same_answers(tiny_model, random_ids, seed: int) -> None:
    prompts = [random_ids(4), random_ids(6)]
    settings = {"num_generations": 4, "temperature": 1.0, "max_completion_length": 5}
    first, second = (sample(tiny_model, prompts, seed=seed, **settings) for _ in range(2))
    assert [g.tree.branch(i) for g in first for i in range(4)] == [
        g.tree.branch(i) for g in second for i in range(4)
    ]


def test_draws_follow_any_distribution_and_never_what_is_impossible() -> None:
    count, impossible = 20_000, -torch.inf
    logits_FV = torch.tensor(
        [[impossible, 0.0, impossible, 1.0, impossible], [2.0, 0.0, 0.0, 0.0, impossible]]
    )
    draw = TokenDraw(1.0, 1, NO_END, torch.Generator().manual_seed(0))
    states = torch.arange(2).repeat_interleave(count)
    tokens, logprobs = draw.choose(logits_FV, states)
    for state in range(2):
        drawn = torch.tensor(tokens[state * count : (state + 1) * count])
        frequencies = torch.bincount(drawn, minlength=5) / count
        expected = logits_FV[state].softmax(-1)
        assert not frequencies[expected == 0].any()
        # Four standard deviations of a share.
        assert ((frequencies - expected).abs() <= 4 * (expected / count).sqrt()).all()
        right = logits_FV[state].log_softmax(-1)[drawn].tolist()
        assert logprobs[state * count : (state + 1) * count] == pytest.approx(right)


def test_nothing_is_drawn_from_numbers_that_are_none() -> None:
    draw = TokenDraw(1.0, 1, NO_END, torch.Generator().manual_seed(0))
    with pytest.raises(MemogradError, match="NaN or infinity"):
        draw.choose(torch.tensor([[0.0, torch.nan]]), torch.tensor([0]))


def test_what_new_prompts_open_with_is_run_once(tiny_model, random_ids) -> None:
    """Counted where tokens enter the first layer; log-probabilities are those of whole rows."""
    opening = random_ids(LEAST_COMMON + 6)
    prompts = [[*opening, *random_ids(length)] for length in (3, 1, 9)] + [opening]
    settings = {"num_generations": 2, "temperature": 0.7, "max_completion_length": 4}
    run: list[int] = []
    layer = tiny_model.get_decoder().layers[0]
    hook = layer.register_forward_pre_hook(lambda _, given: run.append(given[0].shape[1]))
    groups = sample(tiny_model, prompts, **settings)
    hook.remove()
    shared = len(opening) - 1  # the shortest prompt's last token predicts its answers
    assert run[0] == shared
    assert max(run[1:]) == 10
    assert [group.reused_tokens for group in groups] == [0, shared, shared, shared]
    scores = row_logprobs(tiny_model, [group.tree for group in groups], temperature=0.7)
    sampled = [logprobs for group in groups for logprobs in group.logprobs]
    for row, logprobs in enumerate(sampled):
        found = scores.logprobs_RT[row, : len(logprobs)].detach().numpy()
        np.testing.assert_allclose(found, logprobs, atol=1e-5)
