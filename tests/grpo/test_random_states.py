"""After restoring, every generator draws what it drew the first time."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import torch

from memograd.grpo.run_state import (
    capture_random_states,
    restore_random_states,
    seed_everything,
)


def draw(generator: torch.Generator) -> list[float]:
    return [
        float(torch.rand((), generator=generator)),
        float(torch.rand(())),
        random.random(),
        float(np.random.rand()),
        float(np.random.normal()),  # keeps a second value back: part of the state
        random.gauss(0, 1),
    ]


def test_the_numbers_go_on_as_they_would_have(tmp_path: Path) -> None:
    seed_everything(3)
    generator = torch.Generator().manual_seed(3)
    draw(generator)
    # Through a file, as a checkpoint keeps them.
    torch.save(capture_random_states(generator), tmp_path / "states.pt")
    expected = [draw(generator) for _ in range(3)]
    draw(generator)
    states = torch.load(tmp_path / "states.pt", weights_only=True)
    other = torch.Generator()
    restore_random_states(states, other)
    assert [draw(other) for _ in range(3)] == expected


def test_a_seed_decides_all_of_them() -> None:
    seed_everything(5)
    first = draw(torch.Generator().manual_seed(5))
    seed_everything(5)
    assert draw(torch.Generator().manual_seed(5)) == first
    seed_everything(2**40)  # larger than numpy takes
