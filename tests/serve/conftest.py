"""A served memory, in the process and over a real port, keys to ask it with, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asked import ADMIN, Serving, serve

from memograd.memory import Memory
from memograd.serve.app import create_app
from memograd.serve.served import Served, ServeSettings
from memograd.web.running import running


@pytest.fixture
def open_memory(tmp_path: Path, trigrams: Any) -> Iterator[Callable[..., Memory]]:
    """Opens memories with a fast embedder; in the test's folder unless told otherwise."""
    opened: list[Memory] = []

    def opening(path: Path | None = None, **given: Any) -> Memory:
        given.setdefault("ranking", "fusion")
        opened.append(Memory.open(path or tmp_path / "memories", embedder=trigrams(), **given))
        return opened[-1]

    yield opening
    for memory in opened:
        memory.close()


@pytest.fixture
def make_serving(open_memory: Callable[..., Memory]) -> Iterator[Callable[..., Serving]]:
    """Serves a memory in the process, as loopback."""
    made: list[Serving] = []

    def make(memory: Memory | None = None, **settings: Any) -> Serving:
        made.append(serve(memory or open_memory(), **settings))
        return made[-1]

    yield make
    for serving in made:
        serving.served.close()


@pytest.fixture(scope="module")
def served_empty(tmp_path_factory: pytest.TempPathFactory, trigrams: Any) -> Iterator[Serving]:
    """A served memory in which a module's tests write nothing."""
    folder = tmp_path_factory.mktemp("empty")
    with Memory.open(folder, embedder=trigrams(), ranking="fusion") as memory:
        serving = serve(memory)
        yield serving
        serving.served.close()


@pytest.fixture
def serving(make_serving: Callable[..., Serving]) -> Serving:
    """A served empty memory."""
    return make_serving()


@pytest.fixture
def served(open_memory: Callable[..., Memory]) -> Iterator[tuple[str, Served]]:
    """Where a server over a real port takes MCP, and what it serves."""
    app = create_app(open_memory(), ServeSettings(token=ADMIN))
    with running(app) as address:
        yield f"{address}/mcp", app.state.served


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A Chromium that was started once."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--no-proxy-server"]
        )
        yield browser
        browser.close()
