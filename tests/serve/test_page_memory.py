"""The memory browser: lists, searching with reasons, the past, history, editing and erasing."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from asked import ADMIN, Serving
from browsing import Browser

from memograd.serve.keys import Right
from memograd.serve.page.page_memory import PageMemory
from memograd.serve.page.texts import difference
from memograd.serve.page.why import explained

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \"'{{ 7 }}"


def texts(page: str) -> list[str]:
    """The items of a list, as the reader sees them."""
    return [unescape(text) for text in re.findall(r'<a class="text"[^>]*>([^<]*)</a>', page)]


def remember(serving: Serving, *said: str, user_id: str = "alice", **given: Any) -> list[str]:
    """Keep some sentences word for word; returns their ids."""
    ids = []
    for text in said:
        result = serving.memory.add(text, user_id=user_id, infer=False, **given)
        ids += [one["id"] for one in result["results"]]
    return ids


def test_owners_with_counts(serving: Serving) -> None:
    remember(serving, "I live in Boston.", "I love jazz.")
    remember(serving, "我住在北京。", user_id="小红")
    browser = Browser(serving)
    page = browser.get("/memory").text
    assert "2 learnt" in page
    assert "小红" in page
    found = browser.get("/memory", find="小").text
    assert "小红" in found
    assert "alice" not in found


def test_who_was_purged_is_listed_no_more(serving: Serving) -> None:
    [one] = remember(serving, "I live in Boston.")
    remember(serving, "我住在北京。", user_id="小红")
    browser = Browser(serving)
    assert serving.ask("POST", "/purge", json={"memory_id": one}).status_code == 200
    page = browser.get("/memory").text
    assert "alice" not in page and "小红" in page
    serving.ask("POST", "/purge", json={"user_id": "小红"})
    page = browser.get("/memory").text
    assert "alice" not in page and "小红" not in page
    assert "Nobody yet" in page
    remember(serving, "我住在上海。", user_id="小红")
    page = browser.get("/memory").text
    assert "alice" not in page and "小红" in page


def test_a_list_is_paged_newest_first(serving: Serving) -> None:
    remember(serving, *(f"Fact number {number}." for number in range(45)))
    browser = Browser(serving)
    first = browser.get("/memory", owner="user:alice").text
    assert texts(first)[0] == "Fact number 44."
    assert len(texts(first)) == 30
    [older] = re.findall(r'href="([^"]*after=30[^"]*)"', first)
    second = browser.web.get(unescape(older)).text
    assert texts(second) == [f"Fact number {number}." for number in range(14, -1, -1)]


def test_kinds_are_counted_and_chosen(serving: Serving) -> None:
    remember(serving, "Call me Al.", kind="core")
    remember(serving, "I love jazz.", "I love tea.")
    page = Browser(serving).get("/memory", owner="user:alice", kind="core").text
    assert texts(page) == ["Call me Al."]
    assert re.search(r"fact <b class=\"figure\" id=\"count-semantic\">2</b>", page)
    assert Browser(serving).get("/memory", owner="user:alice", kind="x").status_code == 400


def test_a_search_says_why(serving: Serving) -> None:
    remember(serving, "I live in Boston.", "I love jazz.", "我喜欢喝绿茶。")
    browser = Browser(serving)
    page = browser.get("/memory", owner="user:alice", q="live in Boston").text
    assert texts(page)[0] == "I live in Boston."
    assert page.count('class="bar"') == 3 * 4
    assert "Words in common: live, boston" in page
    chinese = browser.get("/memory", owner="user:alice", q="绿茶", lang="zh").text
    assert texts(chinese)[0] == "我喜欢喝绿茶。"
    assert "共同的词：" in chinese


def test_bars_are_what_the_search_said() -> None:
    def hit(similarity: float, words: float, learned: float, adds: float) -> dict[str, Any]:
        reasons = [{"what": "the date in the question", "adds": adds}]
        return {
            "explain": {
                "similarity": similarity,
                "lexical_score": words,
                "probability": learned,
                "matched": ["tea"],
                "reasons": reasons,
                "recency": 1.0,
            }
        }

    first, second = explained([hit(0.9, 2.0, 0.8, 1.5), hit(0.8, 0.0, 0.1, -0.5)])
    assert [(bar.name, round(bar.share, 2), bar.value) for bar in first.bars] == [
        ("meaning", 1.0, 0.9),
        ("words", 1.0, 2.0),
        ("time", 1.0, 1.5),
        ("learned", 0.8, 0.8),
    ]
    assert [round(bar.share, 2) for bar in second.bars] == [0.15, 0.0, 0.0, 0.1]
    assert list(explained([])) == []


def test_the_past_stands_beside_the_present(serving: Serving) -> None:
    first, second = remember(serving, "I live in Boston.", "I love jazz.")
    serving.memory.update(first, "I live in Denver.")
    serving.memory.delete(second)
    remember(serving, "I love tea.")
    browser = Browser(serving)
    now = browser.get("/memory", owner="user:alice").text
    assert texts(now) == ["I love tea.", "I live in Denver."]
    assert 'max="5" value="5"' in now
    then = browser.get("/memory", owner="user:alice", at=2).text
    assert texts(then) == ["I love jazz.", "I live in Boston."]
    assert "forgotten since" in then
    assert "<del>Boston</del><ins>Denver</ins>" in then
    assert "1 of today’s items were not known yet" in then
    assert "after 2 of 5 changes. 1 of today" in then


def test_history_has_actor_and_reason(serving: Serving) -> None:
    [first] = remember(serving, "I live in Boston.")
    serving.memory.update(first, "I live in Denver.")
    page = Browser(serving).get(f"/memory/item/{first}").text
    assert page.count("by user") == 2
    assert page.index("changed") < page.index("added")


def test_what_was_said_and_what_is_related(make_serving: Any, open_memory: Any) -> None:
    serving = make_serving(open_memory(reader="rules", manager="rules"))
    [item] = serving.memory.add("I live in Boston.", user_id="alice")["results"]
    remember(serving, "Boston is cold in winter.")
    page = Browser(serving).get(f"/memory/item/{item['id']}").text
    assert "<blockquote>I live in Boston.</blockquote>" in page
    assert "Boston is cold in winter." in page


def test_editing_forgetting_and_erasing(serving: Serving) -> None:
    first, second = remember(serving, "I live in Boston.", "我喜欢喝绿茶。")
    browser = Browser(serving)
    edited = browser.post(f"/memory/item/{first}/edit", text=" I live in Denver. ")
    assert edited.headers["hx-redirect"] == f"/page/memory/item/{first}"
    assert serving.memory.get(first)["memory"] == "I live in Denver."
    assert browser.post(f"/memory/item/{first}/edit", text="  ").status_code == 400
    assert browser.post(f"/memory/item/{first}/forget").status_code == 200
    assert serving.memory.get(first) is None
    assert "This was forgotten" in browser.get(f"/memory/item/{first}").text
    unconfirmed = browser.post(f"/memory/item/{second}/purge")
    assert (unconfirmed.status_code, unconfirmed.headers["hx-retarget"]) == (400, "#notice")
    for gone in (first, second):
        assert browser.post(f"/memory/item/{gone}/purge", confirm="erase").status_code == 200
        assert browser.get(f"/memory/item/{gone}").status_code == 404


def test_changes_need_rights(serving: Serving) -> None:
    [first] = remember(serving, "I live in Boston.")
    reader = Browser(serving, "user:alice", [Right.read])
    page = reader.get(f"/memory/item/{first}").text
    assert "Forget" not in page
    assert "Erase" not in page
    assert reader.post(f"/memory/item/{first}/forget").status_code == 403
    writer = Browser(serving, "user:alice", [Right.read, Right.write])
    assert writer.post(f"/memory/item/{first}/purge", confirm="erase").status_code == 403
    assert serving.memory.get(first) is not None


def test_a_change_without_the_pages_token_is_refused(serving: Serving) -> None:
    [first] = remember(serving, "I live in Boston.")
    browser = Browser(serving)
    answer = browser.web.post(f"/page/memory/item/{first}/forget")
    assert answer.status_code == 403
    assert serving.memory.get(first) is not None


def test_texts_are_never_html(serving: Serving) -> None:
    [first] = remember(serving, HOSTILE, metadata={"<b>k": "<i>v</i>"}, categories=["<u>c"])
    serving.memory.update(first, HOSTILE + "!")
    browser = Browser(serving)
    for page in (
        browser.get("/memory", owner="user:alice").text,
        browser.get("/memory", owner="user:alice", q=HOSTILE).text,
        browser.get("/memory", owner="user:alice", at=1).text,
        browser.get(f"/memory/item/{first}").text,
        browser.get("/memory", find=HOSTILE).text,
        browser.get("/memory", owner=HOSTILE).text,
        browser.get(f"/memory/item/{HOSTILE}").text,
    ):
        assert not re.search(r"<script>|<img|<b>k|<i>|<u>", page)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, "I live.", [("new", "I live.")]),
        ("I live.", None, [("gone", "I live.")]),
        ("same", "same", [("same", "same")]),
        (
            "I live in Boston.",
            "I live in Denver.",
            [("same", "I live in "), ("gone", "Boston"), ("new", "Denver"), ("same", ".")],
        ),
        (
            "用户现在住在北京市",
            "用户现在住在南京市",
            [("same", "用户现在住在"), ("gone", "北"), ("new", "南"), ("same", "京市")],
        ),
        (
            "one thing",
            "quite another",
            [("gone", "one thing"), ("same", " "), ("new", "quite another")],
        ),
    ],
)
def test_differences(before: str | None, after: str | None, expected: list[Any]) -> None:
    assert list(difference(before, after)) == expected


def test_an_agents_list_is_its_own(serving: Serving) -> None:
    serving.memory.add("The plan is late.", agent_id="planner", infer=False)
    serving.memory.add("Alice hates mornings.", user_id="alice", agent_id="planner", infer=False)
    browser = Browser(serving)
    page = browser.get("/memory", owner="agent:planner").text
    assert texts(page) == ["The plan is late."]
    found = browser.get("/memory", owner="agent:planner", q="mornings").text
    assert texts(found) == ["The plan is late."]


def test_who_spoke_is_told_in_the_readers_language(serving: Serving) -> None:
    said = [{"role": "user", "content": "我住在上海。"}]
    [made] = serving.memory.add(said, user_id="小红")["results"]
    browser = Browser(serving)
    for language, speaker in (("en", "user"), ("zh", "用户")):
        page = browser.get(f"/memory/item/{made['id']}", lang=language).text
        assert f"<figcaption>{speaker} " in page
        assert "UTC" in page  # whose times they are


def test_the_newest_operations_are_found_from_the_end(serving: Serving) -> None:
    """However many events of others, turns and erased ones stand between and behind them."""
    memory = serving.memory
    said = [f"Note {number}." for number in range(200)]
    made = memory.add_many(said, user_id="alice", infer=False)["results"]
    memory.add_many(said, user_id="bob", infer=False)
    for one in made[-10:]:
        memory.purge(one["results"][0]["id"])
    identity = serving.served.identities.of({"authorization": f"Bearer {ADMIN}"}, "GET")
    page = PageMemory(memory, identity, serving.served.access, via="page")
    for count in (1, 5, 189, 190, 500):
        found = page.latest_operations("user:alice", count)
        assert [one["new_memory"] for one in found] == said[:190][::-1][:count]
    assert page.latest_operations("user:nobody", 5) == []
