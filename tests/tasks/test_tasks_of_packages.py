"""A task of an installed package is a task like any other: listed, trained, measured, resumed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import memograd
from memograd.cli import main, training

DEFINITION = '''
from memograd.config.settings import TrainConfig
from memograd.tasks.registry import Option, Task


class ToyConfig(TrainConfig):
    """Everything that the toy task can be told."""

    wanted: str = "a"
    """Letter that answers should have many of."""


TASK = Task(
    name="toy",
    summary="Train a model to say one letter.",
    settings=ToyConfig,
    recipe="toy_task.recipe",
    options=(Option("--wanted", "wanted", "LETTER", "Letter that answers should have many of."),),
)
'''

RECIPE = """
import json
from dataclasses import dataclass

from rich.console import Console

from memograd.rewards import WeightedReward
from memograd.rollout.types import Scenario
from memograd.tasks.base.policy import load_policy
from memograd.tasks.base.recipe import HeldOut, Recipe, policy_job

console = Console(markup=False, highlight=False, soft_wrap=True)
PROMPTS = [Scenario(f"p{n}", (), {}, text="say " + "x" * n) for n in range(4)]


@dataclass(frozen=True)
class Share:
    share: float


def make_job(config, checkpoint):
    policy = load_policy(config, checkpoint)

    def letters(completions, **columns):
        return [sum(c < config.wanted for c in text) / max(1, len(text)) for text in completions]

    def measure(label):
        groups = policy.sample(
            [policy.encode(one.prompt) for one in PROMPTS],
            num_generations=1,
            temperature=0.0,
            max_completion_length=config.max_completion_length,
        )
        shares = letters([group.texts[0] for group in groups])
        return Share(sum(shares) / len(shares))

    def report(before, after, folder):
        both = {"before": before.share, "after": after.share}
        (folder / "evaluation.json").write_text(json.dumps(both))

    return policy_job(
        policy,
        [WeightedReward("letters", letters)],
        lambda world: PROMPTS,
        config,
        HeldOut(PROMPTS, Share, measure, score=lambda measured: measured.share, report=report),
        describe=lambda run: console.print("training on four prompts"),
    )


RECIPE = Recipe(make_job, console)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with two packages as pip leaves them; of one, the task is broken."""
    package = tmp_path / "site" / "toy_task"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "definition.py").write_text(DEFINITION)
    (package / "recipe.py").write_text(RECIPE)
    for name, target in (("toy", "toy_task.definition:TASK"), ("lost", "toy_task.gone:TASK")):
        info = tmp_path / "site" / f"{name}_package-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 1.0")
        (info / "entry_points.txt").write_text(f"[memograd.tasks]\n{name} = {target}\n")
    return tmp_path


# A process sees its packages once, when it starts; all commands of a test run in one.
COMMANDS = """
import json, sys
from memograd.cli import main

for line in sys.stdin:
    try:
        main(json.loads(line))
    except SystemExit as ended:
        print(f"exit code {ended.code}", file=sys.stderr, flush=True)
"""


def commands(folder: Path, *lines: list[str]) -> tuple[str, str]:
    """What they printed, and what they said to standard error with the exit code of each."""
    source = Path(memograd.__file__).parents[1]
    path = os.pathsep.join([str(folder / "site"), str(source)])
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_it_is_listed_and_what_does_not_fit_is_one_sentence(installed: Path) -> None:
    foreign = ["train", "toy", "episodes.max_turns=3"]
    shown, said = commands(installed, ["train", "--help"], ["train", "lost"], foreign)
    assert "toy" in shown and "Train a model to say one letter." in shown
    assert "lost" in shown and "does not load" in shown
    listed, broken, refused, end = re.split(r"exit code [02]\n", said)
    assert listed == end == ""
    assert "The task lost of the installed package lost-package does not load" in broken
    assert "episodes.max_turns" in refused


def test_it_is_trained_measured_and_resumed(
    installed: Path, tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """Here and not in a process of its own, which would load torch again."""
    monkeypatch.syspath_prepend(installed / "site")
    monkeypatch.chdir(installed)
    monkeypatch.setattr(training.train_app, "registered_commands", [])
    training.add_task("toy")
    training.add_task("text")  # one command alone would be no group
    trained = [
        *("train", "toy", "--wanted", "~", f"model={tiny_model_folder}", "device=cpu", "out=run"),
        *("steps=1", "prompts_per_step=2", "num_generations=2", "max_completion_length=4"),
        *("lora.r=2", "eval_steps=1"),
    ]
    for arguments in (trained, ["train", "toy", "resume=run", "steps=2"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0, capsys.readouterr().err
    run = installed / "run"
    assert json.loads((run / "run.json").read_text())["task"] == "toy"
    assert json.loads((run / "config.json").read_text())["wanted"] == "~"
    first, second = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    assert set(first["rewards"]) == {"letters"} and first["eval_best"]
    assert second["step"] == 2
