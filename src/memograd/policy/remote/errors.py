"""How a sampling server can fail: by being gone, by refusing, or so that the run must end."""

from __future__ import annotations

from memograd.errors import MemogradError


class SamplingFailed(MemogradError):
    """No server could do the work; nothing was learnt from the step, and the run can go on."""


class ServerGone(MemogradError):
    """One server cannot be reached, broke off, or took too long; another one may do the work."""


class ServerRefused(MemogradError):
    """One server answered that it will not do it; `status` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
