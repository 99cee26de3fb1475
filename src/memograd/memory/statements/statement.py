"""One understood statement: a subject, a property of it (the slot), a value, and yes or no.

A slot is single-valued when a subject has one value of it at a time: a second value then replaces
the first. Both languages name a known slot with the same English word. Invariant: the names in
`SINGLE_VALUED` are those that the parsers give.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

SINGLE_VALUED: Final = frozenset(
    {
        "address", "age", "birthday", "date", "diet", "education", "email", "employer", "gender",
        "height", "hometown", "job", "marital status", "name", "phone", "residence",
        "weight", "workplace",
    }
)  # fmt: skip

# Several can be true at once; every other noun in "X's <noun> is Y" is taken to have one value.
_MANY_VALUED_NOUNS_WORDS = """
    friend colleague coworker classmate neighbor neighbour brother sister sibling cousin uncle
    aunt child kid son daughter pet dog cat hobby interest goal dream plan skill language idea
    favorite favourite problem passion strength weakness part reason fear 朋友 同事 同学 邻居 哥哥
    弟弟 姐姐 妹妹
    兄弟 姐妹 叔叔 阿姨 孩子 儿子 女儿 宠物 爱好 兴趣 兴趣爱好 目标 梦想 计划 技能 特长 优点
    缺点 原因 朋友们 同事们
"""
MANY_VALUED_NOUNS: Final = frozenset(_MANY_VALUED_NOUNS_WORDS.split())


@dataclass(frozen=True, slots=True)
class Statement:
    """`Alice lives in Boston` is `("Alice", "residence", "Boston")`.

    positive: False for `Alice does not like tea`. ended: it was so and is no longer. rest: what the
    sentence says besides (`with her cat`), which replacing the value must not lose. instead_of:
    what the sentence itself says the value replaces: a value (`switched from tea to coffee`), or
    `*` for whatever was so before (`switched hobbies`).
    """

    subject: str
    slot: str
    value: str
    positive: bool = True
    ended: bool = False
    rest: str = ""
    instead_of: str = ""

    @property
    def single_valued(self) -> bool:
        """Whether another value of this slot replaces this one."""
        if self.slot in SINGLE_VALUED or self.slot.startswith("favourite "):
            return True
        kind, _, noun = self.slot.partition(":")
        return kind == "attribute" and noun not in MANY_VALUED_NOUNS

    def same_subject(self, other: Statement) -> bool:
        """Whether both speak of one subject, whatever the case and the little words."""
        return plain(self.subject) == plain(other.subject)

    def same_slot(self, other: Statement) -> bool:
        """Whether both speak of one property of one subject."""
        return self.slot == other.slot and self.same_subject(other)

    def same_value(self, other: Statement) -> bool:
        """Whether the values are the same text, whatever the case, the article and the spaces."""
        return plain(self.value) == plain(other.value)


_LITTLE = re.compile(r"\b(?:a|an|the)\b|的|[\s\W_]+", re.IGNORECASE)


def plain(text: str) -> str:
    """The text without case, articles, 的, spaces and punctuation, for comparing."""
    bare = _LITTLE.sub("", unicodedata.normalize("NFKC", text).casefold())
    return bare or text.strip().casefold()
