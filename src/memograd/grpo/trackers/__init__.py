"""The services that a run can also send its metrics to, opened by `open_trackers`.

Invariant: a service gets the run's settings and the numbers of `metrics.jsonl`, no more; nothing
leaves the machine unless the user has set the service up for it; and no service can end a run that
has begun. Importing this loads none of the services.
"""

from memograd.grpo.trackers.opening import check_trackers, open_trackers

__all__ = ["check_trackers", "open_trackers"]
