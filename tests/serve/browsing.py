"""What the tests of the page share: a signed-in session, in the process or in a real browser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx
from asked import Serving
from fastapi.testclient import TestClient

from memograd.serve.identity import COOKIE, page_token
from memograd.serve.keys import Right
from memograd.serve.session import login_path


class Browser:
    """One signed-in session of the page."""

    def __init__(
        self, serving: Serving, owner: str | None = None, rights: Iterable[Right] = (Right.admin,)
    ) -> None:
        self.web = TestClient(serving.app, base_url="http://localhost")
        token = serving.served.keys.login_token(name="page", owner=owner, rights=rights)
        assert self.web.get(f"/login?token={token}", follow_redirects=False).status_code == 303

    def get(self, path: str, **query: Any) -> httpx.Response:
        """One page."""
        return self.web.get(f"/page{path}", params=query or None)

    def post(self, path: str, **form: Any) -> httpx.Response:
        """A change, as htmx sends it."""
        headers = {
            "Origin": "http://localhost",
            "X-Memograd-Token": page_token(self.web.cookies[COOKIE]),
            "HX-Request": "true",
        }
        return self.web.post(f"/page{path}", data=form, headers=headers)


def entered(chromium: Any, serving: Serving, address: str, **given: Any) -> Any:
    """A signed-in tab."""
    page = chromium.new_page(**given)
    token = serving.served.keys.login_token(name="page", owner=None, rights=[Right.admin])
    page.goto(address + login_path(token))
    return page
