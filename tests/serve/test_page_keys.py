"""Keys, the access log and the REST interface on the page."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from asked import Serving
from browsing import Browser

from memograd import serve
from memograd.serve.keys import Right

HOSTILE = "<img src=x onerror=alert(1)>\"'"


def test_a_key_is_made_used_and_revoked(serving: Serving) -> None:
    browser = Browser(serving)
    form = {"name": HOSTILE, "owner": "user:小红", "rights": ["read", "write"], "days": "30"}
    made = browser.post("/keys", **form)
    assert made.status_code == 200
    assert "<img" not in made.text
    [secret] = re.findall(r"<code>(mg-[\w-]+)</code>", made.text)
    body = {"messages": "我喜欢喝红茶。", "infer": False}
    assert serving.ask("POST", "/memories", secret, json=body).status_code == 200
    page = browser.get("/keys").text
    assert secret not in page
    assert "user:小红" in page and "read, write" in page
    assert unescape(page).count(HOSTILE) >= 2  # in the list, and in the log of what it wrote
    assert "<img" not in page
    [key] = serving.served.keys.list()
    assert browser.post(f"/keys/{key.id}/revoke").headers["hx-redirect"] == "/page/keys"
    assert serving.ask("GET", "/memories", secret).status_code == 401
    assert "revoked" in browser.get("/keys").text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"name": " ", "rights": ["read"]}, "needs a name"),
        ({"name": "phone"}, "needs rights"),
        ({"name": "phone", "rights": ["read"], "owner": "alice"}, "no owner"),
        ({"name": "phone", "rights": ["read"], "days": "-1"}, "above 0"),
        ({"name": "phone", "rights": ["read"], "days": "nan"}, "above 0"),
        ({"name": "phone", "rights": ["read"], "days": "soon"}, "above 0"),
    ],
)
def test_keys_that_cannot_be_are_refused(
    serving: Serving, form: dict[str, object], said: str
) -> None:
    answer = Browser(serving).post("/keys", **form)
    assert answer.status_code == 400
    assert said in answer.text
    assert serving.served.keys.list() == []


def test_only_an_operator_sees_keys(serving: Serving) -> None:
    for owner, rights in (("user:alice", [Right.admin]), (None, [Right.read, Right.write])):
        browser = Browser(serving, owner, rights)
        assert browser.get("/keys").status_code == 403
        assert browser.post("/keys", name="x", rights=["read"]).status_code == 403
        assert browser.post("/keys/unknown/revoke").status_code == 403
    assert Browser(serving).post("/keys/unknown/revoke").status_code == 404


def test_the_log_goes_on_page_by_page(serving: Serving) -> None:
    for _ in range(60):
        serving.ask("GET", "/users")
    browser = Browser(serving)
    first = browser.get("/keys").text
    assert first.count("<td>listed users</td>") == 50
    [older] = re.findall(r"before=(\d+)", first)
    assert browser.get("/keys", before=older).text.count("<td>listed users</td>") == 10


def test_the_log_is_told_in_the_language_of_the_page(serving: Serving) -> None:
    """Whatever is written down; what another version wrote stands as it is."""
    room = Path(serve.__file__).parent
    written = "\n".join(path.read_text(encoding="utf-8") for path in room.rglob("*.py"))
    actions = {
        *re.findall(r'_note(?:_read)?\(\s*"(\w+)"', written),
        "roll back policy",
        "roll back ranker",
    }
    assert len(actions) > 15
    for action in (*sorted(actions), "a new one"):
        serving.served.access.note(
            key_id="k", key_name="phone", via="mcp", action=action, owner=None
        )
    serving.served.access.note(key_id="k", key_name="k", via="pigeon", action="get", owner=None)
    page = Browser(serving).get("/keys", lang="zh").text
    assert "<td>搜索</td>" in page and "<td>a new one</td>" in page and "<td>pigeon</td>" in page
    assert not any(f"<td>{action}</td>" in page for action in actions)


def test_who_did_it_is_told_in_the_language_of_the_page(serving: Serving) -> None:
    """Whoever has no key that somebody named."""
    serving.ask("GET", "/users")
    for name in ("first page", "mcp over stdio", "手机"):
        serving.served.access.note(key_id="k", key_name=name, via="page", action="get", owner=None)
    browser = Browser(serving)
    browser.get("/memory")
    page = unescape(browser.get("/keys", lang="zh").text)
    assert "<td>服务器的令牌</td>" in page and "<td>标准输入上的 MCP</td>" in page
    assert "<td>手机</td>" in page
    assert not re.search(r"<td>(the server's token|first page|page|mcp over stdio)</td>", page)


def test_the_interface_is_described_without_files_of_others(serving: Serving) -> None:
    browser = Browser(serving)
    answer = serving.ask("GET", "/docs", follow_redirects=False)
    assert answer.headers["location"] == "/page/api"
    page = browser.get("/api").text
    for route in (
        "POST /memories",
        "POST /search",
        "GET /operations/feed",
        "POST /v3/memories/add/",
    ):
        assert f"<code>{route}</code>" in page
    assert "half_life_days" in page
    assert not re.search(r"(src|href)=\"(?!/|#)", page)
    assert browser.get("/api", lang="zh").status_code == 200
