"""A memory that is served, in the process and over a real port, and keys to ask it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asked import ADMIN, Serving
from fastapi.testclient import TestClient

from memograd.memory import Memory
from memograd.serve.app import create_app
from memograd.serve.served import ServeSettings


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
        made.append(_serving(memory or open_memory(), **{"token": ADMIN, **settings}))
        return made[-1]

    yield make
    for serving in made:
        serving.served.close()


def _serving(memory: Memory, **settings: Any) -> Serving:
    """Not entered: what runs as long as the application does, `running` or `with web` begins."""
    app = create_app(memory, ServeSettings(**settings))
    return Serving(memory, app, TestClient(app, base_url="http://localhost"))


@pytest.fixture(scope="module")
def served_empty(tmp_path_factory: pytest.TempPathFactory, trigrams: Any) -> Iterator[Serving]:
    """A served memory in which a module's tests write nothing."""
    folder = tmp_path_factory.mktemp("empty")
    with Memory.open(folder, embedder=trigrams(), ranking="fusion") as memory:
        serving = _serving(memory, token=ADMIN)
        yield serving
        serving.served.close()


@pytest.fixture
def serving(make_serving: Callable[..., Serving]) -> Serving:
    """A served empty memory."""
    return make_serving()
