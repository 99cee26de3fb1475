"""The one life of a run, with a task that counts instead of training."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from memograd.config import RunSettings
from memograd.errors import BadInput
from memograd.grpo.distributed import World
from memograd.grpo.trainer import Stage
from memograd.tasks.base.life import BEFORE, train_task
from memograd.tasks.base.progress import counting_progress
from memograd.tasks.base.recipe import HeldOut, Job, Recipe

TASK = "counting"


class Counting:
    """Adds one a step; what it has counted is its weights."""

    def __init__(self, config: RunSettings, stage: Stage) -> None:
        self.step, self.config, self.stage = 0, config, stage

    def restore(self, checkpoint: Path) -> None:
        self.step = int((checkpoint / "count").read_text())

    def train(self) -> Path:
        run, steps = self.stage.run, self.config.steps
        while self.step < steps:
            self.step += 1
            metrics = {"step": self.step, "reward_mean": self.step / steps, "loss": 0.0, "kl": None}
            metrics |= {"reward_normalised_mean": 0.0, "reward_normalised_std": 0.0}
            metrics |= {"reward_std": 0.0, "seconds": {"count": 1.0}}
            run.append_metrics(metrics)
            self.stage.on_step({**metrics, "tokens": 1})
        return run.save_checkpoint(
            "final", lambda folder: _write(folder / "count", str(self.step)), step=self.step
        )


def _write(path: Path, text: str) -> None:
    path.write_text(text)


@dataclass(frozen=True)
class Told:
    """What is measured, with a value that is not finite."""

    label: str
    number: float


class Counter:
    """The task, and what its runs did."""

    def __init__(self, screen: io.StringIO | None = None) -> None:
        self.measured: list[str] = []
        self.reported: list[tuple[Told, Told]] = []
        self.held_out = ["a question"]
        self.share: Callable[[World], None] = lambda world: None
        self.console = Console(file=screen or io.StringIO(), force_terminal=True, width=100)
        self.recipe: Recipe[RunSettings, Told] = Recipe(self.make_job, self.console)

    def make_job(self, config: RunSettings, checkpoint: Path | None) -> Job[Told]:
        def measure(label: str) -> Told:
            with counting_progress(label, total=1, console=self.console) as done:
                done(1)
            self.measured.append(label)
            return Told(label, math.nan)

        return Job(
            training=lambda stage: Counting(config, stage),
            environment=dict,
            describe=lambda run: None,
            held_out=HeldOut(
                self.held_out,
                Told,
                measure,
                score=lambda told: told.number,
                report=lambda before, after, folder: self.reported.append((before, after)),
            ),
            share=lambda world: self.share(world),
        )

    def train(self, **settings: Any) -> Path:
        return train_task(TASK, self.recipe, RunSettings(**settings))


def test_what_was_measured_before_is_measured_once_and_read_back(tmp_path: Path) -> None:
    counter = Counter()
    run = counter.train(out=tmp_path / "run", steps=2)
    assert counter.train(resume=run, steps=5) == run
    assert counter.measured == ["before training", "trained", "trained"]
    (first, _), (again, _) = counter.reported
    assert again.label == first.label == "before training"
    assert math.isnan(again.number)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]


def test_a_run_goes_on_with_the_held_out_data_that_it_began_with(tmp_path: Path) -> None:
    counter = Counter()
    run = counter.train(out=tmp_path / "run", steps=2)
    counter.held_out = ["another question"]
    with pytest.raises(BadInput, match=r"measured on changed since .*before\.json"):
        counter.train(resume=run, steps=3)
    (run / BEFORE).unlink()
    counter.train(resume=run, steps=3)
    assert counter.measured.count("before training") == 2


@pytest.mark.parametrize("text", ["", "[]", '{"measured": {}}', '{"measured": {"label": 1}}'])
def test_a_damaged_measurement_is_one_sentence(tmp_path: Path, text: str) -> None:
    counter = Counter()
    run = counter.train(out=tmp_path / "run", steps=1)
    (run / BEFORE).write_text(text)
    with pytest.raises(BadInput, match=r"before\.json is damaged .*: remove it"):
        counter.train(resume=run)


FIRST = '{"step": 1, "loss": 0.0}\n'
BROKEN = [FIRST + end for end in ("", '{"step": 2, "los', "no\n", '{"step": 2}\n')]


@pytest.mark.parametrize("content", [None, "", *BROKEN])
def test_a_run_whose_metrics_are_lost_is_refused_before_its_job_is_made(
    tmp_path: Path, content: str | None
) -> None:
    counter = Counter()
    run = counter.train(out=tmp_path / "run", steps=2)
    metrics, told = run / "metrics.jsonl", (run / "config.json").read_bytes()
    metrics.unlink()
    if content is not None:
        metrics.write_text(content)

    def make_job(config: RunSettings, checkpoint: Path | None) -> Job[Told]:
        raise AssertionError("it was made")

    counter.recipe = replace(counter.recipe, make_job=make_job)
    with pytest.raises(BadInput, match=r"metrics\.jsonl does not say in line .* after step 2:"):
        counter.train(resume=run, steps=5)
    assert (run / "config.json").read_bytes() == told
    assert (metrics.read_text() if metrics.exists() else None) == content


def test_half_a_line_behind_the_checkpoint_is_dropped_with_a_sentence(tmp_path: Path) -> None:
    screen = io.StringIO()
    counter = Counter(screen)
    counter.console = Console(file=screen, soft_wrap=True)
    counter.recipe = replace(counter.recipe, console=counter.console)
    run = counter.train(out=tmp_path / "run", steps=2)
    metrics = run / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text(whole + '{"step": 3, "lo')
    counter.train(resume=run, steps=3)
    assert f"line 3 of {metrics} is damaged or half written: it is dropped" in screen.getvalue()
    assert metrics.read_text().startswith(whole)
    assert [json.loads(line)["step"] for line in metrics.read_text().splitlines()] == [1, 2, 3]


def test_what_was_trained_is_measured_where_its_curves_cannot_be_drawn(tmp_path: Path) -> None:
    counter, screen = Counter(), io.StringIO()
    counter.recipe = replace(counter.recipe, console=Console(file=screen, soft_wrap=True))
    run = counter.train(out=tmp_path / "run", steps=1)
    (run / "curves.png").unlink()
    metrics = run / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"reward_std"', '"mine"'))
    counter.train(resume=run, steps=2)
    assert len(counter.reported) == 2 and not (run / "curves.png").exists()
    assert "the curves are not drawn: Entry 1 of " in screen.getvalue()
    assert "needs a number under `reward_std`" in screen.getvalue()


def test_a_picture_that_fails_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter, screen = Counter(), io.StringIO()
    counter.recipe = replace(counter.recipe, console=Console(file=screen, soft_wrap=True))

    def full(metrics: Path, picture: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memograd.tasks.base.life.plot_curves", full)
    run = counter.train(out=tmp_path / "run", steps=1)
    assert len(counter.reported) == 1 and not (run / "curves.png").exists()
    assert "the curves are not drawn: OSError: [Errno 28] No space left" in screen.getvalue()


def test_a_tracker_that_is_missing_leaves_the_settings_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Counter()
    run = counter.train(out=tmp_path / "run", steps=1)
    told = (run / "config.json").read_bytes()

    def missing(names: list[str]) -> None:
        if names:
            raise BadInput("track=wandb needs the package wandb")

    monkeypatch.setattr("memograd.tasks.base.life.check_trackers", missing)
    with pytest.raises(BadInput, match="track=wandb"):
        counter.train(resume=run, steps=2, track=["wandb"])
    assert (run / "config.json").read_bytes() == told


def test_processes_that_cannot_share_are_refused_before_there_is_a_folder(tmp_path: Path) -> None:
    counter = Counter()

    def refuse(world: World) -> None:
        raise BadInput("one process only")

    counter.share = refuse
    with pytest.raises(BadInput, match="one process only"):
        counter.train(out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_new_run_that_is_refused_before_anything_is_measured_leaves_no_folder(
    tmp_path: Path,
) -> None:
    counter = Counter()
    made = counter.recipe.make_job

    @contextmanager
    def unreachable(folder: Path, world: World) -> Iterator[None]:
        raise BadInput("the server is away")
        yield

    def away(config: RunSettings, checkpoint: Path | None) -> Job[Told]:
        return replace(made(config, checkpoint), opened=unreachable)

    there = counter.recipe
    counter.recipe = replace(counter.recipe, make_job=away)
    with pytest.raises(BadInput, match="the server is away"):
        counter.train(out=tmp_path / "run")
    assert not list(tmp_path.iterdir())
    counter.recipe = there
    run = counter.train(out=tmp_path / "run", steps=1)
    counter.recipe = replace(counter.recipe, make_job=away)
    with pytest.raises(BadInput, match="the server is away"):
        counter.train(resume=run, steps=2)
    assert (run / "final" / "count").is_file()


def test_a_run_that_is_refused_after_it_was_measured_keeps_its_folder(tmp_path: Path) -> None:
    counter = Counter()
    made = counter.recipe.make_job

    def refuse(stage: Stage) -> Counting:
        raise BadInput("no question is left")

    counter.recipe = replace(
        counter.recipe, make_job=lambda *given: replace(made(*given), training=refuse)
    )
    with pytest.raises(BadInput, match="no question is left"):
        counter.train(out=tmp_path / "run")
    assert (tmp_path / "run" / BEFORE).is_file()


def test_the_bar_of_training_is_gone_when_measuring_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter, shown = Counter(), []
    made = counter.recipe.make_job

    def watched(config: RunSettings, checkpoint: Path | None) -> Job[Told]:
        job = made(config, checkpoint)
        held_out = job.held_out
        assert held_out is not None

        def measure(label: str) -> Told:
            shown.append(counter.console._live_stack != [])
            return held_out.measure(label)

        return replace(job, held_out=replace(held_out, measure=measure))

    counter.recipe = replace(counter.recipe, make_job=watched)
    counter.train(out=tmp_path / "run", steps=1)
    assert shown == [False, False]
