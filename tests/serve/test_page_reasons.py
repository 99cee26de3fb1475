"""Reasons on the page: whatever language they were kept in, they are said in the page's."""

from __future__ import annotations

import re
from html import unescape

import pytest
from asked import Serving
from browsing import Browser

from memograd.memory.records.operations import REASONS, reason
from memograd.serve.page.texts import in_language

ENGLISH, CHINESE = "User lives in Rome: near the river.", "用户住在罗马：河边。"


@pytest.mark.parametrize("key", REASONS)
def test_every_reason_of_the_memory_is_known_in_both_languages(key: str) -> None:
    for about, quoted in ((ENGLISH, False), (ENGLISH, True), (CHINESE, False), (CHINESE, True)):
        kept = reason(key, about, quoted=quoted)
        english, chinese = in_language("en", kept), in_language("zh", kept)
        assert english == REASONS[key][0] + (f": {about}" if quoted else "")
        assert chinese == REASONS[key][1] + (f"：{about}" if quoted else "")


def test_what_a_chat_model_gave_as_its_reason_stays() -> None:
    assert in_language("zh", "She moved {x}, I think.") == "She moved {x}, I think."


@pytest.mark.parametrize(
    ("kept", "chinese"),
    [
        ("purged on request", "应要求抹除"),
        ("purged where the export was made", "在导出它的记忆里已被抹除"),
        ("ADD has probability 0.97.", "ADD 的概率为 0.97。"),
        (
            "It was corrected: I ski. (decided by rules: policy:v1 was only 40% sure)",
            "已更正：I ski.（由 rules 决定：policy:v1 只有 40% 的把握）",
        ),
    ],
)
def test_what_is_put_together_elsewhere_is_known_too(kept: str, chinese: str) -> None:
    assert (in_language("zh", kept), in_language("en", chinese)) == (chinese, kept)


def test_a_value_in_the_place_of_another_is_told_in_both_languages() -> None:
    english = "User has a new residence, Oslo instead of Rome: User lives in Rome."
    chinese = "用户有了新的说法，由北京改为上海：用户住在北京。"
    assert in_language("zh", english) == "User有了新的说法，由Rome改为Oslo：User lives in Rome."
    assert in_language("en", chinese) == (
        "用户 has a new value, 上海 instead of 北京: 用户住在北京。"
    )
    assert (in_language("en", english), in_language("zh", chinese)) == (english, chinese)


def test_histories_give_their_reasons_in_the_language_of_the_page(serving: Serving) -> None:
    memory, who = serving.memory, "alice"
    for text in ("I live in Rome.", "I live in Oslo now.", "I like tea.", "I like tea."):
        memory.add(text, user_id=who)
    for text in ("I like milk.", "I like milk.", "我喜欢喝红茶。"):
        memory.add(text, user_id=who, infer=False)
    kept = memory.get_all(user_id=who)["results"]
    memory.update(kept[1]["id"], "User likes green tea.")
    report = memory.compact(1, user_id=who)
    memory.undo_compact(report["batch_id"])
    memory.delete(kept[1]["id"])

    browser = Browser(serving)
    reasons: set[str] = set()
    for item in kept:
        for language in ("en", "zh"):
            page = browser.get(f"/memory/item/{item['id']}", lang=language).text
            found = re.findall(r'<p class="reason">(.*?)</p>', page)
            assert found
            for said in map(unescape, found):
                own_words = said.split(": ")[0] if language == "en" else said.split("：")[0]
                chinese = re.search(r"[一-鿿]", own_words) is not None
                assert chinese == (language == "zh"), said
            reasons |= {one.split(":")[0].split("：")[0] for one in found}
    assert any(one.startswith("undo compact") for one in reasons)


def test_the_chat_gives_reasons_in_the_language_of_the_page(serving: Serving) -> None:
    browser = Browser(serving)
    for language, said in (("en", "Nothing remembered says this yet"), ("zh", "新的内容")):
        browser.get("/chat", lang=language)
        answer = browser.post("/chat/say", user=f"bob-{language}", text="I live in Rome.")
        assert answer.status_code == 200 and f'class="reason">{said}' in answer.text
