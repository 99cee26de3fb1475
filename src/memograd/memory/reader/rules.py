"""The reader that needs no model: from turns to facts by the form of each sentence.

Greetings, questions, requests and reactions are dropped; what remains is worded to stand alone as
the trained reader words it (`wording.py`), and a bare answer ("Luna and Oliver!") carries its
question. What is dropped is not lost: the raw turn stays searchable behind the facts.

Invariants: every fact names the turn it came from, has no first person left, and is a person's own
words; the words of a secret are in no fact; the same turns give the same facts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from itertools import pairwise

from memograd.memory.language import language_of
from memograd.memory.reader import screen_chinese, screen_english
from memograd.memory.reader.fact import Fact
from memograd.memory.reader.forget import (
    asks_to_forget_next,
    asks_to_forget_that,
    request_to_forget,
)
from memograd.memory.reader.parts import own_sentences
from memograd.memory.reader.person_english import ADVERBS, is_past
from memograd.memory.reader.sentences import has_secret, split_sentences
from memograd.memory.reader.setting import Draft, Setting, finished
from memograd.memory.reader.wording import completed, resolved, say, say_answer
from memograd.memory.records.items import Kind
from memograd.memory.records.turns import NOT_PEOPLE, RawTurn
from memograd.memory.statements import Statement, parse_statement, wording

LONGEST_SENTENCE = 600  # characters; what goes on longer is pasted text, not a statement
LONGEST_QUESTION = 120
SECRET = "User told a secret, which is not kept."
SECRET_ZH = "用户说了一个秘密，不予保存。"
CORE_SLOTS = frozenset({"name", "called", "allergy", "birthday", "gender"})


class RuleReader:
    """Facts by rules, in English and Chinese, sentence by sentence.

    ignore: speakers whose turns give no facts, whatever their case; nor do those of tools.
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
            if turn.speaker in heard and turn.said_as not in NOT_PEOPLE:
                answers = index > 0 and turns[index - 1].speaker != turn.speaker
                setting = Setting(
                    turn, speakers, len(heard) == 1, question if answers else None, before
                )
                facts += [to_fact(draft, setting) for draft in _drafts(setting)]
            question, before = _last_question(turn.text), turn.text
        return facts


def _drafts(setting: Setting) -> list[Draft]:
    own = own_sentences(setting.turn.text)
    sentences = [text for _, _, text in own if len(text) <= LONGEST_SENTENCE]
    if len(sentences) > 1 and asks_to_forget_next(sentences[0]):
        return [
            taken_back
            for one in sentences[1:]
            if (taken_back := _taken_back(one, _read(one, setting, first=True), setting))
        ]
    drafts: list[Draft] = []
    asked = False
    for sentence, behind in pairwise([*sentences, ""]):
        if asked:
            asked = False
            continue  # this is what asked to forget the one before
        draft = _read(sentence, setting, first=not drafts)
        if behind and asks_to_forget_that(behind) and not request_to_forget(sentence):
            asked = True
            draft = _taken_back(sentence, draft, setting)
        if draft is not None:
            drafts.append(draft)
    return drafts


def _read(sentence: str, setting: Setting, *, first: bool) -> Draft | None:
    """The sentence as it stands alone, None where it is no news; a request names what to forget."""
    chinese = language_of(sentence) == "zh"
    if has_secret(sentence):
        # As a request to forget it, so that the turn that tells it is not shown either.
        text = SECRET_ZH if chinese else SECRET
        return Draft(text, None, "zh" if chinese else "en", retracts=True, forget=True)
    if chinese:
        bare = screen_chinese.strip_openers(sentence)
    else:
        bare = screen_english.strip_openers(sentence.replace("’", "'"), setting.speakers)
    asked = request_to_forget(bare)
    if asked and (setting.to_agent or asked[1]):
        return _topic(asked[0], setting)
    screen = screen_chinese if chinese else screen_english
    if not bare or screen.is_question(bare):
        return None
    if setting.to_agent and screen.is_procedural(bare):
        return say(bare, setting)
    noted = screen.strip_note(bare)
    if noted == bare and (screen.is_request(bare) or screen.is_reaction(bare)):
        return None
    short = len(noted) <= 14 and "我" not in noted if chinese else len(noted.split()) <= 8
    if first and setting.question and short:
        if wording(noted).terms <= wording(setting.before).terms:
            return None  # an echo of what the other said
        return say_answer(setting.question, noted, setting)
    if chinese:
        stated = screen_chinese.is_statement(noted)
    else:
        stated = screen_english.is_statement(completed(noted) or noted, setting.speakers)
    return say(noted, setting) if stated else None


def _topic(text: str, setting: Setting) -> Draft:
    """What is to be forgotten, as the speaker words it."""
    draft = resolved(text, setting)
    text = finished(draft.text, "。" if draft.language == "zh" else ".")
    return replace(draft, text=text, retracts=True, forget=True)


def _taken_back(sentence: str, draft: Draft | None, setting: Setting) -> Draft | None:
    """What is to be forgotten where the next sentence says "Delete that, please"."""
    if draft is not None and draft.retracts:
        return draft
    request = "，请删掉" if language_of(sentence) == "zh" else ", please delete it"
    asked = _read(sentence.rstrip(" .!。！?？") + request, setting, first=True)
    if asked is not None and asked.retracts:
        return asked
    if draft is None or not setting.to_agent:
        return None
    return replace(draft, retracts=True, forget=True)


def to_fact(draft: Draft, setting: Setting) -> Fact:
    """The draft with what kind of fact it is, about whom, and since when it is true."""
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
    return last if screen.is_question(last) and len(last) <= LONGEST_QUESTION else None
