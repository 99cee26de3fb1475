"""When a memory ends by itself: what the application gives as `expiration_date`, as one moment.

A date counts to its end, in UTC, as in mem0; a time of day is that very moment. From then on the
item is hidden, until it is swept. Invariant: a date survives the way to the moment and back.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from memograd.errors import BadInput

_DAY: Final = timedelta(days=1)


def to_expiry(value: object) -> datetime | None:
    """The moment, in UTC, from which on it is hidden; None for None, which is never.

    value: a date, a datetime (UTC where it names no zone), or either as an ISO 8601 text. Raises
    BadInput for anything else.
    """
    if value is None:
        return None
    try:
        day = _day(value)
        if day is not None:
            return datetime.combine(day, time(), UTC) + _DAY
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime):
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadInput(
        f"expiration_date is {value!r}: give a date such as 2030-12-31, the last day on which it is"
        " shown, or a time such as 2030-12-31T18:30:00."
    )


def expiry_result(moment: datetime | None) -> str | None:
    """As the application gave it: the last day for midnight, else the time."""
    if moment is None:
        return None
    whole = moment.time() == time()
    return (moment - _DAY).date().isoformat() if whole else moment.isoformat()


def _day(value: object) -> date | None:
    """The date, None where a time of day is given, or none at all."""
    if isinstance(value, datetime) or not isinstance(value, date | str):
        return None
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None
