"""The page's frame: who is let in, its languages, its headers, what is vendored."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from asked import ADMIN, Serving
from browsing import Browser

from memograd.errors import MemogradError
from memograd.serve.keys import Right
from memograd.serve.page import texts
from memograd.serve.page.texts import LANGUAGES, catalogue, preferred, say
from memograd.serve.page.view import STATIC

PAGE = STATIC.parent


# Texts


def test_every_text_that_is_used_is_in_the_catalogue_and_none_is_left_over() -> None:
    """Keys that are put together (`say("kind." ~ name)`) use all that begin so."""
    sources = [*PAGE.rglob("*.py"), *PAGE.rglob("*.html")]
    written = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    whole = set(re.findall(r"""say\(\s*["']([\w.]+)["']\s*[,)]""", written))
    begun = set(re.findall(r"""say\(\s*["']([\w.]+\.)["'] [~+]""", written))
    begun |= set(re.findall(r"""^[A-Z]+: Final = ["'](\w+\.)["']$""", written, re.MULTILINE))
    known = set(catalogue()["en"])
    assert whole <= known, whole - known
    assert all(any(key.startswith(start) for key in known) for start in begun)
    used = whole | {key for key in known if key.startswith(tuple(begun))}
    assert known <= used, known - used


def test_languages_have_the_same_names_to_fill_in() -> None:
    for key in catalogue()["en"]:
        names = {code: set(re.findall(r"\{(\w+)\}", say(code, key))) for code in LANGUAGES}
        # A reason that was written in Chinese names no property, which its quotation does.
        same = (
            names["en"] >= names["zh"] if key.startswith("reason.") else names["en"] == names["zh"]
        )
        assert same, key


def test_a_text_that_a_language_lacks_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "texts.toml").write_text('"a" = { en = "A", zh = "" }\n', encoding="utf-8")
    monkeypatch.setattr(texts, "files", lambda _: tmp_path)
    with pytest.raises(MemogradError, match="'a' needs exactly en, zh"):
        catalogue.__wrapped__()


@pytest.mark.parametrize(
    ("asked", "remembered", "accepted", "expected"),
    [
        (None, None, "", "en"),
        (None, None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, None, "fr;q=0.9,en;q=0.5,zh;q=0.7", "zh"),
        (None, None, "de,*;q=broken", "en"),
        (None, "zh", "en", "zh"),
        ("en", "zh", "zh", "en"),
        ("xx", None, "zh", "zh"),
    ],
)
def test_the_language_of_a_request(
    asked: str | None, remembered: str | None, accepted: str, expected: str
) -> None:
    assert preferred(asked, remembered, accepted) == expected


def test_a_language_once_chosen_stays(serving: Serving) -> None:
    browser = Browser(serving)
    assert "看谁的记忆" in browser.get("/memory", lang="zh").text
    assert "看谁的记忆" in browser.get("/memory").text
    assert 'lang="zh-CN"' in browser.get("/memory").text


@pytest.mark.parametrize("path", ["/memory", "/chat", "/runs", "/keys", "/api", "/nothing"])
def test_any_name_may_stand_in_an_address(serving: Serving, path: str) -> None:
    shown = Browser(serving).get(f"{path}?path=a&self=b&query=c&lang=en")
    assert shown.status_code in (200, 404)
    assert "path=a&amp;self=b&amp;query=c&amp;lang=zh" in shown.text


# Who is let in


def test_nobody_sees_anything_without_a_session(serving: Serving) -> None:
    serving.memory.add("I live in Boston.", user_id="alice", infer=False)
    for path in ("/page/memory", "/page/memory?owner=user:alice", "/page/", "/"):
        answer = serving.ask("GET", path, None)
        assert answer.status_code == 401, path
        assert "memograd serve login" in answer.text
        assert "Boston" not in answer.text
        assert "Sign out" not in answer.text
    wrong = serving.ask("GET", "/page/memory", None, headers={"Authorization": "Bearer wrong"})
    assert wrong.status_code == 401


def test_an_api_key_opens_the_page_too(serving: Serving) -> None:
    assert serving.ask("GET", "/page/memory", ADMIN).status_code == 200


def test_unknown_paths_are_pages_under_the_page_and_json_elsewhere(serving: Serving) -> None:
    inside = Browser(serving).get("/nothing")
    assert (inside.status_code, inside.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page." in inside.text
    assert "没有这个页面。" in Browser(serving).get("/nothing", lang="zh").text
    assert "no route GET /nothing" in serving.ask("GET", "/nothing").json()["detail"]


@pytest.mark.parametrize("path", ["/page/memory", "/page/nothing"])
def test_every_answer_forbids_what_is_inline(serving: Serving, path: str) -> None:
    answer = serving.ask("GET", path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", answer.text)


def test_a_foreign_host_reaches_no_page(serving: Serving) -> None:
    headers = {"Host": "evil.example"}
    assert serving.ask("GET", "/page/memory", ADMIN, headers=headers).status_code == 403


def test_the_wall_stands_on_the_page_too(serving: Serving) -> None:
    serving.memory.add("I live in Boston.", user_id="alice", infer=False)
    [item] = serving.memory.get_all(user_id="alice")["results"]
    bob = Browser(serving, "user:bob", [Right.read, Right.write, Right.erase])
    assert "alice" not in bob.get("/memory").text
    assert bob.get("/memory", owner="user:alice").status_code == 403
    assert bob.get(f"/memory/item/{item['id']}").status_code == 404
    for change in ("edit", "forget", "purge"):
        answer = bob.post(f"/memory/item/{item['id']}/{change}", text="x", confirm="erase")
        assert answer.status_code == 404, change
    assert serving.memory.get(item["id"]) == item


# What is vendored


def test_vendored_files_are_those_of_their_makers() -> None:
    folder = STATIC / "vendor"
    listed = {}
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            digest, name = line.split()
            listed[name] = digest
    there = {file.name for file in folder.iterdir()} - {"SHA256SUMS"}
    assert there == set(listed)
    for name, digest in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


def test_static_files_are_served(serving: Serving) -> None:
    page = serving.ask("GET", "/page/memory").text
    addresses: list[Any] = re.findall(r'(?:src|href)="(/page/static/[^"]+)"', page)
    assert len(addresses) >= 4
    for address in addresses:
        assert serving.ask("GET", address, None).status_code == 200, address


def test_the_way_to_the_first_page_keeps_the_language(serving: Serving) -> None:
    for path in ("/", "/page/"):
        for asked, kept in (("?lang=zh", "?lang=zh"), ("?lang=xx", ""), ("", "")):
            answer = serving.ask("GET", path + asked, follow_redirects=False)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/page/memory{kept}")
