from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy

from memograd.memory.journal import Journal


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a journal can be made: SQLite and, if MEMOGRAD_TEST_POSTGRES names one, PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/journal.db"
        return
    server = os.environ.get("MEMOGRAD_TEST_POSTGRES")
    if not server:
        pytest.skip("MEMOGRAD_TEST_POSTGRES names no PostgreSQL database to test with")
    schema = f"test_{uuid4().hex}"
    engine = sqlalchemy.create_engine(server)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
    own = sqlalchemy.make_url(server).update_query_dict({"options": f"-csearch_path={schema}"})
    yield own.render_as_string(hide_password=False)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
    engine.dispose()


@pytest.fixture
def journal(url: str) -> Iterator[Journal]:
    with Journal.open(url) as journal:
        yield journal
