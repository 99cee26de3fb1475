"""Stopping a run between two steps when SIGTERM or SIGINT (Ctrl-C) asks for it.

The first signal is only noted: the trainer finishes its step, writes a checkpoint and ends. From
then on the signals do again what they did before, so that a second one ends the process at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_NOTICE = b"\nmemograd: finishing this step, then saving; a second signal ends at once\n"


class StopRequest:
    """Whether a signal has asked to stop: its number in `signal`, or none."""

    def __init__(self) -> None:
        self.signal: int | None = None


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Notes the first SIGTERM or SIGINT within it; a signal that the process ignores stays ignored.

    Outside the main thread, where Python takes no signals, nothing is ever noted.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def give_back() -> None:
        for number, handler in before.items():
            # None: a handler that was not installed from Python and cannot be put back by it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def note(number: int, _frame: FrameType | None) -> None:
        request.signal = number
        give_back()
        with suppress(OSError):  # nobody may be reading any more
            os.write(2, _NOTICE)

    for number in SIGNALS:
        if before[number] != signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield request
    finally:
        give_back()
