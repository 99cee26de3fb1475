"""Trackers: where else a run's metrics go, besides `metrics.jsonl`, which is always written.

A tracker is any object with the three methods of `Tracker`; an experiment service needs about ten
lines, and those named in the setting `track` are in `memograd.grpo.trackers`. The trainer calls it
with plain numbers under flat names. What a tracker raises stops the run, which can be resumed:
metrics that were promised are not dropped in silence. (The trackers of `track` raise nothing after
`start`: they warn.) After a resume a tracker may hear steps again that were measured before the
kill but after the checkpoint.

Invariant: a tracker hears the numbers of `metrics.jsonl`, step by step, and `finish` however the
run ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol


class Tracker(Protocol):
    """Takes a run's metrics as they arise."""

    def start(self, name: str, config: Mapping[str, Any]) -> None:
        """The run of that name begins or goes on; `config` are its settings as plain JSON."""
        ...

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """What `step` (from 1) measured, by flat names such as `rewards/locomo_f1`."""
        ...

    def finish(self) -> None:
        """The run ends, well or not."""
        ...


@contextmanager
def tracked(trackers: Sequence[Tracker], name: str, config: Mapping[str, Any]) -> Iterator[None]:
    """Starts the trackers, and finishes those that were started."""
    with ExitStack() as started:
        for tracker in trackers:
            tracker.start(name, config)
            started.callback(tracker.finish)
        yield


def flat_metrics(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of a line of metrics, those of inner mappings as `outer/inner`; no nulls."""
    flat: dict[str, float] = {}
    for key, value in metrics.items():
        if isinstance(value, Mapping):
            flat |= flat_metrics(value, f"{prefix}{key}/")
        elif isinstance(value, int | float):
            flat[prefix + key] = float(value)
    return flat
