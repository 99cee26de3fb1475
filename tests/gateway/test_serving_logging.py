"""A gateway inside a training run leaves the process's logging as it is."""

from __future__ import annotations

import logging

from fastapi import FastAPI

from memograd.web.running import running


def test_handlers_of_the_process_stay_open() -> None:
    closed: list[str] = []

    class Handler(logging.Handler):
        def close(self) -> None:
            closed.append("closed")
            super().close()

    handler = Handler()
    with running(FastAPI()) as url:
        assert url.startswith("http://127.0.0.1:")
    assert closed == []
    handler.close()
