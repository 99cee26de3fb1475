"""What `memograd learn` can be told: how a policy goes on learning from feedback.

Imports pydantic and `settings`. Tested in `tests/recipes/test_learn_online.py`.
"""

from __future__ import annotations

from memograd.config.operations_settings import Share
from memograd.config.settings import Count, Positive, Seed, Settings


class OnlineConfig(Settings):
    """Everything that learning from feedback can be told."""

    steps: Count = 12
    """Training steps; each walks through logs_per_step logs."""
    logs: Count = 8
    """Generated logs that are mixed in, so that what was learnt before is not forgotten."""
    eval_logs: Count = 6
    """Generated logs of held-out forms that the new version is judged on."""
    logs_per_step: Count = 4
    """Logs in a step, the user's own among them as often as generated ones."""
    learning_rate: Positive = 3e-4
    """Peak learning rate of AdamW; falls to a tenth in a cosine."""
    held_out: Share = 0.25
    """Share of the feedback that is never trained on and judges every new version."""
    tolerance: Share = 0.005
    """How much worse than now, in answerable questions, a new version may be on generated logs;
    on held-out feedback it may not be worse at all."""
    seed: Seed = 0
    """Seed of every random choice."""
