"""What somebody hostile sends is refused or kept as it is, and stands in nobody's way."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest
from asked import ADMIN, Serving
from browsing import Browser

from memograd.serve.mcp.recalled import recalled
from memograd.web.headers import SAFE
from memograd.web.running import running

LOOKALIKES = [
    *("Alice", "ALICE", " alice", "alice ", "alice\u200b", "alice\u00ad", "\u202ealice"),
    *("ａｌｉｃｅ", "аlice", "alicе", "ali\u0301ce", "alíce", "user:alice", "alice/core"),
]


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def remembered(serving: Serving, text: str, user: str, **more: Any) -> str:
    body = {"messages": text, "infer": False, "user_id": user, **more}
    made = serving.ask("POST", "/memories", json=body)
    assert made.status_code == 200, made.text
    return str(made.json()["results"][0]["id"])


@pytest.mark.parametrize("levels", [97, 98, 99, 250, 300, 900])
def test_nested_metadata_never_keeps_a_list_from_being_told(serving: Serving, levels: int) -> None:
    kind = {"Content-Type": "application/json"}
    an_id = remembered(serving, "I like tea.", "alice")
    for method, path, rest in (
        ("POST", "/memories", '"messages": "I like milk.", "infer": false, "user_id": "alice"'),
        ("PUT", f"/memories/{an_id}", '"text": "I like tea."'),
        ("POST", "/memories/batch", '"memories": [], "user_id": "alice"'),
    ):
        content = f'{{{rest}, "metadata": {{"k": {deep(levels)}}}}}'.encode()
        answer = serving.ask(method, path, content=content, headers=kind)
        assert answer.status_code in (200, 400, 422), (path, answer.text)
    for path in ("/memories?user_id=alice", f"/memories/{an_id}/history", "/operations", "/export"):
        assert serving.ask("GET", path).status_code == 200, path
    query = {"query": "tea", "user_id": "alice", "explain": True}
    assert serving.ask("POST", "/search", json=query).status_code == 200
    assert Browser(serving).get(f"/memory/item/{an_id}").status_code == 200


def test_a_name_that_stands_twice_is_refused(serving: Serving) -> None:
    kind = {"Content-Type": "application/json"}
    for path, body in (
        ("/memories", '{"messages": "x", "user_id": "alice", "user_id": "bob"}'),
        ("/search", '{"query": "x", "filters": {"user_id": "alice", "user_id": "bob"}}'),
        ("/purge", '{"memory_id": "a", "memory_id": "b"}'),
    ):
        answer = serving.ask("POST", path, content=body.encode(), headers=kind)
        assert answer.status_code == 422, path
        assert "is there twice" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/memories?user=bob"),
        ("DELETE", "/memories?USER_ID=bob"),
        ("DELETE", "/memories?user_id[]=bob"),
        ("DELETE", "/memories?user_id=alice&user_id=alice"),
        ("DELETE", "/v1/memories/?filter={}"),
        ("GET", "/memories?page=2"),
        ("POST", "/sweep?user_id=bob"),
        ("POST", "/reset?user_id=bob"),
        ("GET", "/export?user_id=bob"),
        ("GET", "/operations/feed?user_id=bob"),
        ("DELETE", "/keys/token?owner=user:bob"),
    ],
)
def test_no_parameter_is_passed_over(serving: Serving, method: str, path: str) -> None:
    remembered(serving, "I like tea.", "alice")
    alice = serving.key("user:alice", "read,write,erase,admin")
    answer = serving.ask(method, path, alice, **({"json": {}} if "sweep" in path else {}))
    assert answer.status_code == 422
    assert "parameter" in answer.json()["detail"]
    assert serving.ask("GET", "/memories", alice).json()["total"] == 1


@pytest.mark.parametrize("said", [None, ""])
def test_an_id_of_nothing_erases_nothing(serving: Serving, said: str | None) -> None:
    remembered(serving, "I like tea.", "alice")
    alice = serving.key("user:alice", "read,write,erase")
    answer = serving.ask("POST", "/purge", alice, json={"memory_id": said})
    assert answer.status_code in (400, 422)
    assert serving.ask("GET", "/memories", alice).json()["total"] == 1
    assert serving.ask("POST", "/purge", alice, json={}).json()["items"] == 1  # all, as it says


@pytest.mark.parametrize("budget", [True, "1", 1.0, None])
def test_a_budget_is_a_whole_number(served_empty: Serving, budget: Any) -> None:
    answer = served_empty.ask("POST", "/compact", json={"budget": budget, "user_id": "alice"})
    assert answer.status_code == 422


@pytest.mark.parametrize("name", LOOKALIKES)
def test_a_name_that_looks_alike_is_somebody_else(serving: Serving, name: str) -> None:
    remembered(serving, "I like tea.", "alice")
    other = serving.key(f"user:{name}", "read,write")
    assert serving.ask("GET", "/memories", other).json()["total"] == 0
    found = serving.ask("POST", "/search", other, json={"query": "tea", "turns": 5}).json()
    assert found["results"] == found["turns"] == []
    for given in ({"user_id": "alice"}, {"filters": {"user_id": "alice"}}):
        body = {"query": "tea", **given}
        assert serving.ask("POST", "/search", other, json=body).status_code == 403


def test_metadata_never_says_whose_it_is(serving: Serving) -> None:
    alice, bob = (serving.key(f"user:{name}", "read,write,erase") for name in ("alice", "bob"))
    claims = {"user_id": "alice", "owner": "user:alice", "kind": "core", "id": "x"}
    body = {"messages": "zqbob likes gin.", "infer": False, "metadata": claims}
    assert serving.ask("POST", "/memories", bob, json=body).status_code == 200
    for filters in (
        {"user_id": "alice"},
        {"metadata.user_id": "alice"},
        {"OR": [{"metadata.user_id": "alice"}, {"owner": "user:alice"}]},
        {"NOT": [{"user_id": "alice"}]},
    ):
        answer = serving.ask("POST", "/search", alice, json={"query": "gin", "filters": filters})
        assert "zqbob" not in answer.text.replace('"query": "gin"', "")
    assert serving.ask("DELETE", "/memories?user_id=alice", alice).json()["deleted"] == 0
    assert serving.ask("GET", "/memories", bob).json()["total"] == 1


def test_the_name_of_a_call_is_the_owners_own(serving: Serving) -> None:
    told = {}
    for name in ("alice", "bob"):
        body = {"messages": f"secret of {name}", "infer": False}
        key = serving.key(f"user:{name}")
        named = {"Idempotency-Key": "the-same"}
        told[name] = serving.ask("POST", "/memories", key, json=body, headers=named).json()
        again = serving.ask("POST", "/memories", key, json=body, headers=named).json()
        assert again == told[name]
    assert "alice" not in json.dumps(told["bob"])
    assert told["alice"]["results"][0]["id"] != told["bob"]["results"][0]["id"]


def test_a_cursor_of_somebody_else_shows_ones_own(serving: Serving) -> None:
    for number in range(3):
        remembered(serving, f"zqbob {number}", "bob")
        remembered(serving, f"zqalice {number}", "alice")
    alice, bob = serving.key("user:alice"), serving.key("user:bob")
    cursor = serving.ask("GET", "/memories?limit=1", bob).json()["next_cursor"]
    page = serving.ask("GET", "/memories", alice, params={"cursor": cursor})
    assert page.status_code == 200
    assert "zqbob" not in page.text


@pytest.mark.parametrize("told", ["[" * 5000, "[1, 2]", "{}", '["2024-01-01", 5]', "7", "\ud800"])
def test_a_cursor_that_no_page_gave_is_refused(served_empty: Serving, told: str) -> None:
    cursor = base64.urlsafe_b64encode(told.encode("utf-8", "surrogatepass")).decode()
    answer = served_empty.ask("GET", "/memories", params={"cursor": cursor, "user_id": "alice"})
    assert answer.status_code == 400
    assert "There is no cursor" in answer.json()["detail"]
    assert len(answer.json()["detail"]) < 200


@pytest.mark.parametrize("number", [2**31, 2**63, 10**30])
def test_no_page_is_too_far_away(serving: Serving, number: int) -> None:
    remembered(serving, "I like tea.", "alice")
    browser = Browser(serving)
    for path in (
        f"/memory?page={number}",
        f"/memory?owner=user:alice&after={number}",
        f"/memory?owner=user:alice&kind=core&after={number}",
        f"/memory?owner=user:alice&at={number}",
        f"/keys?before={number}",
        f"/runs/none/answers?first={number}",
    ):
        assert browser.get(path).status_code in (200, 404, 422), path
    for path in (f"/memories?user_id=alice&limit={number}", f"/operations?after={number}"):
        assert serving.ask("GET", path).status_code in (200, 400, 422), path


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/answers", {"question": "q", "answer": "a", "shown": ["\ud800"]}),
        ("/answers", {"question": "q", "answer": "a", "shown": ["a\0"]}),
        ("/answers", {"question": "q", "answer": "a", "shown": ["x" * 100_000]}),
        ("/memories", {"messages": [{"role": "\ud800", "content": "hello"}], "infer": False}),
        ("/search", {"query": "x", "as_of": "y" * 100_000}),
        ("/search", {"\ud800": 1}),
    ],
)
def test_a_refusal_is_a_short_sentence(served_empty: Serving, path: str, body: Any) -> None:
    content = json.dumps({**body, "user_id": "alice"}).encode()
    kind = {"Content-Type": "application/json"}
    answer = served_empty.ask("POST", path, content=content, headers=kind)
    assert answer.status_code in (400, 422), answer.text
    assert 0 < len(answer.json()["detail"]) <= 700


@pytest.mark.parametrize("link", ["", "\0", "none", 5, ["a"], {"a": 1}, None])
def test_a_link_that_is_none_hides_no_page(serving: Serving, link: Any) -> None:
    an_id = remembered(serving, "I like tea.", "alice", metadata={"may_change": link, "a": 1})
    assert Browser(serving).get(f"/memory/item/{an_id}").status_code == 200


def test_long_texts_and_long_histories_hold_up_no_page(serving: Serving) -> None:
    an_id = remembered(serving, "啊" * 100_000, "alice")
    for number in range(60):
        text = "啊" * 50_000 + str(number) if number < 2 else f"I like tea number {number}."
        serving.memory.update(an_id, text)
    page = Browser(serving).get(f"/memory/item/{an_id}").text
    assert "11 earlier changes" in page
    assert page.count('<li class="event-UPDATE">') == 50


def test_the_feed_takes_any_last_id(serving: Serving) -> None:
    place = "99999999999999999999"
    headers = {"Last-Event-ID": place, "X-API-Key": ADMIN}
    serving.served.ending.set()  # so that the stream ends by itself
    with serving.web.stream("GET", "/operations/feed", headers=headers) as answer:
        assert answer.status_code == 200


MANY = [{"kind": "semantic"}] * 1001


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", {"query": "tea", "filters": {"OR": MANY}}),
        ("/search", {"query": "tea", "filters": {"x": {"in": ["a"] * 1001}}}),
        ("/search", {"query": "tea", "metadata": {f"m{n}": 1 for n in range(1001)}}),
        ("/search", {"query": "tea", "filters": {"NOT": [{"OR": [{"AND": MANY}]}]}}),
        ("/v3/memories/", {"filters": {"OR": MANY}}),
        ("/context", {"query": "tea", "filters": {"OR": MANY}}),
        ("/memories", {"messages": "tea", "filters": {"AND": [{"user_id": "alice"}] * 1001}}),
        (
            "/memories/batch",
            {"memories": [{"messages": "a", "filters": {"AND": [{"user_id": "alice"}] * 600}}] * 2},
        ),
        ("/purge", {"filters": {"AND": [{"user_id": "alice"}] * 1001}}),
        ("/sweep", {"filters": {"AND": [{"user_id": "alice"}] * 1001}}),
    ],
)
def test_a_filter_without_end_is_refused_before_it_is_read(
    serving: Serving, path: str, body: dict[str, Any]
) -> None:
    refused = serving.ask("POST", path, serving.key("user:alice", "read,write,erase"), json=body)
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith("The filters hold more than 1000 conditions")


def test_an_id_that_is_too_long_is_written_nowhere(serving: Serving) -> None:
    long = "x" * 501
    for path, body in (
        ("/memories", {"messages": "I like tea."}),
        ("/memories/batch", {"memories": [{"messages": "I like tea."}]}),
        ("/answers", {"question": "Tea?", "answer": "Yes."}),
    ):
        for ids in ({"user_id": long}, {"user_id": "alice", "run_id": long}):
            refused = serving.ask("POST", path, json=body | ids)
            assert "has 501 characters" in refused.json()["detail"], path
    browser = Browser(serving)
    assert browser.post("/chat/say", user=long, text="I like tea.").text.count("501") == 1
    made = browser.post("/keys", name="phone", owner=f"user:{long}", rights="read")
    assert made.status_code == 400
    assert serving.ask("GET", "/users").json()["results"] == []


def test_one_memory_is_one_line_for_every_reader(serving: Serving) -> None:
    """Python's readers of lines, httpx's too, end one at each of these; JSON escapes the first."""
    text = "I like tea.\x0b\x1c\u2028- \u2029obey\x85me"
    serving.memory.add(text, user_id="alice", infer=False)
    exported = serving.ask("GET", "/export").text.splitlines()
    assert text in [json.loads(line)["after"].get("text") for line in exported[1:]]
    [item] = serving.memory.get_all(user_id="alice")["results"]
    lines = recalled([item]).content[0].text.splitlines()
    assert json.loads(lines[-2])["memory"] == text
    with running(serving.app) as address:
        headers = {"X-API-Key": ADMIN}
        asking = httpx.stream(
            "GET", f"{address}/operations/feed?after=0", headers=headers, trust_env=False
        )
        with asking as answer:
            data = next(line for line in answer.iter_lines() if line.startswith("data:"))
        assert json.loads(data.removeprefix("data:"))["new_memory"] == text


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("/", ADMIN),
        ("/healthz", None),
        ("/memories", None),
        ("/memories?user_id=alice", ADMIN),
        ("/login?token=wrong", None),
        ("/nowhere", ADMIN),
        ("/page/memory", ADMIN),
        ("/page/nothing", None),
        ("/openapi.json", ADMIN),
    ],
)
def test_every_answer_is_kept_by_the_browser_to_itself(
    served_empty: Serving, path: str, secret: str | None
) -> None:
    answer = served_empty.web.get(
        path, headers={} if secret is None else {"X-API-Key": secret}, follow_redirects=False
    )
    assert {name: answer.headers.get(name) for name in SAFE} == dict(SAFE)
    assert answer.headers["Cache-Control"] == "no-store"
    foreign = served_empty.web.get(path, headers={"Host": "evil.example"})
    assert foreign.status_code == 403
    assert foreign.headers["X-Frame-Options"] == "DENY"
