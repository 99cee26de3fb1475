"""A tracker that training goes on without.

A service that cannot start is an error before the first step, when nothing is lost yet. One that
fails later does not end hours of work, because `metrics.jsonl` has every number anyway: one warning
names the step from which the service misses the rest, and it is not called again until the run is
resumed. Invariant: after `start`, no method raises.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from memograd.errors import MemogradError
from memograd.grpo.tracking import Tracker

logger = logging.getLogger(__name__)


class Expendable:
    """Passes a run's metrics on to the tracker of a service for as long as that works."""

    def __init__(self, service: str, tracker: Tracker) -> None:
        self._service = service
        self._tracker = tracker
        self._works = True

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        """Start it.

        Raises:
            BadInput: the service is set up in a way that cannot work.
            MemogradError: it cannot start for another reason.
        """
        try:
            self._tracker.start(name, config)
        except MemogradError:
            raise
        except Exception as error:
            raise MemogradError(
                f"track={self._service} could not start ({_reason(error)}); mend it, or leave "
                f"{self._service} out of track."
            ) from error

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Pass on all numbers but `step` itself, which is every service's own horizontal axis."""
        if not self._works:
            return
        numbers = {key: value for key, value in metrics.items() if key != "step"}
        try:
            self._tracker.log(step, numbers)
        except Exception as error:
            self._works = False
            logger.warning(
                "track=%s failed (%s) and misses everything from step %d on; training goes on, and "
                "metrics.jsonl has every step.",
                *(self._service, _reason(error), step),
            )

    def finish(self) -> None:
        """Let it write down what it still holds."""
        try:
            self._tracker.finish()
        except Exception as error:
            logger.warning(
                "track=%s failed at the end (%s) and may miss the last steps; metrics.jsonl has "
                "every step.",
                *(self._service, _reason(error)),
            )


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
