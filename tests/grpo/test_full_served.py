"""Whole runs that train all weights and draw from servers: alone, and cut among processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from ranks import on_ranks
from small_runs import begun
from test_distributed import SCENARIOS, low_bytes
from test_full import check_weights, full, weights_of
from tests.quick import quick

from memograd.config import SamplerConfig, TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.distributed import ALONE, World
from memograd.rewards import WeightedReward
from memograd.tasks.base.policy import sampling_of

PROGRAM = """#!{python}
import pathlib, sys, time
sys.path[:0] = {path}
from tests.policy.scripted_vllm import ScriptedVllm
log = pathlib.Path({log!r})
log.write_text(log.read_text() + "started\\n" if log.exists() else "started\\n")
server = ScriptedVllm(pathlib.Path(sys.argv[2]), port=int(sys.argv[sys.argv.index("--port") + 1]))
time.sleep(600)
"""


def served(config: TrainConfig, **sampler) -> TrainConfig:
    made = SamplerConfig(engine="vllm", patience=2, **sampler)
    return config.model_copy(update={"sampler": made})


def served_run(world: World, folder: Path, config: TrainConfig) -> tuple[dict, list[dict]]:
    """Measure as rank 0 does, and train in `folder`; returns the weights and the steps."""
    start = begun(folder, config, world)

    def measured() -> None:
        start.policy.sample([[5, 6, 7]], num_generations=1, temperature=0, max_completion_length=4)

    with sampling_of(start.policy, config.sampler, folder, world=world):
        world.led(measured)
        start.trainer(SCENARIOS, [WeightedReward("low", low_bytes)]).train()
    return weights_of(start.policy), RunFolder.open(folder).read_metrics()


def check_steps(rows: list[dict], steps: int) -> None:
    assert [row["step"] for row in rows] == list(range(1, steps + 1))
    learnt = [row for row in rows if row["sampler_gap"] is not None]
    assert learnt and all(row["sampler_gap"] < 1e-4 for row in learnt)
    assert [row["sampler_version"] for row in learnt] == [row["step"] - 1 for row in learnt]
    assert not any(row["sampler_unknown_tokens"] for row in learnt)


@pytest.mark.parametrize("staleness", quick([0, 1], (1,)))
def test_a_run_learns_from_what_each_version_drew(staleness, tmp_path, tiny_config, servers):
    urls = [one.url for one in servers]
    config = served(full(tiny_config, save_steps=4), url=urls, max_staleness=staleness)
    weights, rows = served_run(ALONE, tmp_path / "run", config)
    assert all(one.answered for one in servers)
    assert [one.weights for one in servers] == ["default"] * 2  # as they were found
    assert not (tmp_path / "run" / "sampler-adapters").exists()
    ages = [row["sampler_staleness"] for row in rows]
    assert ages[0] == 0 and max(ages) == staleness
    if staleness == 0:
        check_steps(rows, 4)
    began = weights_of(begun(tmp_path / "other", full(tiny_config)).policy)
    assert any(not np.allclose(weights[name], began[name]) for name in weights)


@pytest.mark.slow
@pytest.mark.parametrize("shard", ["off", "fsdp2"])
def test_two_processes_transfer_whole_weights_and_one_starts_the_server(
    shard, tmp_path, tiny_config
):
    program, log = tmp_path / "vllm", tmp_path / "started"
    text = PROGRAM.format(python=sys.executable, path=sys.path, log=str(log))
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    config = served(full(tiny_config, shard=shard, save_steps=4), start=True, command=str(program))
    (weights, rows), (other, _) = on_ranks(2, served_run, tmp_path / "run", config)
    check_steps(rows, 4)
    check_weights(other, weights, atol=0.0)
    assert log.read_text() == "started\n"


def on_two_machines(world: World, folder: Path, config: TrainConfig) -> None:
    os.environ["LOCAL_WORLD_SIZE"] = "1"  # as torchrun says on each
    served_run(world, folder, config)


def test_several_machines_start_no_server(tmp_path, tiny_config):
    config = served(full(tiny_config), start=True)
    for raised in on_ranks(2, on_two_machines, tmp_path / "run", config):
        assert raised.kind == BadInput.__name__
        assert "2 processes train on several" in raised.message


def test_drawing_ahead_of_two_processes_is_refused(tmp_path, tiny_config, servers):
    config = served(full(tiny_config), url=[servers[0].url], max_staleness=1)
    for raised in on_ranks(2, served_run, tmp_path / "run", config):
        assert raised.kind == BadInput.__name__
        assert "with tuning=full is for one process, and there are 2" in raised.message
