"""Limits say why, and none can be set so that nothing happens."""

from __future__ import annotations

import pytest

from memograd.errors import BadInput
from memograd.rollout.episode import STOP_REASONS, Limits


def test_a_turn_begins_only_where_a_whole_action_fits() -> None:
    limits = Limits(max_tokens=100)
    assert limits.before_turn(seconds=0, row_tokens=90, action_tokens=10) is None
    assert limits.before_turn(seconds=0, row_tokens=91, action_tokens=10) == "max_tokens"


def test_without_limits_only_turns_are_bounded() -> None:
    limits = Limits()
    assert limits.before_turn(seconds=1e9, row_tokens=10**9, action_tokens=1) is None
    assert limits.after_turn(turns=7, failed_turns=7) is None
    assert limits.after_turn(turns=8, failed_turns=0) == "max_turns"


def test_failures_in_a_row_stop() -> None:
    assert Limits(max_failed_turns=2).after_turn(turns=3, failed_turns=1) is None
    assert Limits(max_failed_turns=2).after_turn(turns=3, failed_turns=2) == "error"
    assert "error" in STOP_REASONS


@pytest.mark.parametrize("name", ["max_turns", "max_tokens", "max_seconds", "max_failed_turns"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name}=0 would stop every rollout"):
        Limits(**{name: 0})
