"""Plans as a whole: what fits, what is best, what is refused; a run played through."""

from __future__ import annotations

import dataclasses
import json
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Qwen2Config
from typer.testing import CliRunner

from memograd.cli.app import app
from memograd.errors import BadInput
from memograd.planning import Workload, make_plan, parse_cluster, shape_of, simulation
from memograd.planning.costs import SHARE, Trees, learner_memory, learning_seconds, room
from memograd.planning.hardware import Cluster, Efficiency
from memograd.planning.placement import Placement, micro_batch_tokens
from memograd.planning.simulation import play
from memograd.policy.memory_model import SHARE as planned_share
from memograd.policy.memory_model import learner_needs, saved_bytes

SEVEN = shape_of("Qwen2.5-7B")


def test_seven_billion_weights_are_trained_whole_on_eight_and_not_on_one() -> None:
    work = Workload(train="full")
    plan = make_plan(SEVEN, parse_cluster("8xH200"), work)
    assert plan.best.memory.total <= room(plan.cluster)
    with pytest.raises(BadInput, match=r"learning needs 1\d\d GiB .* Try tuning=lora"):
        make_plan(SEVEN, parse_cluster("1xH100"), work)


def test_the_best_placement_is_the_fastest() -> None:
    plan = make_plan(SEVEN, parse_cluster("8xH100"), Workload())
    seconds = [placement.step.seconds for placement in plan.placements]
    assert seconds == sorted(seconds)
    assert len({placement.name for placement in plan.placements}) == len(seconds) == 8


@given(st.integers(0, 4096), st.integers(1, 64), st.sampled_from(["lora", "full"]), st.booleans())
def test_memory_grows_with_tokens_and_shrinks_with_ranks(
    tokens: int, ranks: int, train: str, checkpointing: bool
) -> None:
    work = Workload(train=train, checkpointing=checkpointing)
    held = learner_memory(SEVEN, work, ranks=ranks, tokens=tokens)
    assert learner_memory(SEVEN, work, ranks=ranks, tokens=tokens + 1).total > held.total
    assert learner_memory(SEVEN, work, ranks=2 * ranks + 2, tokens=tokens).total < held.total
    assert sum(held.parts().values()) == held.total


def test_the_micro_batch_is_the_largest_that_fits() -> None:
    cluster, work = parse_cluster("4xA100"), Workload()
    tokens = micro_batch_tokens(SEVEN, work, cluster, ranks=4)
    assert learner_memory(SEVEN, work, ranks=4, tokens=tokens).total <= room(cluster)
    assert learner_memory(SEVEN, work, ranks=4, tokens=tokens + 1).total > room(cluster)


def placed(staleness: int, count: str = "8xH100") -> Placement:
    work = Workload(train="full", answer=512)
    plan = make_plan(SEVEN, parse_cluster(count), work, max_staleness=staleness)
    return next(one for one in plan.placements if not one.colocated and one.sampling == 4)


@given(st.integers(0, 4), st.integers(0, 3), st.floats(0, 1.5))
def test_no_group_is_older_than_allowed(staleness: int, seed: int, spread: float) -> None:
    work = Workload(train="full", answer=512, prompts=4, group=4, spread=spread)
    played = play(placed(staleness), work, steps=6, max_staleness=staleness, seed=seed)
    assert 0 <= played.staleness_mean <= played.staleness_max <= staleness
    assert 0 <= played.learner_idle < 1
    assert 0 <= played.sampler_idle < 1
    assert played == play(placed(staleness), work, steps=6, max_staleness=staleness, seed=seed)


def test_running_ahead_takes_less_time_than_waiting() -> None:
    work = Workload(train="full", answer=512, spread=1.0)
    waits = play(placed(0), work, max_staleness=0)
    ahead = play(placed(2), work, max_staleness=2)
    assert ahead.seconds_a_step < waits.seconds_a_step
    assert ahead.learner_idle < waits.learner_idle


def test_answers_of_one_length_take_what_the_formula_says() -> None:
    work = Workload(train="full", answer=512, spread=0)
    placement = placed(0)
    one = dataclasses.replace(placement, at_once=work.rollouts)
    played = play(one, work, steps=4)
    assert played.seconds_a_step == pytest.approx(placement.step.seconds, rel=1e-6)


def test_a_sampler_that_sleeps_while_the_learner_works_never_runs_ahead() -> None:
    work = Workload(answer=512, spread=1.0)
    plan = make_plan(SEVEN, parse_cluster("1xH200"), work, max_staleness=2)
    assert plan.best.colocated
    assert play(plan.best, work, max_staleness=2) == play(plan.best, work, max_staleness=0)


def test_a_learner_is_planned_as_the_run_counts_it() -> None:
    """Beside what `memograd.policy.memory_model` says before the first step."""
    shape = dataclasses.replace(shape_of("Qwen2.5-0.5B"), layers=6)
    config = Qwen2Config(
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.inner,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied,
    )
    lora = LoraConfig(r=16, target_modules="all-linear")
    for train, ranks, checkpointing in product(("lora", "full"), (1, 4), (True, False)):
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
            if train == "lora":
                get_peft_model(model, lora)
        needs = learner_needs(
            model,
            [weight for weight in model.parameters() if weight.requires_grad],
            saved_bytes(config, torch.bfloat16, lora=lora if train == "lora" else None),
            torch.device("cuda"),
            checkpointing=checkpointing,
            ranks=ranks,
        )
        work = Workload(train=train, checkpointing=checkpointing)
        planned = learner_memory(shape, work, ranks=ranks, tokens=4096)
        assert planned.total == pytest.approx(needs.total(4096), rel=0.05), (train, ranks)
    assert planned_share == SHARE


def test_a_tree_that_is_cut_has_its_prompt_again_in_every_part() -> None:
    work = Workload(prompt=1000, answer=100, group=8)
    assert work.cut(1800) == Trees(1, 1800, 1000 * 1001 / 2 + 8 * (100 * 1000 + 100 * 101 / 2))
    assert work.cut(1799) == Trees(2, 2800, 2 * 1000 * 1001 / 2 + 8 * (100 * 1000 + 100 * 101 / 2))
    assert work.cut(1100).count == 8
    assert work.cut(1).count == 8


def test_every_micro_batch_gathers_the_layers() -> None:
    """Slow links: what travels decides, two gathers and a scatter in fp32 a micro-batch."""
    slow = dataclasses.replace(parse_cluster("4xH200").device, link=1e6)
    cluster = Cluster(slow, 4)
    work = Workload(train="full", prompts=16)  # four trees of 3,072 tokens a rank
    reached = Efficiency()
    layers = 28 * 233_057_792
    ring = 3 / 4 / (1e6 * reached.link_share)
    outside = (2 * 4 + 2) * (SEVEN.weights - layers) * ring
    for tokens, micro_batches in ((4 * 3072, 1), (2 * 3072, 2), (3072, 4), (3071, 8)):
        seconds = learning_seconds(SEVEN, work, cluster, reached, ranks=4, tokens=tokens)
        expected = micro_batches * (2 * 2 + 4) * layers * ring + outside
        assert seconds == pytest.approx(expected, rel=1e-9), tokens


def test_a_step_of_very_many_answers_is_played_in_fewer_steps_or_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Workload(prompts=16, group=8)
    best = make_plan(SEVEN, parse_cluster("8xH200"), work).best
    assert play(best, work) == play(best, work, steps=20)
    monkeypatch.setattr(simulation, "PLAYED", 5 * 128 + 1)
    assert play(best, work) == play(best, work, steps=5)
    with pytest.raises(BadInput, match=r"at most 100,000 answers a step, not 8,000,000"):
        Workload(prompts=1_000_000)


@pytest.mark.parametrize(
    ("gpus", "says"),
    [
        ("0xH100", "a count and a device"),
        ("00xH100", "a count and a device"),
        ("8", "a count and a device"),
        ("eight H100", "a count and a device"),
        ("8xH1000", "did you mean H100"),
    ],
)
def test_a_cluster_that_cannot_be_read_is_refused(gpus: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse_cluster(gpus)


@pytest.mark.parametrize(
    "wrong", [{"prompts": 0}, {"spread": -1}, {"answer": 0}, {"train": "both"}]
)
def test_a_workload_that_makes_no_sense_is_refused(wrong: dict) -> None:
    with pytest.raises(BadInput, match=next(iter(wrong))):
        Workload(**wrong)


def test_the_command_says_it_in_words_and_as_data() -> None:
    asked = ["plan", "--model", "Qwen/Qwen2.5-7B-Instruct", "--gpus", "8xH200"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "a learner's device needs about" in shown.output
    data = json.loads(CliRunner().invoke(app, [*asked, "--json", "--staleness", "1"]).output)
    assert data["model"]["weights"] == 7_615_616_512
    best = data["placements"][0]
    assert best["learner_bytes"]["total"] == pytest.approx(
        sum(size for part, size in best["learner_bytes"].items() if part != "total")
    )
    assert list(data["simulated"]) == ["1"]
