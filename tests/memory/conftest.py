from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memograd.memory.journal import Journal


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a journal can be made: SQLite and PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/journal.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def journal(url: str) -> Iterator[Journal]:
    with Journal.open(url) as journal:
        yield journal
