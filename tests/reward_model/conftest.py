"""Preferences that a tiny model learns in seconds: polite answers are better than rude ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memograd.warm_start.reward_model import train_reward_model
from memograd.warm_start.settings import RewardModelSettings

THINGS = ("the bus", "my keys", "your room", "a pen", "the cat", "some tea", "her hat", "the door")
POLITE, RUDE = ("please", "thank you", "gladly"), ("shut up", "go away", "you fool")


def polite_pairs(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Pairs of different questions; the better answer is shorter in about half of them."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        asked = f"where is {draw.choice(THINGS)} {number}?"
        filler = [f"it is {draw.choice(THINGS)} " * draw.randint(0, 2) for _ in range(2)]
        rows.append(
            {
                "prompt": [{"role": "user", "content": asked}],
                "chosen": filler[0] + draw.choice(POLITE),
                "rejected": filler[1] + draw.choice(RUDE),
            }
        )
    return rows


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows as JSONL."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def polite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 pairs."""
    return write_rows(tmp_path_factory.mktemp("pairs") / "polite.jsonl", polite_pairs(60))


@pytest.fixture
def settings(polite_file: Path, tiny_model_folder: Path) -> Callable[..., RewardModelSettings]:
    """Settings of a short training; what is given wins."""

    def made(**given: Any) -> RewardModelSettings:
        values: dict[str, Any] = {
            "data": polite_file,
            "model": str(tiny_model_folder),
            "device": "cpu",
            "steps": 2,
            "batch_size": 4,
            "micro_batch_size": 4,
            "warmup_steps": 0,
            "lora": {"r": 4, "alpha": 8},
        }
        return RewardModelSettings(**{**values, **given})

    return made


@pytest.fixture(scope="session")
def polite_run(
    tmp_path_factory: pytest.TempPathFactory, polite_file: Path, tiny_model_folder: Path
) -> Path:
    """The run folder of a reward model that has learnt what polite is."""
    return train_reward_model(
        RewardModelSettings(
            data=polite_file,
            eval_fraction=0.3,
            model=str(tiny_model_folder),
            device="cpu",
            steps=40,
            batch_size=8,
            micro_batch_size=8,
            learning_rate=0.01,
            warmup_steps=2,
            out=tmp_path_factory.mktemp("runs") / "polite",
        )
    )
