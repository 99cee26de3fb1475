"""When a rollout of several turns is stopped, and the words for why it ended.

Every rollout ends with one of `STOP_REASONS`, which the metrics count, so that a policy that learns
to run into a limit is seen. Invariant: no limit cuts an action short; a turn begins only where a
whole action still fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from memograd.errors import BadInput

STOP_REASONS = ("end", "length", "max_turns", "max_tokens", "time", "error")
"""The episode was over; an action was cut at `max_completion_length`; one of the `Limits`, in their
order: turns, tokens, seconds, turns with failed calls in a row."""


@dataclass(frozen=True)
class Limits:
    """What one rollout may use.

    `max_turns` actions. `max_tokens` in the longest row that the model sees: prompt, actions and
    observations. `max_seconds` of wall time since the rollouts of the batch began, looked at
    between turns; a run with this limit is not repeatable to the bit. `max_failed_turns` in a row
    whose tool calls failed. None: no limit.
    """

    max_turns: int = 8
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_failed_turns: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_turns", "max_tokens", "max_seconds", "max_failed_turns"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise BadInput(f"{name}={value} would stop every rollout; give a positive number")

    def after_turn(self, *, turns: int, failed_turns: int) -> str | None:
        """Why no further turn follows this one, if none does."""
        if turns >= self.max_turns:
            return "max_turns"
        if self.max_failed_turns is not None and failed_turns >= self.max_failed_turns:
            return "error"
        return None

    def before_turn(self, *, seconds: float, row_tokens: int, action_tokens: int) -> str | None:
        """Why a turn on a row of `row_tokens` may not begin, if it may not.

        `action_tokens`: the longest action that could be drawn.
        """
        if self.max_tokens is not None and row_tokens + action_tokens > self.max_tokens:
            return "max_tokens"
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return "time"
        return None
