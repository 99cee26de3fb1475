"""A run of the tiny model, also as a process of its own: `python stopping_job.py RUN MODEL`.

It prints each step; those of the process last long enough to be interrupted. The reward can be told
to raise when it is asked for the Nth time. Where RUN holds a run, it goes on. For
`test_stopping_runs.py`.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from memograd.cli import main
from memograd.cli.app import app
from memograd.config import LoraConfig, TrainConfig
from memograd.grpo import RunFolder
from memograd.grpo.trainer import Stage, Trainer
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rollout import Message, Scenario

SCENARIOS = [
    Scenario(f"q{n}", (Message(role="user", content="say " + "x" * n),), {"answer": "x"})
    for n in range(5)
]


class Noisy:
    """A reward that draws: its generator belongs to the state of the run."""

    def __init__(self, crash_at: int) -> None:
        self.calls, self.crash_at = 0, crash_at

    def __call__(self, completions: list[str]) -> list[float]:
        self.calls += 1
        if self.calls == self.crash_at:
            raise RuntimeError("the plug was pulled")
        return [sum(c < "@" for c in text) + random.random() / 10 for text in completions]


def job(folder: Path, model: str, crash_at: int = 0, slow: bool = False) -> None:
    config = TrainConfig(
        model=model,
        device="cpu",
        lora=LoraConfig(r=4),
        steps=5,
        prompts_per_step=2,
        num_generations=4,
        max_completion_length=4,
        learning_rate=1e-2,
        save_steps=4,
        learning_rate_schedule="cosine",
        temperature_schedule="variance",
        temperature_end=1.5,
    )
    if (folder / "config.json").exists():
        run = RunFolder.open(folder)
        checkpoint = run.latest_checkpoint()
        assert checkpoint is not None
        policy = LanguageModel.load_adapter(model, checkpoint, device="cpu")
    else:
        run, checkpoint = RunFolder.create(folder, config.model_dump_json()), None
        policy = LanguageModel.load(model, lora=config.lora, device="cpu", seed=config.seed)

    def on_step(metrics: dict) -> None:
        print(metrics["step"], flush=True)
        time.sleep(0.5 if slow else 0)

    with run.lock():
        rewards = [WeightedReward("noisy", Noisy(crash_at))]
        trainer = Trainer(policy, SCENARIOS, rewards, config, Stage(run, on_step=on_step))
        if checkpoint is not None:
            trainer.restore(checkpoint)
            run.truncate_metrics(trainer.step)
        trainer.train()


if __name__ == "__main__":
    _, run_, model_ = sys.argv

    @app.command("job")
    def command() -> None:
        job(Path(run_), model_, slow=True)

    main(["job"])
