"""memory-ops from end to end: trains, measures, resumes to the bit, refuses what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.quick import quick
from torch import nn

from memograd.config.load import load_settings
from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs, write_lifelogs
from memograd.errors import BadInput, Stopped
from memograd.grpo.run_state import run_state
from memograd.memory import Memory
from memograd.memory.manager.trained.files import load_head
from memograd.memory.manager.trained.manager import TrainedManager
from memograd.memory.manager.trained.network import Shape
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.memory_ops.learning.trainer import GRPOMemoryTrainer
from memograd.tasks.memory_ops.material import evaluation_logs
from memograd.tasks.memory_ops.recipe import logs_of_step, train
from memograd.tasks.memory_ops.settings import OperationsConfig

KEYS = {"step", "reward_mean", "reward_std", "loss", "grad_norm", "decisions", "seconds"}


@pytest.fixture(scope="module")
def module_settings(log_files: tuple[Path, Path]) -> OperationsConfig:
    return OperationsConfig(
        data=[log_files[0]],
        eval_data=[log_files[1]],
        embedder="trigram",
        steps=4,
        logs_per_step=2,
        save_steps=2,
        width=16,
        layers=1,
        heads=2,
    )


@pytest.fixture
def settings(module_settings: OperationsConfig, tmp_path: Path) -> OperationsConfig:
    return module_settings.model_copy(update={"out": tmp_path / "run"})


@pytest.fixture(scope="module")
def whole(module_settings: OperationsConfig, trigrams, tmp_path_factory) -> Path:
    """A run that never stopped, which no test may change."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    return train(module_settings.model_copy(update={"out": out}), embedder=trigrams(dimension=64))


def test_trains_measures_and_is_what_a_memory_uses(whole: Path, trigrams, tmp_path: Path) -> None:
    run = whole
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert set(lines[0]) >= KEYS
    for name in ("evaluation.md", "methods-all.json", "operations.png", "curves.png"):
        assert (run / name).is_file()
    table = json.loads((run / "methods-all.json").read_text())
    names = [method["name"] for method in table["methods"]]
    assert "trained head" in names and "rules" in names and len(names) >= 7
    manager = TrainedManager.load(run / "final")
    with Memory.open(
        tmp_path / "memory", embedder=trigrams(dimension=64), manager=manager, env_file=None
    ) as memory:
        memory.add("My dog is called Rex. I live in Rome.", user_id="ann")
        [turn] = memory.learn("My cat is called Tom.", scope=_scope("ann"))[:1]
    assert turn.actor == f"policy:{load_head(run / 'final').version}"


def _scope(user: str):
    from memograd.memory.records.scope import Scope

    return Scope(user_id=user)


@pytest.mark.parametrize("step", quick([3, 4], (0,)))
def test_stopped_and_resumed_is_the_run_that_never_stopped(
    whole: Path, settings: OperationsConfig, trigrams, stopped_in_step, step: int
) -> None:
    """In the last step too: what was learnt is kept, and the run is measured when it goes on."""
    with stopped_in_step(step), pytest.raises(Stopped, match=f"after step {step} of 4"):
        train(settings, embedder=trigrams(dimension=64))
    assert settings.out is not None
    assert run_state(settings.out).reason.startswith(f"stopped by a signal after step {step}")
    assert not (settings.out / "evaluation.md").exists()
    resumed = train(OperationsConfig(resume=settings.out), embedder=trigrams(dimension=64))
    first, second = load_head(whole), load_head(resumed)
    assert first.version == second.version
    assert run_state(resumed).name == "finished" and (resumed / "evaluation.md").is_file()
    rows = [
        [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for run in (whole, resumed)
    ]
    for one, other in zip(*rows, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_a_run_keeps_its_algorithm_and_may_be_made_longer(
    settings: OperationsConfig, trigrams, stopped_in_step
) -> None:
    class Mine(GRPOMemoryTrainer):
        """Another algorithm."""

    embedder = trigrams(dimension=64)
    with stopped_in_step(2), pytest.raises(Stopped):
        train(settings, trainer_class=Mine, embedder=embedder)
    run = settings.out
    assert json.loads((run / "data.json").read_text())["trainer_class"].endswith("Mine")
    again = OperationsConfig(resume=run, steps=5)
    with pytest.raises(BadInput, match=r"begun by .*Mine and would go on with .*GRPOMemoryTrainer"):
        train(again, embedder=embedder)
    assert train(again, trainer_class=Mine, embedder=embedder) == run
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 5
    with pytest.raises(BadInput, match="ask for more"):
        train(OperationsConfig(resume=run, steps=4), trainer_class=Mine, embedder=embedder)


@pytest.mark.slow
def test_a_network_of_ones_own_is_trained_saved_and_measured(
    settings: OperationsConfig, trigrams, stopped_in_step
) -> None:
    embedder = trigrams(dimension=64)
    made: list[OperationHead] = []

    class Narrow(OperationHead):
        """Another shape, which the settings know nothing of."""

        def __init__(self, shape: Shape, seed: int) -> None:
            super().__init__(replace(shape, width=8), seed=seed)
            made.append(self)

    with stopped_in_step(2), pytest.raises(Stopped):
        train(settings, network=Narrow, embedder=embedder)
    again = OperationsConfig(resume=settings.out)
    with pytest.raises(
        BadInput, match=r"the network .*Narrow and would go on with .*OperationHead"
    ):
        train(again, embedder=embedder)
    head = load_head(train(again, network=Narrow, embedder=embedder))
    assert head.shape.width == 8
    assert head.version == made[-1].trained("trigram", {}).version
    assert np.abs(head.weights["whole.weight"]).max() > 0  # zero before training


def test_a_network_that_would_be_ignored_is_refused(
    settings: OperationsConfig, trigrams, tmp_path: Path
) -> None:
    class Own(GRPOMemoryTrainer):
        def __init__(self, network, config) -> None:
            super().__init__(OperationHead(network.shape), config)

    embedder = trigrams(dimension=64)
    with pytest.raises(BadInput, match=r"give yours by train\(network=\.\.\.\)"):
        train(settings, trainer_class=Own, embedder=embedder)
    other = settings.model_copy(update={"out": tmp_path / "other"})
    with pytest.raises(BadInput, match="made a Linear, which cannot be put in service"):
        train(other, network=lambda shape, seed: nn.Linear(2, 2), embedder=embedder)
    started = other.model_copy(update={"policy": tmp_path})
    with pytest.raises(BadInput, match="leave one of them out"):
        train(started, network=lambda shape, seed: OperationHead(shape), embedder=embedder)


def test_training_goes_on_from_another_head(
    whole: Path, settings: OperationsConfig, trigrams, tmp_path: Path, stopped_in_step
) -> None:
    more = settings.model_copy(update={"policy": whole})
    with stopped_in_step(1), pytest.raises(Stopped):
        train(more, embedder=trigrams(dimension=64))
    before, after = load_head(whole), load_head(more.out / "checkpoint-1")
    assert before.version != after.version
    # Scales of the features belong to the head that is trained on.
    assert np.array_equal(before.weights["pair_mean"], after.weights["pair_mean"])
    other = more.model_copy(update={"out": tmp_path / "other"})
    with pytest.raises(BadInput, match="reads vectors of"):
        train(other, embedder=trigrams(dimension=32, name="other"))


@pytest.mark.parametrize("credit", ["trajectory", "mem_alpha_original"])
def test_other_credits_train_too(
    settings: OperationsConfig, trigrams, stopped_in_step, credit: str
) -> None:
    config = settings.model_copy(update={"credit": credit, "num_generations": 2})
    with stopped_in_step(1), pytest.raises(Stopped):
        train(config, embedder=trigrams(dimension=64))
    assert load_head(config.out / "checkpoint-1").shape.width == 16


def test_every_log_comes_once_before_any_comes_again() -> None:
    config = OperationsConfig(logs_per_step=3, seed=4)
    numbers = [number for step in range(1, 11) for number in logs_of_step(10, step, config)]
    rounds = [sorted(numbers[start : start + 10]) for start in range(0, 30, 10)]
    assert rounds == [list(range(10))] * 3
    assert numbers[:10] != numbers[10:20]


def test_what_cannot_be_used_is_refused_and_leaves_nothing(
    settings: OperationsConfig, trigrams, tmp_path: Path
) -> None:
    same = settings.model_copy(update={"eval_data": settings.data})
    with pytest.raises(BadInput, match="in common"):
        train(same, embedder=trigrams(dimension=64))
    missing = settings.model_copy(update={"data": [tmp_path / "none.jsonl"]})
    with pytest.raises(BadInput, match=r"none\.jsonl"):
        train(missing, embedder=trigrams(dimension=64))
    empty = tmp_path / "empty.jsonl"
    write_lifelogs([Lifelog("empty", "en", ("ann", "ben"), (), (), ())], empty)
    with pytest.raises(BadInput, match="'empty' has no statement"):
        train(settings.model_copy(update={"data": [empty]}), embedder=trigrams(dimension=64))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("width=10", "width=10 is not a multiple of heads=4"),
        ("algorithm=sarsa", "algorithm must be one of grpo"),
        ("algorithm=dqn,credit=trajectory", "algorithm must be"),
        ("epsilon=2", "epsilon must be"),
        ("stesp=3", "did you mean steps"),
    ],
)
def test_wrong_settings_are_one_sentence(override: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        load_settings(OperationsConfig, None, [override])


def test_settings_survive_their_json_form() -> None:
    config = OperationsConfig(data=[Path("a.jsonl")], algorithm="ppo", languages=["en", "zh"])
    assert OperationsConfig.model_validate_json(config.model_dump_json()) == config
    with pytest.raises(ValueError, match="only algorithm=grpo"):
        OperationsConfig(algorithm="dqn", credit="trajectory")


def test_the_same_lives_under_other_names_are_not_measured(tmp_path: Path) -> None:
    known = generate_lifelogs(2, 3, LifelogSettings(sessions=2))
    write_lifelogs(known, tmp_path / "known.jsonl")
    renamed = [replace(log, id=f"renamed-{number}") for number, log in enumerate(known)]
    write_lifelogs(renamed, tmp_path / "renamed.jsonl")
    config = OperationsConfig(
        data=[tmp_path / "known.jsonl"], eval_data=[tmp_path / "renamed.jsonl"]
    )
    with pytest.raises(BadInput, match="have renamed-0, renamed-1 in common"):
        evaluation_logs(config)


def test_who_learnt_the_held_out_words_is_not_measured_on_them(tmp_path: Path) -> None:
    learnt = generate_lifelogs(1, 3, LifelogSettings(sessions=2, split="test"))
    write_lifelogs(learnt, tmp_path / "learnt.jsonl")
    config = OperationsConfig(data=[tmp_path / "learnt.jsonl"])
    with pytest.raises(BadInput, match="in the words and names of the split test"):
        evaluation_logs(config)
    other = generate_lifelogs(1, 4, LifelogSettings(sessions=2))
    write_lifelogs(other, tmp_path / "other.jsonl")
    chosen = config.model_copy(update={"eval_data": [tmp_path / "other.jsonl"]})
    assert [log.id for log in evaluation_logs(chosen)] == [other[0].id]
