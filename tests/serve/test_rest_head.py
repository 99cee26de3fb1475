"""HEAD is answered as GET is, without a body and without using anything up."""

from __future__ import annotations

import httpx
import pytest
from asked import ADMIN, Serving, added

from memograd.serve.keys import Right
from memograd.web.running import running


def test_health_needs_no_key(served_empty: Serving) -> None:
    assert served_empty.ask("GET", "/healthz", None).json()["status"] == "ok"


@pytest.mark.parametrize(
    "path",
    ["/healthz", "/memories?user_id=a", "/memories/none", "/users", "/v1/ping/",
         "/openapi.json", "/nowhere", "/search", "/", "/page/memory", "/page/nowhere"],
)  # fmt: skip
def test_head_is_answered_as_get_without_a_body(served_empty: Serving, path: str) -> None:
    """As some that watch servers ask."""
    for secret in (ADMIN, None):
        get, head = (
            served_empty.ask(method, path, secret, follow_redirects=False)
            for method in ("GET", "HEAD")
        )
        assert (head.status_code, head.headers, head.content) == (
            get.status_code, get.headers, b""
        )  # fmt: skip


def test_head_ends_where_get_would_go_on(serving: Serving) -> None:
    added(serving, "I like tea.", user_id="alice")
    with running(serving.app) as address:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        with httpx.Client(base_url=address, headers=headers, trust_env=False) as client:
            for path in ("/operations/feed?after=0", "/export", "/healthz"):
                for _ in range(2):  # by the same connection
                    head = client.head(path)
                    assert (head.status_code, head.content) == (200, b"")
        assert serving.served.streams.free == serving.served.settings.limits.max_streams


def test_head_uses_no_address_up_that_opens_the_page_once(serving: Serving) -> None:
    token = serving.served.keys.login_token(name="page", owner=None, rights=[Right.admin])
    assert serving.web.head(f"/login?token={token}", follow_redirects=False).status_code == 405
    assert serving.web.get(f"/login?token={token}", follow_redirects=False).status_code == 303
