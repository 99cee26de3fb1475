"""The gap of sampler and learner: the ladder by hand, and whole runs that draw from a server."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from small_runs import begun
from tests.quick import quick

from memograd.config import SamplerConfig
from memograd.grpo import RunFolder
from memograd.grpo.sampler_gap import (
    GapLimits,
    SamplerGaps,
    SamplerGapTooWide,
    climb,
    joined_gaps,
)
from memograd.grpo.trainer import Trainer
from memograd.policy.remote.server import SamplingFailed
from memograd.rewards import WeightedReward
from memograd.tasks.base.policy import sampling_of

LIMITS = GapLimits(exact=0.1, cap=2.0, mask=1.0, stop=0.5)


def test_the_ladder_by_hand():
    sampler_RT = torch.zeros(3, 3)
    learner_RT = torch.tensor([[0.05, -0.5, 3.0], [-2.0, -2.0, 9.0], [0.0, 0.0, 0.0]])
    known_RT = torch.tensor([[True, True, True], [True, True, False], [False, False, False]])
    rungs = climb(learner_RT, sampler_RT, known_RT, LIMITS)
    # exact: ratio 1; below: learner / sampler; above: the cap; not known: 1.
    expected = torch.tensor(
        [[1.0, math.exp(-0.5), 2.0], [math.exp(-2.0), math.exp(-2.0), 1.0], [1.0] * 3]
    )
    assert torch.allclose(rungs.importance_RT, expected)
    assert rungs.masked_R.tolist() == [True, True, False]  # means 1.18, 2.0 (of two tokens), none
    assert climb(
        learner_RT[:1, :2], sampler_RT[:1, :2], known_RT[:1, :2], LIMITS
    ).masked_R.tolist() == [False]


def test_what_metrics_say_and_where_a_run_stops():
    gaps = joined_gaps(
        [
            SamplerGaps(np.array([0.0, 0.2], dtype=np.float32), corrected=1, masked=1),
            SamplerGaps(np.zeros(2, dtype=np.float32), unknown=3),
        ]
    )
    metrics = gaps.metrics()
    assert metrics["sampler_gap_mean"] == pytest.approx(0.05)
    assert metrics["sampler_gap_p99"] == pytest.approx(np.quantile([0, 0.2, 0, 0], 0.99))
    assert metrics["sampler_corrected_fraction"] == 0.25
    assert (metrics["sampler_masked_answers"], metrics["sampler_unknown_tokens"]) == (1, 3)
    gaps.check(LIMITS)
    with pytest.raises(SamplerGapTooWide, match=r"by 0\.6 nats on average"):
        SamplerGaps(np.full(2, 0.6, dtype=np.float32)).check(LIMITS)


def test_thresholds_go_by_the_number_type():
    config = SamplerConfig(gap_mask=7.0)
    whole, half = (GapLimits.of(config, dtype) for dtype in (torch.float32, torch.bfloat16))
    assert whole.exact < half.exact and whole.stop < half.stop
    assert whole.mask == half.mask == 7.0


def low_share(prompts, completions, **columns):
    return [sum(c < "@" for c in text) / max(1, len(text)) for text in completions]


LOW = [WeightedReward("low", low_share)]


@contextmanager
def trainer(config, scenarios, folder) -> Iterator[Trainer]:
    start = begun(folder, config)
    with sampling_of(start.policy, config.sampler, folder, probed=False):
        yield start.trainer(scenarios, LOW)


@pytest.fixture
def config(tiny_config, server):
    sampler = SamplerConfig(engine="vllm", url=[server.url], patience=0.5, seconds=60)
    return tiny_config.model_copy(update={"sampler": sampler})


@pytest.mark.slow
def test_steps_without_a_fault_stay_on_the_lowest_rung(config, server, scenarios, tmp_path):
    with trainer(config, scenarios, tmp_path / "run") as made:
        made.train()
        assert server.loaded and server.loaded[0].endswith("-6")  # the trained weights
    rows = RunFolder.open(tmp_path / "run").read_metrics()
    assert [row["sampler_version"] for row in rows] == list(range(6))
    for row in rows:
        assert row["sampler_gap"] < 1e-4 and row["sampler_gap_mean"] < 1e-5
        assert row["sampler_corrected_fraction"] == row["sampler_masked_answers"] == 0
        assert row["sampler_unknown_tokens"] == 0
    assert server.loaded == []  # left as it was found


@pytest.mark.parametrize(
    ("fault", "says"),
    quick(
        [
            ("stale prefix", "stale prefix cache"),
            ("raw log-probabilities", "--logprobs-mode processed_logprobs"),
            ("adapter", "not from the adapter that was asked for"),
            ("temperature", "another temperature, about 0.90"),
            ("template", "another prompt than was sent"),
            ("BOS", "dropped the first token"),
        ],
        (1, 2),
    ),
)
def test_a_fault_that_begins_later_is_found_before_weights_move(
    fault, says, config, server, scenarios, tmp_path
):
    config = config.model_copy(update={"prompts_per_step": 1, "temperature": 0.6})
    with trainer(config, scenarios[:1], tmp_path / "run") as made:
        weights = []

        def on_step(metrics) -> None:
            if metrics["step"] == 2:
                server.fault = fault
                if fault == "stale prefix":  # what it kept of the step before
                    ((salt, prompt, _), cache), *_ = server._prefixes.items()
                    server._prefixes[salt, prompt, None] = cache
                weights.extend(weight.detach().clone() for weight in made.policy.parameters())

        made._on_step = on_step
        with pytest.raises(SamplerGapTooWide, match=says):
            made.train()
        for before, after in zip(weights, made.policy.parameters(), strict=True):
            assert torch.equal(before, after)
    run = RunFolder.open(tmp_path / "run")
    assert len(run.read_metrics()) == 2 and run.latest_checkpoint().name == "checkpoint-2"
    assert list((run.path / "failures").iterdir())


@pytest.mark.slow
def test_a_run_whose_server_died_goes_on_as_if_it_had_not(config, server, scenarios, tmp_path):
    def numbers(folder):
        rows = RunFolder.open(folder).read_metrics()
        return [(row["step"], row["reward_mean"], row["loss"], row["grad_norm"]) for row in rows]

    with trainer(config, scenarios, tmp_path / "whole") as made:
        made.train()
    with trainer(config, scenarios, tmp_path / "cut") as made:
        made._on_step = lambda metrics: server.stop() if metrics["step"] == 3 else None
        with pytest.raises(SamplingFailed, match="No sampling server"):
            made.train()
    assert RunFolder.open(tmp_path / "cut").latest_checkpoint().name == "checkpoint-3"
    server.start()
    with trainer(config, scenarios, tmp_path / "cut") as made:
        made.train()
    assert numbers(tmp_path / "cut") == numbers(tmp_path / "whole")


def test_steps_drawn_ahead_are_scored_under_what_drew_them(config, server, scenarios, tmp_path):
    sampler = config.sampler.model_copy(update={"max_staleness": 2})
    config = config.model_copy(update={"sampler": sampler, "steps": 8})
    held = []
    with trainer(config, scenarios, tmp_path / "run") as made:
        made._on_step = lambda metrics: held.append(len(server.loaded))
        made.train()
    rows = RunFolder.open(tmp_path / "run").read_metrics()
    assert [row["step"] for row in rows] == list(range(1, 9))
    staleness = [row["sampler_staleness"] for row in rows]
    assert staleness[0] == 0 and max(staleness) in (1, 2)  # never more than was allowed
    for row in rows:
        # Whatever the age: compared with the version that drew it, nothing but rounding is left.
        assert row["sampler_gap"] < 1e-4 and row["sampler_unknown_tokens"] == 0
    assert max(held) <= 3 and server.loaded == []
    drawn = [body["seed"] for path, body in server.asked if path == "/v1/completions"]
    assert len(drawn) == 16 and len(set(drawn)) == 16  # two prompts a step, each asked once


def test_a_failure_while_drawing_ahead_ends_the_run(config, server, scenarios, tmp_path):
    sampler = config.sampler.model_copy(update={"max_staleness": 1})
    config = config.model_copy(update={"sampler": sampler})
    with trainer(config, scenarios, tmp_path / "run") as made:
        made._on_step = lambda metrics: server.stop() if metrics["step"] == 2 else None
        with pytest.raises(SamplingFailed, match="No sampling server"):
            made.train()
    assert RunFolder.open(tmp_path / "run").latest_checkpoint() is not None
