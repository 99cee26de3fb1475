"""Keys, sessions and who is let in."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from asked import ADMIN, Serving
from browsing import Browser
from typer.testing import CliRunner

from memograd.cli.app import app
from memograd.errors import BadInput
from memograd.serve import keys as keys_module
from memograd.serve.database import ServeDatabase
from memograd.serve.identity import COOKIE, page_token
from memograd.serve.keys import KeyKind, Keys, Right, owner_of


def test_only_a_hash_is_kept(serving: Serving, tmp_path: Path) -> None:
    secret = serving.key("user:alice")
    folder = tmp_path / "memories"
    kept = b"".join(file.read_bytes() for file in folder.glob("serve.db*"))
    assert b"user:alice" in kept
    assert secret.encode() not in kept


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Token "},
        {"Authorization": "Basic YTpi"},
        {"X-API-Key": "wrong"},
        {"X-API-Key": "m" * 10_000},
        {"Cookie": f"{COOKIE}=wrong"},
    ],
)
def test_nobody_is_let_in_without_a_key(served_empty: Serving, headers: dict[str, str]) -> None:
    answer = served_empty.ask("GET", "/openapi.json", None, headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json() == {"detail": "Give a valid API key of this server."}


def test_the_three_headers_mean_the_same(serving: Serving) -> None:
    secret = serving.key()
    for name, value in (
        ("Authorization", f"Bearer {secret}"),
        ("Authorization", f"token {secret}"),
        ("X-API-Key", secret),
    ):
        answer = serving.ask("GET", "/openapi.json", None, headers={name: value})
        assert answer.status_code == 200, name


def test_a_revoked_key_opens_nothing_at_once(serving: Serving) -> None:
    secret = serving.key()
    assert serving.ask("GET", "/openapi.json", secret).status_code == 200
    [key] = serving.served.keys.list()
    serving.served.keys.revoke(key.id)
    assert serving.ask("GET", "/openapi.json", secret).status_code == 401


def test_a_key_that_another_process_revokes_opens_nothing_soon(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = serving.key()
    monkeypatch.setattr(keys_module, "KNOWN_SECONDS", 0.0)
    assert serving.ask("GET", "/openapi.json", secret).status_code == 200
    other = Keys(ServeDatabase.beside(serving.memory.store.settings))
    other.revoke(other.list()[0].id)
    assert serving.ask("GET", "/openapi.json", secret).status_code == 401


def test_an_expired_key_opens_nothing(serving: Serving) -> None:
    made = serving.served.keys.create("old", owner=None, rights=["read"], days=1e-12)
    assert serving.ask("GET", "/openapi.json", made.secret).status_code == 401
    assert not serving.served.keys.exist()


@pytest.mark.parametrize("days", ["0", "-1", "inf", "1e300", "nan"])
def test_a_key_lasts_for_some_days(served_empty: Serving, days: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="above 0"):
        served_empty.served.keys.create("x", owner=None, rights=["read"], days=float(days))
    command = ["serve", "keys", "create", "x", "--days", days, "--path", str(tmp_path / "other")]
    assert isinstance(CliRunner().invoke(app, command).exception, BadInput)


@pytest.mark.parametrize("rights", [[], ["reed"], ["read", ""]])
def test_unknown_rights_are_refused(served_empty: Serving, rights: list[str]) -> None:
    with pytest.raises(BadInput, match="needs rights among read, write, erase, admin"):
        served_empty.served.keys.create("x", owner=None, rights=rights)


def test_owners_are_one_id(serving: Serving) -> None:
    assert owner_of(user_id="小红") == "user:小红"
    assert owner_of() is None
    with pytest.raises(BadInput, match="one of them"):
        owner_of("alice", "planner")
    with pytest.raises(BadInput, match="no owner 'alice'"):
        serving.served.keys.create("x", owner="alice", rights=["read"])


def test_a_login_token_begins_one_session(serving: Serving) -> None:
    token = serving.served.keys.login_token(name="page", owner=None, rights=[Right.admin])
    assert serving.ask("GET", "/openapi.json", token).status_code == 401
    first = serving.ask("GET", f"/login?token={token}", None, follow_redirects=False)
    assert first.status_code == 303
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    second = serving.ask("GET", f"/login?token={token}", None, follow_redirects=False)
    assert second.status_code == 401
    assert serving.ask("GET", "/openapi.json", None).status_code == 200  # by the cookie


def test_a_change_by_cookie_needs_origin_and_the_pages_token(serving: Serving) -> None:
    token = serving.served.keys.login_token(name="page", owner=None, rights=[Right.admin])
    serving.ask("GET", f"/login?token={token}", None, follow_redirects=False)
    secret = serving.web.cookies[COOKIE]
    origin, own = {"Origin": "http://localhost"}, {"X-Memograd-Token": page_token(secret)}
    for headers in ({}, origin, own, origin | {"X-Memograd-Token": "x"}):
        assert serving.ask("POST", "/logout", None, headers=headers).status_code == 403
    foreign = {"Origin": "https://evil.example"} | own
    assert serving.ask("POST", "/logout", None, headers=foreign).status_code == 403
    assert serving.ask("POST", "/logout", None, headers=origin | own).status_code == 204
    assert serving.served.keys.list(kind=KeyKind.session)[0].revoked_at is not None


def test_a_session_is_no_api_key(serving: Serving) -> None:
    token = serving.served.keys.login_token(name="page", owner=None, rights=[Right.admin])
    serving.ask("GET", f"/login?token={token}", None, follow_redirects=False)
    secret = serving.web.cookies[COOKIE]
    serving.web.cookies.clear()
    assert serving.ask("GET", "/openapi.json", secret).status_code == 401


def test_foreign_hosts_reach_nothing(serving: Serving) -> None:
    answer = serving.ask("GET", "/healthz", ADMIN, headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert "evil.example" in answer.json()["detail"]


def test_tables_of_another_version_are_refused(serving: Serving, tmp_path: Path) -> None:
    file = tmp_path / "memories" / "serve.db"
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE serve_meta SET value = '99'")
    with pytest.raises(BadInput, match="have the format 99"):
        ServeDatabase.beside(serving.memory.store.settings)


@pytest.mark.parametrize(
    "other", ['theme={"a": 1, "b": 2}', "x=a b", "alone", "日=1", "a@b=1", 'open="', "=x"]
)
def test_cookies_of_other_programs_sign_nobody_out(serving: Serving, other: str) -> None:
    """A browser sends a host's cookies to all of its ports."""
    token = serving.served.keys.login_token(name="page", owner=None, rights=[Right.admin])
    begun = serving.served.keys.begin_session(token)
    assert begun is not None
    cookie = f"{other}; {COOKIE}={begun.secret}; last=1"
    answer = serving.ask("GET", "/users", None, headers={"Cookie": cookie.encode()})
    assert answer.status_code == 200


def test_a_browser_that_is_signed_in_is_seen_and_signed_out(serving: Serving) -> None:
    browser, other = Browser(serving), Browser(serving)
    [kept, stolen] = serving.ask("GET", "/keys").json()["sessions"]
    assert kept["kind"] == "session" and "hash" not in kept
    page = browser.get("/keys").text
    assert f"/keys/{stolen['id']}/revoke" in page and page.count("(this one)") == 1
    assert browser.post(f"/keys/{stolen['id']}/revoke").status_code == 200
    assert other.get("/keys").status_code == 401
    assert browser.get("/keys").status_code == 200
    assert [one["id"] for one in serving.ask("GET", "/keys").json()["sessions"]] == [kept["id"]]
