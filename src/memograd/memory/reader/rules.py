"""The reader that needs no model: from turns to facts by the form of each sentence.

A turn is cut into sentences; greetings, questions, requests and reactions are dropped, and what
remains is made understandable on its own: speakers for pronouns, absolute dates for "yesterday". A
sentence that leans on the one before it ("It was a gift") joins that one's fact, and a bare answer
("Luna and Oliver!") carries its question. What is dropped is not lost: the raw turn stays
searchable behind the facts.

Invariant: every fact names the turn it came from, has no first person left, and the same turns give
the same facts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from itertools import pairwise

from memograd.memory.language import language_of
from memograd.memory.reader import (
    person_english,
    screen_chinese,
    screen_english,
)
from memograd.memory.reader.chinese import read_chinese
from memograd.memory.reader.english import read_english
from memograd.memory.reader.fact import Fact
from memograd.memory.reader.forget import (
    asks_to_forget_next,
    asks_to_forget_that,
    request_to_forget,
)
from memograd.memory.reader.person_english import ADVERBS, is_past
from memograd.memory.reader.sentences import split_sentences
from memograd.memory.reader.setting import Draft, Setting
from memograd.memory.records.items import Kind
from memograd.memory.records.turns import RawTurn
from memograd.memory.statements import Statement, clauses, parse_statement

LONGEST_SENTENCE = 600  # characters; what goes on longer is pasted text, not a statement
LONGEST_FACT = 400  # characters that sentences leaning on each other may fill
CORE_SLOTS = frozenset({"name", "called", "allergy", "birthday", "gender"})
_PHOTO = re.compile(
    r"\b(?:here's|here is|here are|this is|these are|pic|pics|photo|picture)\b", re.I
)


class RuleReader:
    """Facts by rules, in English and Chinese, sentence by sentence.

    ignore: speakers whose turns give no facts, whatever their case; all others are listened to.
    """

    def __init__(self, *, ignore: Collection[str] = ("assistant", "system")) -> None:
        self._ignored = frozenset(name.casefold() for name in ignore)

    def read(self, turns: Sequence[RawTurn]) -> list[Fact]:
        """The facts in the order of the turns; see `MemReader.read`."""
        speakers = tuple(dict.fromkeys(turn.speaker for turn in turns))
        heard = [name for name in speakers if name.casefold() not in self._ignored]
        facts: list[Fact] = []
        question: str | None = None
        before = ""
        for index, turn in enumerate(turns):
            if turn.speaker in heard:
                answers = index > 0 and turns[index - 1].speaker != turn.speaker
                setting = Setting(
                    turn, speakers, len(heard) == 1, question if answers else None, before
                )
                facts += _facts(setting)
            question, before = _last_question(turn.text), turn.text
        return facts


def _facts(setting: Setting) -> list[Fact]:
    drafts: list[Draft] = []
    joins = False  # whether the sentence before became part of the last draft
    for sentence, to_forget in _parts(setting.turn.text):
        if len(sentence) > LONGEST_SENTENCE:
            joins = False
            continue
        read = read_chinese if language_of(sentence) == "zh" else read_english
        leaning, draft = read(sentence, setting, first=not drafts)
        if to_forget and (taken_back := _taken_back(sentence, draft, setting)):
            leaning, draft = False, taken_back
        if draft is None:
            continue
        last = drafts[-1] if drafts else None
        if last and joins and _ANNOUNCES.search(last.text):
            # "I switched hobbies! I started stargazing": the first makes the second a change.
            drafts[-1] = replace(draft, text=f"{last.text} {draft.text}")
            continue
        if leaning and last and joins and last.language == draft.language and not last.retracts:
            if len(last.text) + len(draft.text) < LONGEST_FACT:
                space = "" if last.language == "zh" else " "
                drafts[-1] = replace(
                    last, text=f"{last.text}{space}{draft.text}", day=last.day or draft.day
                )
                continue
        elif leaning and not _stands(sentence, draft, setting):
            continue
        drafts.append(draft)
        joins = True
    return [to_fact(draft, setting) for draft in drafts]


_ANNOUNCES = re.compile(
    r"(?:(?:switched|changed) (?:hobbies|instruments)|(?:has|got|found) a new favou?rite \w+)[.!]+$"
)


def _parts(text: str) -> list[tuple[str, bool]]:
    """The sentences, those of several independent clauses taken apart, each with whether the one
    beside it asks to forget it: the next one, or the very first."""
    parts: list[tuple[str, bool]] = []
    sentences = split_sentences(text)
    spoken_of = (
        len(sentences) > 1
        and len(sentences[0]) <= LONGEST_SENTENCE
        and asks_to_forget_next(sentences[0])
    )
    if spoken_of:
        sentences = sentences[1:]
    to_forget = False
    for number, sentence in enumerate(sentences):
        if to_forget and not spoken_of:
            to_forget = False
            continue  # this is what asked
        if len(sentence) > LONGEST_SENTENCE:
            parts.append((sentence, False))  # no fact, and reading it would take long
            continue
        behind = sentences[number + 1] if number + 1 < len(sentences) else ""
        behind = behind if len(behind) <= LONGEST_SENTENCE else ""
        to_forget = spoken_of or (behind != "" and asks_to_forget_that(behind))
        asks = screen_english.is_question(sentence)
        if asks or to_forget or request_to_forget(sentence):
            # "I live in Rome and you live where?" asks as a whole
            parts.append((sentence, to_forget))
            continue
        chinese = language_of(sentence) == "zh"
        bare = (screen_chinese if chinese else screen_english).strip_note(sentence)
        note = sentence[: len(sentence) - len(bare)]
        divided = clauses(bare, parse_statement if chinese else _understand_english)
        several = len(divided) > 1 and not _one_story([clause.said for clause in divided])
        whole = [note + clause.said for clause in divided] if several else [sentence]
        parts += [(part, False) for part in whole]
    return parts


def _taken_back(sentence: str, draft: Draft | None, setting: Setting) -> Draft | None:
    """What is to be forgotten where the next sentence says "Delete that, please"."""
    if draft is not None and draft.retracts:
        return replace(draft, forget=True)
    chinese = language_of(sentence) == "zh"
    read, request = (read_chinese, "，请删掉") if chinese else (read_english, ", please delete it")
    asked = read(sentence.rstrip(" .!。！?？") + request, setting, first=True)[1]
    if asked is not None and asked.retracts:
        return asked
    if draft is None or not setting.to_agent:
        return None
    return replace(draft, retracts=True, forget=True)


def _understand_english(clause: str) -> Statement | None:
    return parse_statement(person_english.resolve_person(clause, "Somebody", None))


def _one_story(said: Sequence[str]) -> bool:
    """Whether several clauses tell what happened at one time, which only one of them names."""
    past = [clause for clause in said if any(map(is_past, re.findall(r"[\w']+", clause)))]
    return len(past) > 1 and any(map(_DATED.search, said))


_DATED = re.compile(
    r"\b(?:yesterday|today|tonight|last|ago|this (?:morning|week|month|year)|\d{4}|on \w+day)\b",
    re.I,
)


def _stands(sentence: str, draft: Draft, setting: Setting) -> bool:
    """Whether a leaning sentence can be understood without the one before it."""
    if draft.language == "zh":
        return "我" in sentence or len(sentence) > 15
    if setting.question and draft.text.startswith(setting.name("en")):
        return True
    # "This necklace is a gift from my grandma" names its subject, "It is a gift" does not.
    named = re.match(
        r"(?:this|these|those|his|her|their|everyone) (?!is|are|was|were)\w", sentence, re.I
    )
    return bool(named and person_english.FIRST_PERSON.search(sentence))


def to_fact(draft: Draft, setting: Setting) -> Fact:
    turn = setting.turn
    statement = parse_statement(draft.text)
    name = setting.name(draft.language)
    kind = draft.kind
    if kind is None and statement and statement.subject == name and statement.slot in CORE_SLOTS:
        kind = Kind.CORE
    if kind is None:
        kind = Kind.EPISODIC if _happened(draft) else Kind.SEMANTIC
    return Fact(
        text=draft.text,
        sources=(turn.id,),
        kind=kind,
        valid_from=_valid_from(draft.day, turn.time),
        told_at=turn.time,
        subject=subject_of(draft.text, statement, name),
        retracts=draft.retracts,
        forget=draft.forget,
    )


def subject_of(text: str, statement: Statement | None, speaker: str) -> str:
    """Who or what a text is about: what it states, else its speaker where it begins with them."""
    if statement is not None:
        return statement.subject
    return speaker if text.startswith(speaker) else ""


def _valid_from(day: date | None, spoken: datetime | None) -> datetime | None:
    """The day it tells of, unless that is still to come; else when it was said."""
    if spoken is None or day is None or day >= spoken.date():
        return spoken
    return datetime.combine(day, time(), tzinfo=spoken.tzinfo)


def _happened(draft: Draft) -> bool:
    """Whether the sentence tells of an event: dated, or in the past."""
    if draft.day is not None and draft.language == "zh":
        return not re.search(r"\d岁|年龄|生日", draft.text)
    if draft.language == "zh":
        return bool(
            re.search(
                r"[去买做看吃到过完搬参见收](?:过)?了|过(?:了|一[次趟])|(?:去|到|来)过", draft.text
            )
        )
    if draft.day is not None and not re.search(r"\b(?:born|birthday|since)\b", draft.text):
        return True
    words = re.findall(r"[\w']+", draft.text)[:10]
    auxiliaries = {"has", "have", "is", "are", "be", "been", "get", "gets", "being", "the", "a"}
    return any(
        is_past(word) and before.casefold() not in auxiliaries and before.casefold() not in ADVERBS
        for before, word in pairwise(words)
    )


def _last_question(text: str) -> str | None:
    sentences = split_sentences(text)
    if not sentences:
        return None
    last = sentences[-1]
    screen = screen_chinese if language_of(last) == "zh" else screen_english
    return last if screen.is_question(last) and len(last) <= 120 else None
