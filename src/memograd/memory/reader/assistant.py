"""What an assistant said, worded as its own words and nobody else's.

A statement ("I booked you a table for eight") stands alone. The lines of a list mean little without
what was asked: "Apple slices with almond butter" is kept as one item of the list that answered
"what can I eat in the afternoon", so that it is found by the question and read by a stranger.

A text that the user has asked for (a letter, a recipe, a sentence put right) says nothing: its "I"
is nobody, and a line of it alone is of no use. The turn is kept and found as a whole.

Invariants: of a user's words only a question is quoted, and none that holds a secret, asks to
forget something or tells anything of the user; no item is longer than `LONGEST_LIST` characters and
its question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from memograd.memory.language import is_chinese
from memograd.memory.reader import screen_chinese, screen_english
from memograd.memory.reader.asked import FORGETS, NOT_SAVED, requests
from memograd.memory.reader.fact import Said
from memograd.memory.reader.sentences import has_secret, split_sentences
from memograd.memory.reader.setting import Draft, Setting
from memograd.memory.reader.wording import LISTED, say_assistant, say_list

LONGEST_QUESTION: Final = 200  # characters
LONGEST_LIST: Final = 600
# Behind these a question tells something of its speaker, who may take it back.
_OF_SELF: Final = re.compile(r"\b(?:i|i'?m|i'?ve|i'?d|my|mine|we|our|us)\b|[我咱俺]", re.IGNORECASE)
_FOR_SELF: Final = re.compile(
    r"(?<=[给給帮幫替])[我咱俺]"
    r"|\b(?:do|get|give|make|tell|show|send|find|list|help) me\b",
    re.IGNORECASE,
)
# "Here are two:" goes on with its lines, and is one sentence with them.
_HOLDS_LIST: Final = re.compile(r"[:：]\s*\n\s*(?:[-*•·–]\s|\d{1,2}[.)、])")


# "Monday: cottage pie" is a line of a list without a mark.
_LABELLED: Final = re.compile(
    r"^[ \t]*[^\s:：。.!?！？][^:：\n。.!?！？]{0,23}[:：][ \t]*[^\s/].*$", re.MULTILINE
)
_TEXT = (
    r"(?:letter|e-?mails?|text|message|poem|ad|advert|listing|note|speech|toast|caption|bio|essay"
    r"|story|song"
    r"|lyrics|review|reply|statement|paragraph|sentence|blurb|post|tweet|invitation|eulogy"
    r"|obituary|recipe)"
)
WANTS_TEXT: Final = re.compile(
    r"\b(?:write|draft|compose|word|do|make|give|send|need|want|got|have|with) (?:\w+ )?"
    r"(?:me |us )?(?:(?:an?|the|your|my|some|another) )?"
    rf"(?:[\w'’-]+ ){{0,4}}?{_TEXT}\b(?! from| says?| said)"
    r"|\b(?:rewrite|reword|rephrase|proof-?read|translate|polish)\b"
    r"|\b(?:fix|correct|check|improve|shorten) (?:my |the |this |its |up )*"
    r"(?:grammar|spelling|english|text|letter|e-?mail|paragraph|sentence|bit|wording)\b"
    r"|[写寫擬拟][^。！？\n]{0,12}"
    r"(?:信|邮件|郵件|短信|微信|文案|祝福|朋友圈|稿|诗|詩|段|封|首|条|條|作文|请假条)"
    r"|润色|潤色|翻译|翻譯|改得|改写|改寫|菜谱|食谱|食譜|做法|文案",
    re.IGNORECASE,
)
"""Asks for a text, whose sentences are not what the assistant says."""


def writes_text(before: Sequence[Said]) -> bool:
    """Whether the user has asked for a text, so that nothing of what the assistant says is kept."""
    return WANTS_TEXT.search(_last_of_user(before)) is not None


_DONE: Final = re.compile(
    r"\b(?:i|we)(?:['’]ve| have)? (?:\w+ly )?(?:booked|reserved|ordered|scheduled|sent|saved"
    r"|added|moved|set|placed|cancel\w+|updated|created|paid|registered|renewed|changed)\b"
    r"|\b(?:is|are|has been|have been) (?:now )?(?:booked|reserved|ordered|scheduled|confirmed"
    r"|cancel\w+|placed|renewed)\b|\b(?:your|the) (?:booking|reservation|order|appointment)\b"
    r"|预[订定约]|預[訂定約]|已[经為为帮]|下[单單]|订好|訂好|约好|約好|挂[了上好]|掛[了上好]|买好|買好|取消|改签|改簽",
    re.IGNORECASE,
)


def reads_out(before: Sequence[Said], said: str) -> bool:
    """Whether it only repeats what a tool has answered; that something was booked or sent does
    not."""
    return bool(before) and before[-1][0] == "tool" and _DONE.search(said) is None


def _last_of_user(before: Sequence[Said]) -> str:
    return next((text for who, text in reversed(before) if who == "user"), "")


class Line(NamedTuple):
    """A sentence of the message and its place."""

    start: int
    end: int
    text: str


def say_kept(
    kept: Sequence[Line], message: str, before: Sequence[Said], setting: Setting
) -> list[tuple[str, Draft]]:
    """Quote and wording of each item that these sentences of an assistant's message make."""
    if writes_text(before):
        return []
    kept = [line for line in _with_labelled(kept, message) if not _only_heads(line.text)]
    whole = [_HOLDS_LIST.search(line.text) is not None for line in kept]
    labels = sum(_LABELLED.match(line.text) is not None for line in kept) > 2
    listed = [
        n
        for n, line in enumerate(kept)
        if whole[n] or LISTED.match(line.text) or (labels and _LABELLED.match(line.text))
    ]
    if len(listed) < 2 and not any(whole):
        return [(line.text, say_assistant(line.text, setting)) for line in kept]
    first, last = listed[0], listed[-1] + 1
    alone = [
        (line.text, say_assistant(line.text, setting)) for line in (*kept[:first], *kept[last:])
    ]
    question = _asked(before)
    items = []
    for lines in _parts(kept[first:last]):
        draft = say_list([line.text for line in lines], question, setting)
        items.append((message[lines[0].start : lines[-1].end], draft))
    return [*alone[:first], *items, *alone[first:]]


def _only_heads(line: str) -> bool:
    """Whether it names what stands below it and no more: "YouTube channels: 1."."""
    return _HEADING.search(line) is not None


_HEADING: Final = re.compile(r"^[^:：]*[:：][\s*_]*(?:1[.)、])?[\s*_.]*$")


def _with_labelled(kept: Sequence[Line], message: str) -> list[Line]:
    """The sentences, with every line of a list of labels that some of them are in."""
    every = [Line(*one.span(), one[0].strip()) for one in _LABELLED.finditer(message)]
    some = [line for line in kept if _LABELLED.match(line.text) and not LISTED.match(line.text)]
    if len(every) < 3 or len(some) < 2:
        return list(kept)
    places = {one.start: one for one in every if not has_secret(one.text)}
    rest = [line for line in kept if line not in some]
    rest = [line for line in rest if not any(one.start <= line.start < one.end for one in every)]
    return sorted([*rest, *places.values()])


def _parts(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines in groups of at most LONGEST_LIST characters."""
    parts: list[list[Line]] = [[]]
    for line in lines:
        if parts[-1] and sum(len(one.text) for one in (*parts[-1], line)) > LONGEST_LIST:
            parts.append([])
        parts[-1].append(line)
    return parts


def _asked(before: Sequence[Said]) -> str:
    """What the user had asked, in their words; empty where that is not to be repeated.

    An item of the assistant's is changed by nothing that the user corrects, so no fact of theirs
    may stand in it.
    """
    said = _last_of_user(before)
    if has_secret(said) or NOT_SAVED.search(said) or FORGETS.search(said) or requests(said):
        return ""
    sentences = [" ".join(one.split()) for one in split_sentences(said)]
    return next((one for one in sentences if _only_asks(one)), "")


def asks_for_ideas(sentence: str) -> bool:
    """Whether a question asks for tips or the like, and tells nothing of who asks."""
    return _IDEAS.search(sentence) is not None and _only_asks(sentence)


_IDEAS: Final = re.compile(
    r"\b(?:tips|ideas|suggestions|suggest|recommendations|recommend|advice|resources)\b",
    re.IGNORECASE,
)


def _only_asks(sentence: str) -> bool:
    """Whether it asks for something and tells nothing of who asks."""
    screen = screen_chinese if is_chinese(sentence) else screen_english
    asks = screen.is_question(sentence) or screen.is_request(sentence)
    told = _OF_SELF.search(_FOR_SELF.sub("", sentence))
    return asks and told is None and len(sentence) <= LONGEST_QUESTION
