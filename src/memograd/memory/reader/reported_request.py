"""Requests to forget told of somebody: `Ann asked to delete her address` is about Ann's address.

A chat model, or a life log, writes such a request down as what happened; what is to be forgotten
is in it. Invariant: the result is what `RuleReader` makes of the same request in the person's own
words (`tests/memory/test_reader_forgetting.py`). Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import language_of
from memograd.memory.reader import forget_chinese, forget_english, person_chinese

_ENGLISH: Final = re.compile(
    r"^(?P<who>[\w'’. -]{1,40}?) (?:(?:has |had )?(?:asked|asks|requested|requests|begged|wants"
    r"|wanted|told|instructed)|would like|made a request)(?: (?:me|us|you|them|everybody|everyone"
    r"|the assistant|[A-Z]\w+))?(?: (?:for it |please )?(?P<not>not )?to|,) (?P<act>.+)$"
)
_CHINESE: Final = re.compile(
    r"^(?P<who>[^，。要请希想让]{1,10}?)(?:曾|已经?)?(?:要求|请求|希望|请|想让|想要|要|让|拜托)"
    r"(?:别人|对方|大家|助手|我们|[你您])?(?P<act>.+)$"
)


def reported_topic(text: str) -> str | None:
    """What somebody asked to forget, with their name in it; None where the text is no such report.

    `Ann asked to erase what was said about which gym she goes to.` gives `Which gym Ann goes to`.
    """
    bare = text.strip().rstrip(" .。!！")
    if language_of(bare) == "zh":
        said = _CHINESE.match(bare)
        asked = said and forget_chinese.request_to_forget(
            "请" + re.sub(r"[他她](?!们)自?己?", "我", said["act"])
        )
        if said and asked:
            return person_chinese.resolve_person(asked[0], said["who"], None)
        return None
    said = _ENGLISH.match(bare)
    if said is None:
        return None
    act = f"don't {said['act']}" if said["not"] else said["act"]
    own, comma, more = act.partition(",")
    own = re.sub(r"\b(?:his|her|their)\b", f"{said['who']}'s", own)
    own = re.sub(r"\b(?:he|she|they|him|them)\b", said["who"], own)
    asked = forget_english.request_to_forget(own + comma + more)
    return asked[0] if asked else None
