"""Samples that join and leave a running batch: alone or among others, the same ids."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.policy import continuous
from memograd.policy.continuous import ContinuousSampler, Sample, SampleRequest
from memograd.policy.kv_cache import SlotCache
from memograd.policy.rows import row_logprobs
from memograd.rollout.token_tree import TokenTree

END = frozenset({0})


def request(seed: int, *, longest: int = 40, **given) -> SampleRequest:
    source = random.Random(seed)
    prompt = tuple(source.randrange(2, 250) for _ in range(source.randrange(1, longest)))
    fields = {
        "max_tokens": source.randrange(1, 12),
        "temperature": source.choice([0.0, 0.7, 1.3]),
        "top_p": source.choice([1.0, 0.8]),
        "seed": seed,
    }
    return SampleRequest(prompt, **{**fields, **given})


def run_alone(model, asked: SampleRequest) -> Sample:
    sampler = ContinuousSampler(model, END)
    [sample] = sampler.add([asked])
    while sampler.samples:
        sampler.step()
    return sample


def join(sampler: ContinuousSampler, asked: list[SampleRequest]) -> list[Sample]:
    """Add requests as the gateway's engine does."""
    joined: list[Sample] = []
    while asked:
        places = sampler.together(asked)
        joined += sampler.add([asked[place] for place in places])
        asked = [one for place, one in enumerate(asked) if place not in places]
    return joined


SEEDS = st.lists(st.integers(0, 500), min_size=1, max_size=4)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(SEEDS, st.integers(0, 5)), min_size=1, max_size=5))
def test_alone_or_among_others_the_same_is_drawn(tiny_model, arrivals) -> None:
    """Arrivals at any step, one or several, with equal and with shared beginnings; some leave."""
    sampler = ContinuousSampler(tiny_model, END)
    samples: list[Sample] = []
    leaves: list[Sample] = []
    for number, (seeds, steps) in enumerate(arrivals):
        joined = join(sampler, [request(seed) for seed in seeds])
        assert sorted(sample.request.seed for sample in joined) == sorted(seeds)
        samples += joined
        for _ in range(steps):
            sampler.step()
        if number % 3 == 2 and joined[0] in sampler.samples:
            sampler.remove(joined[0])
            leaves.append(joined[0])
    while sampler.samples:
        sampler.step()
    for sample in samples:
        alone = run_alone(tiny_model, sample.request)
        count = len(sample.ids)
        assert sample.ids == alone.ids[:count]
        assert sample.logprobs == pytest.approx(alone.logprobs[:count], abs=1e-5)
        assert sample in leaves or count == len(alone.ids)


def test_logprobs_are_those_of_the_row_forward(tiny_model) -> None:
    sampler = ContinuousSampler(tiny_model, frozenset())
    samples = sampler.add([request(seed, temperature=0.7, max_tokens=9) for seed in range(6)])
    while sampler.samples:
        sampler.step()
    for sample in samples:
        tree = TokenTree.from_branches(sample.request.prompt, [tuple(sample.ids)])
        scores = row_logprobs(tiny_model, [tree], temperature=0.7).logprobs_RT[0]
        assert torch.tensor(sample.logprobs) == pytest.approx(scores.float().tolist(), abs=1e-5)


def test_a_conversation_computes_only_what_is_new(tiny_model) -> None:
    sampler = ContinuousSampler(tiny_model, frozenset())
    [first] = sampler.add([request(1, longest=40, max_tokens=10)])
    while sampler.samples:
        sampler.step()
    before = sampler.computed_tokens
    observation = (7, 8, 9)
    prompt = (*first.request.prompt, *first.ids, *observation)
    [second] = sampler.add([SampleRequest(prompt, max_tokens=1, seed=3)])
    # The last action token was drawn but never run: its keys are not there yet.
    assert sampler.computed_tokens - before == len(observation) + 1
    assert second.ids == run_alone(tiny_model, second.request).ids
    sampler.forget()
    before = sampler.computed_tokens
    sampler.add([SampleRequest(prompt, max_tokens=1, seed=3)])
    assert sampler.computed_tokens - before == len(prompt)


def test_what_prompts_that_come_together_share_is_computed_once(tiny_model) -> None:
    """Several choices of one call; of others that have come, those that begin otherwise."""
    sampler = ContinuousSampler(tiny_model, frozenset())
    shared, other = tuple(range(10, 50)), tuple(range(100, 130))
    asked = [
        SampleRequest(prompt, max_tokens=4, seed=seed)
        for seed, prompt in enumerate([shared, other, shared, (*shared, 7)])
    ]
    assert sampler.together(asked) == [0, 1]
    samples = join(sampler, asked)
    assert sampler.computed_tokens == len(shared) + len(other) + 1 + 1
    while sampler.samples:
        sampler.step()
    for sample in samples:
        assert sample.ids == run_alone(tiny_model, sample.request).ids


def test_no_more_is_prefilled_at_once_than_fits(tiny_model, monkeypatch) -> None:
    monkeypatch.setitem(continuous.PREFILL_TOKENS, "cpu", 25)
    asked = [SampleRequest((seed,) * 10, max_tokens=1) for seed in range(5)]
    assert ContinuousSampler(tiny_model, END).together(asked) == [0, 1]
    assert ContinuousSampler(tiny_model, END).together([SampleRequest((3,) * 30, 1)]) == [0]


def test_what_is_kept_is_bounded(tiny_model, monkeypatch) -> None:
    monkeypatch.setitem(continuous.KEPT_TOKENS, "cpu", 60)
    sampler = ContinuousSampler(tiny_model, frozenset())
    for seed in range(12):
        sampler.add([request(seed, max_tokens=3)])
        while sampler.samples:
            sampler.step()
        assert 0 < sampler._kept.tokens <= 60


def test_weights_must_not_change_under_a_sample(tiny_model) -> None:
    sampler = ContinuousSampler(tiny_model, frozenset())
    sampler.add([request(1, max_tokens=5)])
    with pytest.raises(ValueError, match="still being drawn"):
        sampler.forget()


def test_a_nucleus_draws_only_its_most_likely_tokens(tiny_model) -> None:
    prompt = (5, 6, 7)
    logits = tiny_model(torch.tensor([prompt])).logits[0, -1]
    likely = torch.softmax(logits.float(), -1).sort(descending=True)
    size = int((likely.values.cumsum(0) < 0.5).sum()) + 1
    allowed = set(likely.indices[:size].tolist())
    sampler = ContinuousSampler(tiny_model, frozenset())
    drawn = [
        sampler.add([SampleRequest(prompt, max_tokens=1, top_p=0.5, seed=seed)])[0].ids[0]
        for seed in range(200)
    ]
    assert set(drawn) <= allowed
    assert len(set(drawn)) > 1


def test_alternatives_are_the_most_likely_tokens(tiny_model) -> None:
    asked = SampleRequest((5, 6, 7), max_tokens=1, temperature=0, top_logprobs=3)
    [sample] = ContinuousSampler(tiny_model, frozenset()).add([asked])
    [tops] = sample.tops
    assert tops[0] == (sample.ids[0], sample.logprobs[0])
    assert [value for _, value in tops] == sorted((value for _, value in tops), reverse=True)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_rows_keep_their_own_keys(choices: list[int]) -> None:
    """Against a plain dictionary of lists: add, grow, remove in any order."""
    cache, rows, made = SlotCache(1), [], 0
    for choice in choices:
        if choice < 4 or not rows:
            length, made = choice + 1, made + 100
            tokens = [float(made + place) for place in range(length)]
            keys = torch.tensor(tokens).reshape(1, -1, 1)
            cache.add([(keys, -keys)], room=2)
            rows.append(tokens)
        elif choice < 7:
            new = [[tokens[-1] + 1.0] for tokens in rows]
            keys = torch.tensor(new).reshape(-1, 1, 1, 1)
            seen, _ = cache.cache.layers[0].update(keys, -keys)
            cache.grown()
            for row, tokens in enumerate(rows):
                tokens.append(tokens[-1] + 1.0)
                assert seen[row, 0, : len(tokens), 0].tolist() == tokens
        else:
            row = choice % len(rows)
            cache.remove(row)
            last = rows.pop()
            if row < len(rows):
                rows[row] = last
        assert cache.lengths == [len(tokens) for tokens in rows]
        for row, tokens in enumerate(rows):
            [(keys, values)] = cache.row(row, len(tokens))
            assert keys.flatten().tolist() == tokens
            assert values.flatten().tolist() == [-token for token in tokens]
