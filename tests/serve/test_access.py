"""The access log lets go of what is older than it is kept, and of nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from asked import Serving
from browsing import Browser
from sqlalchemy import update

from memograd.errors import BadInput, MemogradError
from memograd.memory import Memory
from memograd.serve import access as access_module
from memograd.serve.access import AccessLog
from memograd.serve.database import ACCESS, ServeDatabase
from memograd.serve.starting import settle

DAY = 86_400_000_000


@pytest.fixture
def database(open_memory: Callable[..., Memory]) -> Iterator[ServeDatabase]:
    database = ServeDatabase.beside(open_memory().store.settings)
    yield database
    database.close()


def noted(log: AccessLog, count: int, owner: str = "user:alice") -> None:
    for number in range(count):
        log.note(
            key_id="k", key_name="phone", via="rest", action="get", owner=owner, items=[str(number)]
        )
    log.flush()


def aged(database: ServeDatabase, days: float, *, until: int) -> None:
    """Make the lines up to one look as if they had been written so many days ago."""
    older = update(ACCESS).where(ACCESS.c.seq <= until).values(at=ACCESS.c.at - int(days * DAY))
    with database.writing() as connection:
        connection.execute(older)


def kept(log: AccessLog) -> list[str]:
    return [line.items[0] for line in log.read(owner=None, before=None, limit=100)]


def test_only_what_is_older_than_it_is_kept_goes(database: ServeDatabase) -> None:
    log = AccessLog(database, days=30)
    noted(log, 6)
    aged(database, 29.9, until=6)
    assert log.sweep() == 0
    aged(database, 0.2, until=4)
    assert log.sweep() == 4
    assert kept(log) == ["5", "4"]
    page = log.read(owner="user:alice", before=6, limit=5)
    assert [line.items for line in page] == [["4"]]
    log.close()


def test_a_log_that_is_kept_for_ever_loses_nothing(database: ServeDatabase) -> None:
    log = AccessLog(database, days=0)
    noted(log, 3)
    aged(database, 20_000, until=3)
    assert log.sweep() == 0
    assert kept(log) == ["2", "1", "0"]
    log.close()


def test_a_line_before_its_time_keeps_those_behind_it(database: ServeDatabase) -> None:
    """Clocks of several machines differ: a line goes late rather than early."""
    log = AccessLog(database, days=30)
    noted(log, 3)
    aged(database, 40, until=3)
    aged(database, -40, until=1)
    assert log.sweep() == 0
    log.close()


def test_a_sweep_takes_a_bounded_number_at_a_time(
    database: ServeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "_OLDEST", access_module._OLDEST.limit(4))
    log = AccessLog(database, days=1)
    noted(log, 10)
    aged(database, 2, until=9)
    assert [log.sweep() for _ in range(4)] == [4, 4, 1, 0]
    assert kept(log) == ["9"]
    log.close()


def test_old_lines_go_while_the_server_runs(
    database: ServeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, a piece after each writing, and those that come later an hour later."""
    monkeypatch.setattr(access_module, "FLUSH_SECONDS", 0.005)
    monkeypatch.setattr(access_module, "SWEPT_LINES", 4)
    monkeypatch.setattr(access_module, "_OLDEST", access_module._OLDEST.limit(4))
    before = AccessLog(database, days=0)
    noted(before, 11)
    aged(database, 2, until=10)
    before.close()
    log = AccessLog(database, days=1)
    while len(kept(log)) > 1:
        time.sleep(0.005)
    assert kept(log) == ["10"]
    assert log._sweep_at > time.monotonic() + 1000
    log.close()


def test_a_sweep_that_fails_is_told_and_lines_are_written_on(
    database: ServeDatabase, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(access_module, "FLUSH_SECONDS", 0.005)

    def fails(self: AccessLog) -> int:
        raise MemogradError("the disk is full.")

    monkeypatch.setattr(AccessLog, "sweep", fails)
    log = AccessLog(database, days=1)
    while "stay for now: the disk is full." not in caplog.text:
        time.sleep(0.005)
    noted(log, 1)
    assert kept(log) == ["0"]
    log.close()


@pytest.mark.parametrize("days", [-1.0, float("nan"), float("inf"), 1e6])
def test_days_that_cannot_be_are_refused(open_memory: Callable[..., Memory], days: float) -> None:
    settings = open_memory().store.settings
    with pytest.raises(BadInput, match="cannot be kept for"):
        settle(
            settings,
            "127.0.0.1",
            token=None,
            allowed=(),
            runs=settings.path,
            access_days=days,
        )


def test_the_page_says_how_long_lines_are_kept(make_serving: Callable[..., Serving]) -> None:
    browser = Browser(make_serving(access_days=7))
    assert "Lines are kept for 7 days." in browser.get("/keys").text
    assert "记录保留 7 天" in browser.get("/keys?lang=zh").text
    assert "记录永久保留" in Browser(make_serving(access_days=0)).get("/keys?lang=zh").text


def test_everybody_finds_who_read_of_them_among_others(serving: Serving) -> None:
    both = {"OR": [{"user_id": "alice"}, {"user_id": "bob"}]}
    for name in ("alice", "bob"):
        serving.memory.add(f"I like tea, says {name}.", user_id=name, infer=False)
    for path, more in (("/search", {}), ("/context", {}), ("/v3/memories/", None)):
        body = {"filters": both} if more is None else {"query": "tea", "filters": both}
        assert serving.ask("POST", path, json=body).status_code == 200
    serving.ask("GET", "/memories")
    serving.ask("GET", "/operations")
    serving.ask("POST", "/search", json={"query": "tea", "filters": both | {"kind": "core"}})
    for name in ("alice", "bob"):
        [item] = serving.memory.get_all(user_id=name)["results"]
        lines = serving.ask("GET", "/access", serving.key(f"user:{name}")).json()["results"]
        found = [(line["action"], line["key_id"], line["items"]) for line in lines]
        done = ["operations", "list", "list", "context", "search"]
        assert found == [(action, "token", [item["id"]]) for action in done]
