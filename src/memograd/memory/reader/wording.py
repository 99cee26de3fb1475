"""A sentence as it stands alone: the speaker named, dates resolved, interjections gone.

Nothing is judged here; whoever calls has decided that the sentence is worth keeping.

Invariant: no first person is left outside quotation marks. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import language_of
from memograd.memory.reader import chinese as person_chinese
from memograd.memory.reader import person_english, screen_chinese, screen_english
from memograd.memory.reader.choices import chosen
from memograd.memory.reader.dates import resolve_english
from memograd.memory.reader.dates_chinese import resolve_chinese
from memograd.memory.reader.english import completed
from memograd.memory.reader.setting import Draft, Setting, finished
from memograd.memory.records.items import Kind

_EMOJI: Final = "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u200d\ufe0f\U000e0000-\U000e007f"
_EDGES: Final = re.compile(rf"^[\s{_EMOJI}]+|[\s{_EMOJI}]+$")
_CHAT: Final = (
    (re.compile(r"\bim\b(?! Rahmen)", re.I), "I'm"),
    (re.compile(r"\bive\b", re.I), "I've"),
    (
        re.compile(r"\b(do|does|did|is|was|were|has|have|had|ca|wo|could|would|should)nt\b", re.I),
        r"\1n't",
    ),
    (re.compile(r"\b(?:tmrw|tmw|tmr|tomoz|2moro|tomoro)\b", re.I), "tomorrow"),
    (re.compile(r"\b(?:yest|yday)\b", re.I), "yesterday"),
    (re.compile(r"\bnxt\b", re.I), "next"),
    (
        re.compile(r"\bin (?:exactly|about|like|roughly) (?=\w+ (?:day|week|month|year))", re.I),
        "in ",
    ),
    (re.compile(r"\bago (?:today|exactly)\b", re.I), "ago"),
    (re.compile(r"(?<![\w.])u\b(?!\.)"), "you"),
    (re.compile(r"\bur\b"), "your"),
)  # fmt: skip
_INTERJECTION: Final = re.compile(
    r"^(?:(?:and|but|plus|cos|lol|haha+|omg|oh|ah|um+|well|so|ok(?:ay)?|yeah|yep|btw|fyi|ugh|hmm+|right|hey|hi|hello"
    r"|also|anyway|guess what|good news|bad news|update|news flash|big news|psst|oops|whoops|wow"
    r"|yay)"
    r"\b[\s,:!.\-–—]+)+|[\s,]+(?:lol|haha+|lmao|rofl|xd|tbh|smh|omg|btw|x{1,3})[\s.!]*$",
    re.IGNORECASE,
)
_INTERJECTION_ZH: Final = re.compile(
    r"^(?:(?:哈+|嗯+|啊+|哎呀?|唉|哇+|诶|欸|对了|话说|那个|其实|顺便说一下|跟你说"
    r"|告诉你吧?)[，,！!。~～、\s]*)+"
    r"|[\s，,]*(?:哈哈+|嘿嘿+|呜呜+|233+|hhh+|笑死|orz)[。！!~～\s]*$",
    re.IGNORECASE,
)


LISTED: Final = re.compile(r"[-*•·–]\s|\d{1,2}[.)、](?:\s?\D|$)")
"""How a line of a list begins."""
_HEAD: Final = re.compile(r"([:：])\s*\n\s*(?:[-*•·–]\s|\d{1,2}[.)、]\s?)")
_LINES: Final = re.compile(r"\s*\n\s*(?:[-*•·–]\s|\d{1,2}[.)、]\s?)")


_MARKS: Final = re.compile(
    r"^(?:#+ |>+ |[-*•·–] |\d{1,2}[.)、] ?(?=\D)|[，,；;、])+|\*\*|__|`(?=[^`]*`)|(?<=\w)`"
)
"""Marks of a list, a heading or emphasis, which mean nothing in a sentence alone."""


def bare_of(sentence: str) -> str:
    """The sentence without interjections and emoji around it, and with its chat spelling undone."""
    text = _EDGES.sub("", sentence)
    chinese = language_of(text) == "zh"
    text = _HEAD.sub(r"\1" if chinese else r"\1 ", text)
    text = _LINES.sub("、" if chinese else "; ", text)
    if chinese:
        shorter = _INTERJECTION_ZH.sub("", text).strip()
        return screen_chinese.strip_note(shorter) if len(shorter) > 1 else text
    for pattern, written in _CHAT:
        text = pattern.sub(written, text)
    shorter = screen_english.strip_note(_INTERJECTION.sub("", text).strip())
    return _EDGES.sub("", shorter) if len(shorter) > 2 else text


def without_calls(text: str, setting: Setting) -> str:
    """The text without the names of others that it only calls: "Thanks, Mel!" says nothing of her.

    Where only one person speaks there is nobody to call.
    """
    others = tuple(name for name in setting.speakers if name != setting.turn.speaker)
    if not others or language_of(text) == "zh" or not any(name[:3] in text for name in others):
        return text
    said = screen_english.strip_openers(text, others)
    return said if re.sub("|".join(map(re.escape, others)), "", said).strip(" .!,:;()-") else ""


def say(sentence: str, setting: Setting) -> Draft:
    """What a user said, to be read alone."""
    text = without_calls(bare_of(sentence), setting)
    language = language_of(text)
    name = setting.name(language)
    if language == "zh":
        resolved = resolve_chinese(text, setting.day)
        said = person_chinese.resolve_person(resolved.text, name, None)
        if screen_chinese.is_question(text):
            said = f"{name}问：{said}"
        elif setting.about:
            said = f"关于{person_chinese.resolve_person(setting.about, name, None)}：{said}"
        elif name not in said:
            said = f"{name}说：{said}"
        kind = Kind.PROCEDURAL if screen_chinese.is_procedural(text) else None
        return Draft(finished(said, "。"), resolved.day, "zh", kind)
    text = text.replace("’", "'")
    procedural = setting.to_agent and screen_english.is_procedural(text)
    if not procedural and (whole := completed(text[:1].upper() + text[1:])):
        text = whole
    resolved = resolve_english(text, setting.day)
    said = person_english.resolve_person(resolved.text, name, None)
    if screen_english.is_question(text):
        said = f"{name} asked: {said}"
    elif setting.about:
        about = person_english.resolve_person(setting.about, name, None)
        said = f"About {about}: {said[:1].lower()}{said[1:]}"
    elif name not in said:
        said = f"{name} said: {said}"
    return Draft(finished(said, "."), resolved.day, "en", Kind.PROCEDURAL if procedural else None)


def say_answer(question: str, sentence: str, setting: Setting) -> Draft:
    """A short answer together with the question that it answers.

    One that points at a choice ("the second one") is told with what was chosen.
    """
    answer, asked = bare_of(sentence), " ".join(question.split())
    if (choice := chosen(asked, answer)) is not None:
        asked, answer = choice
    if language_of(question + answer) == "zh":
        resolved = resolve_chinese(answer, setting.day)
        name = setting.name("zh")
        said = person_chinese.resolve_person(resolved.text, name, None)
        return Draft(finished(f"{name}被问“{asked}”时回答：{said}", "。"), resolved.day, "zh")
    resolved = resolve_english(answer, setting.day)
    name = setting.name("en")
    said = person_english.resolve_person(resolved.text, name, None)
    return Draft(finished(f'{name}, asked "{asked}", answered: {said}', "."), resolved.day, "en")


def say_assistant(sentence: str, setting: Setting) -> Draft:
    """What the assistant said, as its own words and nobody else's."""
    text = _MARKS.sub("", _EDGES.sub("", sentence))
    if language_of(text) == "zh":
        resolved = resolve_chinese(text, setting.day)
        said = person_chinese.resolve_person(resolved.text, "助手", "用户")
        return Draft(finished(f"助手说：{said}", "。"), resolved.day, "zh")
    resolved = resolve_english(text, setting.day)
    said = person_english.resolve_person(resolved.text, "the assistant", "the user")
    return Draft(finished(f"The assistant said: {said}", "."), resolved.day, "en")
