"""Small life logs with the vectors of a fast embedder, for the tests of memory operations."""

from __future__ import annotations

import pytest

from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs


@pytest.fixture(scope="session")
def small_logs() -> list[Lifelog]:
    english = LifelogSettings(sessions=4, statements_per_session=7)
    chinese = LifelogSettings(language="zh", sessions=3, statements_per_session=7)
    return [*generate_lifelogs(2, 7, english), *generate_lifelogs(1, 7, chinese)]


@pytest.fixture(scope="session")
def embedded(small_logs: list[Lifelog], trigrams) -> list[EmbeddedLog]:
    return embed_logs(small_logs, trigrams(dimension=64))
