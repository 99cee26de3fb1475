"""Algorithms as data: each name is a set of choices along the same few axes.

A policy-gradient algorithm of this family is three choices, and where its KL term goes:

    advantage     what a rollout's reward is compared with
    ratio         how far the policy may move on what the sampler drew
    aggregation   what share of the loss a rollout has
    kl, kl_in     how the distance to the model before training is measured, and where it counts

`ALGORITHMS[name]` holds the settings that a name stands for. Setting `algorithm` fills them in, and
a setting that is given explicitly wins, so every combination can be asked for. The formulas are in
`memograd.grpo` (advantage, gae, ratio, aggregation, kl), the table of all of it in
`docs/algorithms.md`.

Invariant: a preset sets settings that exist, to values that they take; a resolved configuration
names every choice, so it reads back equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Algorithm = Literal["grpo", "dr_grpo", "rloo", "dapo", "gspo", "cispo", "reinforce_pp", "ppo"]
Advantage = Literal["group", "centred", "leave_one_out", "batch", "group_batch", "gae"]
Ratio = Literal["token", "sequence", "product", "weight"]
Aggregation = Literal["rollout", "token", "constant"]
KlEstimator = Literal["k1", "k2", "k3"]

_GRPO: Mapping[str, Any] = {
    "advantage": "group",
    "ratio": "token",
    "aggregation": "rollout",
    "epsilon": 0.2,
    "epsilon_high": None,
    "beta": 0.01,
    "kl": "k3",
    "kl_in": "loss",
    "resample_rounds": 0,
    "overlong_share": 0.0,
}

ALGORITHMS: Mapping[str, Mapping[str, Any]] = {
    # Group-relative policy optimisation, arXiv:2402.03300.
    "grpo": _GRPO,
    # No division by the standard deviation, a constant length normaliser; arXiv:2503.20783.
    "dr_grpo": {**_GRPO, "advantage": "centred", "aggregation": "constant", "beta": 0.0},
    # A whole answer is one action, its baseline the mean of the others; arXiv:2402.14740.
    "rloo": {
        **_GRPO,
        "advantage": "leave_one_out",
        "ratio": "product",
        "beta": 0.05,
        "kl": "k1",
        "kl_in": "reward",
    },
    # Every token weighs the same, the upper clip is higher, groups without differences are
    # replaced, answers near the length limit cost something; arXiv:2503.14476.
    "dapo": {
        **_GRPO,
        "aggregation": "token",
        "epsilon_high": 0.28,
        "beta": 0.0,
        "resample_rounds": 3,
        "overlong_share": 0.2,
    },
    # One ratio a sequence, the geometric mean of its tokens' ratios; arXiv:2507.18071.
    "gspo": {**_GRPO, "ratio": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4, "beta": 0.0},
    # The ratio only weighs the gradient, so no token is ever cut off; arXiv:2506.13585.
    "cispo": {
        **_GRPO,
        "ratio": "weight",
        "aggregation": "token",
        "epsilon_high": 4.0,
        "beta": 0.0,
    },
    # Rewards are normalised over the batch, not within a group; arXiv:2501.03262.
    "reinforce_pp": {
        **_GRPO,
        "advantage": "batch",
        "aggregation": "token",
        "kl": "k1",
        "kl_in": "reward",
    },
    # Every token is compared with what a value head expected before it; arXiv:1707.06347.
    "ppo": {
        **_GRPO,
        "advantage": "gae",
        "aggregation": "token",
        "beta": 0.05,
        "kl": "k1",
        "kl_in": "reward",
    },
}
"""The settings behind every name of `algorithm`."""
