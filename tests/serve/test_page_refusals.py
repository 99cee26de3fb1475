"""Refusals on the page: every sentence that a reader can meet is in the language of the page."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from asked import Serving
from browsing import Browser
from fastapi.testclient import TestClient
from run_folders import example_runs

import memograd
from memograd.memory import Memory
from memograd.serve import refusals
from memograd.serve.keys import Right
from memograd.serve.page.texts import recognised
from memograd.serve.served import ServeLimits

# Where the sentences come from that the page shows, apart from those of `openai_endpoint` below.
SOURCES = (
    "serve/identity.py", "serve/keys.py", "serve/limits.py", "serve/owned_memory.py",
    "serve/session.py", "serve/wall.py", "serve/page/*.py", "memory/records/scope.py",
    "memory/records/versions.py", "memory/manager/trained/files.py",
    "memory/search/ranker/files.py", "memory/search/ranker/trained.py",
    "memory/chat/chat_model.py", "memory/embedders/openai_model.py",
    "evaluation/run_log.py", "evaluation/run_log.py",
)  # fmt: skip

# What is said there to others than readers of the page.
ELSEWHERE = (
    "There is no id ",  # a mistake of ours
    "There is no compaction ", "There is no answer with the id ",  # REST alone
    "A key of an agent or a run purges one memory",
    "A key opens the memory of one user, one agent or one run",  # the command line
    "There is no key ",  # the page has a sentence of its own
    "X must be a text, not ", "A memory needs an owner",  # a form has texts alone, and owners
    "The text X in X is not valid Unicode", "The text X is not valid Unicode",  # UTF-8 has none
    "X has no rollouts of step X",  # steps are looked up before
    "Entry X of X needs a number",  # plots
    "The chat model needs a name",  # at the start
    "The page's text X needs exactly",  # a mistake of ours
    "X answered something that is not X embeddings",  # told as 503
    # Put together of parts, and looked at below.
    "This key may not do that: it needs the right X.", "The server answers as many X",
    "This key holds as many X", "X.",
)  # fmt: skip


def raised() -> Iterator[tuple[str, str]]:
    """The sentences of exceptions in those files, X where a value stands, and where they are."""
    package = Path(memograd.__file__).parent
    names = {name for name, one in vars(refusals).items() if isinstance(one, type)}
    names |= {"BadInput", "MemogradError", "Unfinished", "PageRefused", "_failure"}
    for source in SOURCES:
        files = sorted(package.glob(source))
        assert files, source
        for file in files:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                called = node.func
                name = (
                    called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                )
                said = sentence(node.args[0]) if name in names else None
                if said is not None:
                    prefix = "The chat model X at X " if name == "_failure" else ""
                    end = "." if name == "_failure" else ""
                    yield f"{prefix}{said}{end}", f"{file.name}:{node.lineno}"


def sentence(node: ast.expr) -> str | None:
    """A literal text; None where it is made elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
        )
    return None


def test_every_sentence_that_is_raised_is_known_to_the_page() -> None:
    found = list(raised())
    assert len(found) > 60
    unknown = [
        f"{where}: {said}"
        for said, where in found
        if recognised(said)[0] == "other" and not said.startswith(ELSEWHERE)
    ]
    assert not unknown
    assert [one for one in ELSEWHERE if not any(said.startswith(one) for said, _ in found)] == []


@pytest.mark.parametrize(
    "said",
    [
        refusals.Unauthorised().detail,
        refusals.Unavailable().detail,
        refusals.HalfErased().detail,
        *(f"This key may not do that: it needs the right {right.value!r}." for right in Right),
        "The server answers as many calls as it may: try again.",
        "This key holds as many calls as one key may: try again.",
        "The request did not arrive within 30 s.",
        "http://x could not embed texts with the model 'm' (HTTP 404: no\nno): check the request.",
        "http://x refused the key when asked to embed texts with the model 'm' (HTTP 401): check"
        " OPENAI_API_KEY.",
    ],
)
def test_sentences_that_are_put_together_are_known_too(said: str) -> None:
    assert recognised(said)[0] != "other"


def test_a_refusal_that_quotes_a_lot_is_cut_before_it_is_recognised(serving: Serving) -> None:
    answer = Browser(serving).post("/keys", name="phone", rights="a: 'b', " * 5000)
    assert answer.status_code == 400
    assert len(answer.text) < 2000


def test_what_nobody_translated_is_shown_as_it_is_and_named(
    make_serving: Any, tmp_path: Path
) -> None:
    """What ended a run is any exception's words."""
    folder = example_runs(tmp_path)
    (folder / "good" / "state.json").write_text('{"state": "stopped", "reason": "Odd: {x} <b>"}')
    browser = Browser(make_serving(runs=folder))
    assert "原文（英文）：Odd: {x} &lt;b&gt;" in browser.get("/runs/good", lang="zh").text
    page = browser.get("/runs/good", lang="en").text
    assert ">Odd: {x} &lt;b&gt;<" in page


# What a reader meets


def sentence_of(answer: httpx.Response) -> str:
    """The refusal that a page or a notice tells."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8", answer.text
    found = re.findall(r'<p (?:id="refusal"|class="lead")>(.*?)</p>', answer.text, re.S)
    assert len(found) == 1, answer.text
    return unescape(found[0])


def refused(answer: httpx.Response, status: int) -> str:
    """The sentence of a refusal in Chinese."""
    assert answer.status_code == status, answer.text
    said = sentence_of(answer)
    assert re.search(r"[一-鿿]{2}", said) and "原文" not in said, said
    return said


def chinese(serving: Serving, *given: Any) -> Browser:
    browser = Browser(serving, *given)
    browser.get("/memory", lang="zh")
    return browser


@pytest.fixture
def kept(serving: Serving) -> str:
    made = serving.memory.add("I live in Boston.", user_id="alice", infer=False)
    return str(made["results"][0]["id"])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/memory?owner=nobody", 400),
        ("/memory?owner=user:", 400),
        ("/memory?owner=user:%00", 400),
        ("/memory?owner=user:alice&kind=x", 400),
        ("/memory?owner=user:alice&at=x", 422),
        ("/memory?owner=user:alice&after=-1", 422),
        ("/memory/item/none", 404),
        ("/memory/item/%00", 404),
        ("/runs/none", 404),
        ("/runs/curves", 422),
        ("/runs?run=none", 404),
        ("/traces?state=x", 400),
        ("/traces/none", 404),
        ("/chat?user=%20", 400),
    ],
)
def test_what_is_looked_for_and_is_not_there(
    serving: Serving, kept: str, path: str, status: int
) -> None:
    refused(chinese(serving).web.get(f"/page{path}"), status)


def test_what_is_wrong_with_a_run(make_serving: Any, tmp_path: Path) -> None:
    folder = example_runs(tmp_path)
    (folder / "good" / "rollouts" / "step-0002.jsonl").write_text("no\n")
    (folder / "broken" / "answers.jsonl").write_text("no\n")
    browser = chinese(make_serving(runs=folder))
    assert "第 9 步" in refused(browser.get("/runs/good/steps/9"), 404)
    assert "第 1 行" in refused(browser.get("/runs/good/steps/2"), 400)
    assert "broken" in refused(browser.get("/runs/broken/answers"), 400)
    assert "不是 JSON" in browser.get("/runs/broken").text
    refused(browser.get("/runs/good/steps/x"), 422)


@pytest.mark.parametrize(
    ("change", "form", "status"),
    [
        ("/memory/item/{kept}/edit", {}, 422),
        ("/memory/item/{kept}/edit", {"text": "  "}, 400),
        ("/memory/item/none/edit", {"text": "x"}, 404),
        ("/memory/item/none/forget", {}, 404),
        ("/memory/item/{kept}/purge", {}, 400),
        ("/memory/item/none/purge", {"confirm": "erase"}, 404),
        ("/chat/say", {"user": "alice", "text": " "}, 400),
        ("/chat/say", {"user": " ", "text": "x"}, 400),
        ("/keys", {"name": " ", "rights": "read"}, 400),
        ("/keys", {"name": "x"}, 400),
        ("/keys", {"name": "x", "rights": "read", "owner": "bob"}, 400),
        ("/keys", {"name": "x", "rights": "read", "days": "-1"}, 400),
        ("/keys/none/revoke", {}, 404),
        ("/versions/policy/rollback", {"current": "x"}, 404),
        ("/nothing", {}, 404),
    ],
)
def test_what_cannot_be_changed_like_this(
    serving: Serving, kept: str, change: str, form: dict[str, str], status: int
) -> None:
    refused(chinese(serving).post(change.format(kept=kept), **form), status)


def test_who_may_not(serving: Serving, kept: str) -> None:
    reads = chinese(serving, "user:alice", [Right.read])
    assert "写入" in refused(reads.post(f"/memory/item/{kept}/edit", text="x"), 403)
    assert "永久删除" in refused(reads.post(f"/memory/item/{kept}/purge", confirm="erase"), 403)
    assert "写入" in refused(reads.post("/chat/say", user="alice", text="x"), 403)
    assert "读取" in refused(chinese(serving, "user:alice", [Right.write]).get("/memory"), 403)
    for path in ("/runs", "/traces", "/versions", "/keys"):
        assert "全部权限" in refused(reads.get(path), 403)
    for path in ("/memory?owner=user:bob", "/chat?user=bob"):
        assert "另一个人" in refused(reads.web.get(f"/page{path}"), 403)
    assert "智能体" in refused(chinese(serving, "agent:planner").get("/chat"), 400)
    changed = reads.web.post(f"/page/memory/item/{kept}/edit", data={"text": "x"})
    assert "重新加载" in refused(changed, 403)


def test_what_stands_before_the_page(make_serving: Any, kept: str, serving: Serving) -> None:
    """Told in JSON to programs."""
    browser = chinese(serving)
    signed_out = TestClient(serving.app, base_url="http://localhost")
    for headers in ({}, {"HX-Request": "true"}):
        asking = {"Accept-Language": "zh-CN", **headers}
        form = {"text": "x"}
        answer = signed_out.post(f"/page/memory/item/{kept}/edit", data=form, headers=asking)
        assert "尚未登录" in refused(answer, 401)
    assert answer.headers["hx-retarget"] == "#notice"
    assert "evil.example" in refused(
        browser.web.get("/page/memory", headers={"Host": "evil.example"}), 403
    )
    foreign = {"Origin": "http://evil.example"}
    assert "evil.example" in refused(browser.web.get("/page/memory", headers=foreign), 403)
    limits = ServeLimits(max_body=1000)
    small = chinese(make_serving(serving.memory, limits=limits))
    assert "1000" in refused(small.post("/chat/say", user="alice", text="x" * 2000), 413)
    reader = {"Accept": "text/html", "Accept-Language": "zh"}
    for query in ("?token=none", ""):
        answer = signed_out.get(f"/login{query}", headers=reader)
        assert "Boston" not in answer.text
        assert refused(answer, 401 if query else 422)
    assert signed_out.get("/login?token=none").json()["detail"].startswith("This address")


def test_who_asks_too_often_and_what_is_busy(make_serving: Any) -> None:
    serving = make_serving(limits=ServeLimits(calls_per_minute=2))
    browser = chinese(serving)
    browser.get("/memory")
    answer = browser.get("/memory")
    assert "30 秒" in refused(answer, 429)
    assert answer.headers["retry-after"] == "30"
    busy = make_serving(serving.memory)
    browser = chinese(busy)
    busy.served.places.free = 0
    refused(browser.get("/memory"), 429)


def test_a_memory_that_cannot_be_reached(serving: Serving, kept: str) -> None:
    browser = chinese(serving)
    serving.memory.store.journal.close()
    refused(browser.get("/memory", owner="user:alice"), 503)
    assert "重试" in browser.post("/chat/say", user="alice", text="x").text


def test_a_mistake_of_ours(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = chinese(serving)
    monkeypatch.setattr(serving.served, "memory", None)
    browser.web = TestClient(
        serving.app,
        base_url="http://localhost",
        raise_server_exceptions=False,
        cookies=browser.web.cookies,
    )
    answer = browser.get("/memory")
    refused(answer, 500)
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_what_is_erased_but_for_old_bytes_is_not_said_to_be_unchanged(
    make_serving: Any, open_memory: Callable[..., Memory], tmp_path: Path
) -> None:
    """Somebody else reads in the file for longer than a purge waits."""
    url = f"sqlite:///{tmp_path}/held.db?timeout=0.1"
    serving = make_serving(open_memory(journal_url=url))
    ids = []
    for text in ("I live in Boston.", "I love jazz."):
        ids.append(serving.memory.add(text, user_id="alice", infer=False)["results"][0]["id"])
    holding = sqlite3.connect(tmp_path / "held.db", isolation_level=None)
    holding.execute("BEGIN")
    holding.execute("SELECT count(*) FROM events").fetchone()
    over_rest = serving.ask("POST", "/purge", json={"memory_id": ids[0]})
    on_page = chinese(serving).post(f"/memory/item/{ids[1]}/purge", confirm="erase")
    holding.close()
    assert over_rest.status_code == 500
    assert over_rest.json()["detail"].startswith("It is erased and found no more")
    assert str(tmp_path) not in over_rest.text
    assert "retry-after" not in over_rest.headers
    assert "旧的字节" in refused(on_page, 500)
    assert serving.memory.get_all(user_id="alice")["results"] == []
    noted = serving.ask("GET", "/access").json()["results"]
    assert [one["items"] for one in noted if one["action"] == "purge"] == [[ids[1]], [ids[0]]]
