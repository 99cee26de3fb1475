"""Every random generator that a step may draw from, captured and put back.

The sampler draws from its own generator, dropout from torch's, and a reward function may use
Python's or numpy's. Invariant: after `restore_random_states(capture_random_states())` all of them
give the numbers that they would have given. Proved in `tests/grpo/test_random_states.py`. May
import numpy and torch.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Begin all process-wide generators from `seed` (any whole number from 0)."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def capture_random_states(generator: torch.Generator) -> dict[str, Any]:
    """The states of `generator` and of the process-wide ones, in plain types and tensors."""
    numpy_state = np.random.get_state(legacy=False)
    states: dict[str, Any] = {
        "sampler": generator.get_state(),
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": {
            "keys": numpy_state["state"]["key"].tolist(),
            "position": int(numpy_state["state"]["pos"]),
            "has_gauss": int(numpy_state["has_gauss"]),
            "gauss": float(numpy_state["gauss"]),
        },
    }
    if generator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(generator.device)
    return states


def restore_random_states(states: dict[str, Any], generator: torch.Generator) -> None:
    """Put back what `capture_random_states` returned, on the same kind of device."""
    generator.set_state(states["sampler"])
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    numpy_state = states["numpy"]
    keys = np.asarray(numpy_state["keys"], dtype=np.uint32)
    np.random.set_state(
        ("MT19937", keys, numpy_state["position"], numpy_state["has_gauss"], numpy_state["gauss"])
    )
    if generator.device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], generator.device)
