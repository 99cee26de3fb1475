from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
import sqlalchemy

from memograd.memory.journal import Journal


class TrigramEmbedder:
    """Character trigrams hashed into a unit vector: fast, deterministic, for any script."""

    def __init__(self, dimension: int = 32, name: str = "trigram") -> None:
        self.name = name
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text} "
            for start in range(len(padded) - 2):
                digest = hashlib.md5(padded[start : start + 3].encode()).digest()
                vectors[row, digest[0] % self.dimension] += 1.0
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed(texts)


@pytest.fixture(scope="session")
def trigrams() -> type[TrigramEmbedder]:
    return TrigramEmbedder


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
