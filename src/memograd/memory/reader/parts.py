"""The parts of a message that are judged one by one: sentences, and the clauses of a sentence.

Invariant: a part stands in the message, in these letters, where its place says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memograd.memory.language import language_of, simplified
from memograd.memory.reader import screen_chinese, screen_english
from memograd.memory.reader.answers import begins_bare, told_in_full
from memograd.memory.reader.choices import chosen
from memograd.memory.reader.idle import is_idle
from memograd.memory.reader.sentences import OwnWords, foreign, split_sentences
from memograd.memory.reader.wording import LISTED
from memograd.memory.records.turns import NOT_PEOPLE, RawTurn

SHORT_ANSWER: Final = 8  # words, or twice as many Chinese characters
# Of an assistant's message the beginning is read for facts, which takes one row of the model. The
# rest of a long one is a list, a draft or an explanation; the turn is kept and searched as a whole.
ASSISTANT_READ: Final = 1_000  # characters

# People who dictate, or type on a phone, put a space between Chinese clauses and no comma. And
# 34,500 is one number.
_WITHIN = r"(?:[^,，;；\s]|(?<=\d),(?=\d)|\s(?![\u3400-\u9fff\s])|(?<![\u3400-\u9fff\s])\s|[\r\n])"
_CLAUSE: Final = re.compile(rf"{_WITHIN}+(?:[,，;；]|[ \u3000]+)?")
_TOLD_APART: Final = re.compile(
    rf"(?:(?! and (?:my|i|i'm|our|we)\b){_WITHIN})+(?:[,，;；]|[ \u3000]+(?=[\u3400-\u9fff]))?",
    re.I,
)
# "My husband Neville, who has Parkinson's": what it says of him goes with him.
_RELATIVE: Final = re.compile(r"(?:who|whose|whom|which|where)\b(?!.*\?)", re.IGNORECASE)
_BETWEEN: Final = " ,，、"  # clauses


def read_of_assistant(text: str) -> tuple[str, list[tuple[int, int, str]]]:
    """The beginning of an assistant's message, and its sentences with their places."""
    return beginning(text, own_sentences(text))


def read_of_user(text: str) -> list[tuple[int, int, str]]:
    """The sentences of a user's message with their places, and the clauses of each."""
    found = []
    for start, end, sentence in own_sentences(text):
        clauses = [(start + at, said) for at, said in told_apart(sentence)]
        found.append((start, end, sentence))
        found += [(at, at + len(said), said) for at, said in clauses if said != sentence]
    return found


def clauses_of(sentence: str) -> list[tuple[int, str]]:
    """The clauses, each with its place; a relative one with what it tells of."""
    found: list[tuple[int, int]] = []
    for one in _CLAUSE.finditer(sentence):
        start = one.start() + len(one[0]) - len(one[0].lstrip(_BETWEEN))
        if found and _RELATIVE.match(sentence, start):
            found[-1] = (found[-1][0], one.end())
        else:
            found.append((start, one.end()))
    return [(start, sentence[start:end].rstrip(_BETWEEN)) for start, end in found]


def told_apart(sentence: str) -> list[tuple[int, str]]:
    """The clauses, each with its place."""
    found = [(one.end(), one[0].lstrip(_BETWEEN)) for one in _TOLD_APART.finditer(sentence)]
    return [(end - len(said), said.rstrip(_BETWEEN)) for end, said in found]


def beginning(
    text: str, sentences: Sequence[tuple[int, int, str]]
) -> tuple[str, list[tuple[int, int, str]]]:
    """What is read of an assistant's message, and the sentences in it."""
    first = [one for one in sentences if one[0] < ASSISTANT_READ]
    return (text[: first[-1][1]] if first else ""), first


def own_sentences(text: str) -> list[tuple[int, int, str]]:
    """Beginning, end and text of each that by its form is the speaker's own."""
    own = OwnWords(foreign(text))
    placed = [
        (start, start + len(sentence), sentence) for start, sentence in placed_sentences(text)
    ]
    return [one for one in placed if own.has(one[0], one[1])]


def placed_sentences(text: str) -> list[tuple[int, str]]:
    """The sentences with their places.

    What ends in a colon goes on with its list, and "New sim." with the number behind it.
    """
    placed: list[tuple[int, str]] = []
    after = 0
    for sentence in split_sentences(text):
        start = text.find(sentence, after)
        after = start + len(sentence)
        last = placed[-1][1] if placed else ""
        listed = _HEADS.search(last) and (LISTED.match(sentence) or _NUMBER.search(last))
        if listed or (_is_figure(sentence) and last and is_short(last, 5) and not asks(last)):
            first = placed.pop()[0]
            start, sentence = first, text[first:after]
        placed.append((start, sentence))
    return placed


def _is_figure(sentence: str) -> bool:
    """Whether it has digits and no word, so that it says nothing without the words before it."""
    return re.search(r"\d", sentence) is not None and re.search(r"[^\W\d_]{2}", sentence) is None


_HEADS: Final = re.compile(r"[:：]\s*(?:$|\n)")
_NUMBER: Final = re.compile(r"\n\s*\d{1,2}[.)、]$")  # a point ends a sentence, but not this one


def asks(text: str) -> bool:
    """Whether a sentence is a question."""
    if language_of(text) == "zh":
        return screen_chinese.is_question(text)
    return screen_english.is_question(text)


_SUPPOSES: Final = re.compile(
    r"\W*(?:suppose|supposing|imagine|(?:let'?s )?say (?=(?:i|we|my|you|someone)\b)"
    r"|assuming|assume|hypothetically|what if)\b"
    r"|\W*(?:假[设設如使定]|要是|如果|倘若|万一|萬一)",
    re.IGNORECASE,
)


def supposes(text: str) -> bool:
    """Whether it asks what would be, and so tells of nobody: 假设我月收十万，要缴多少税？"""
    if re.search(r"[(（]", text):  # "say I had a farm (I'm a librarian)"
        return False
    return _DREAMS.match(text) is not None or (asks(text) and _SUPPOSES.match(text) is not None)


_DREAMS: Final = re.compile(
    r"\W*(?:(?:but|so|ok|lol|and) )?(?:what if (?:i|we|my|our)\b|if (?:i|we) (?:ever )?won\b)"
    r"|\W*(?:假如|假设|假設|要是)[^，,]{0,8}真(?!的)",
    re.IGNORECASE,
)
"""Asks nothing and still tells what is not so: "what if i turned vegan lol"."""


# "How do I wrap it?", 我该买哪个: who asks is in it, and nothing of them is told.
_ASKER: Final = re.compile(
    r"\b(?:do|can|should|could|would|will|shall|may|am|must) (?:i|we)\b"
    r"|我(?=该|应该|能|可以|要|怎么|[早中晚]上|得)",
    re.IGNORECASE,
)
_SPEAKER: Final = re.compile(r"\b(?:i|i'?m|i'?ve|my|me|we|our|us|mine)\b|[我咱俺]", re.IGNORECASE)
# What only a question begins with; "Tuesday?" may answer one.
_ASKS_BACK: Final = re.compile(
    r"^\W*(?:(?:and|but|so|ok|also|thanks),? )*(?:how|what|why|where|when|who|whose|which|can|could"
    r"|would|will|do|does|did|should|shall|is|are|am|have|has|any)\b"
    r"|怎么|什么|吗\W*$|哪|为什么|多少|能不能|要不要|可不可以",
    re.IGNORECASE,
)


def asks_openly(text: str) -> bool:
    """Whether it is a question whose only first person is who asks, so that it tells nothing."""
    said = _ASKER.sub("", text.replace("’", "'"), count=1)
    return asks(text) and said != text and _SPEAKER.search(said) is None


def asks_back(text: str) -> bool:
    """Whether it is a question by its words, which therefore answers none."""
    marked = asks(text) and _ASKS_BACK.search(simplified(text)) is not None
    return marked or screen_english.asks_unmarked(text)


def is_short(text: str, words: int = SHORT_ANSWER) -> bool:
    """Whether it may be a bare answer."""
    if language_of(text) == "zh":
        return len(text) <= 2 * words and "我" not in text
    subject = re.match(r"\s*(?:my|we|i(?:'m|'ve)?)\b \w+ \w+", text, re.I)
    return len(text.split()) <= words and not subject


# "Luna and Oliver!", "12 of them": names and numbers.
_NAMES: Final = re.compile(
    r"\W*(?:(?:[A-Z][\w'’-]*|\d[\d,.]*|and|or|of|the|an?|my|our)(?:[\s,&]+|\b(?=\W*$)))+\W*"
)
_ASKS_WHAT: Final = re.compile(
    r"(?:\w+,? )?(?:what|which|who|whose|where|when|how (?:many|much|old|long|far))\b",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(r"[^.!?]+[.!?]+(?=\s)")


def begins_short(text: str) -> bool:
    """Whether it may be a bare answer, and perhaps what goes on about it."""
    opening = _OPENING.match(text)
    return is_short(opening[0] if opening else text)


_LONGEST_ASKED: Final = 240  # characters of a question, with the choices below it
_CHOICES: Final = re.compile(
    r"([^\n.!。！]{3,200}[?？])\s*\n(?:[ \t]*(?:\d{1,2}|[a-dA-D])[.)、][^\n]+(?:\n+|$)){2,}$"
)


_CHOICES_IN_LINE: Final = re.compile(
    r"([^\n.!。！]{3,160}[?？])\s*[aA1][).:、． ]\s?[^\n]+?\s[bB2][).:、． ]\s?[^\n]+$"
)


def question_before(past: Sequence[RawTurn], turn: RawTurn) -> str | None:
    """The question that the turn may answer; a short one with the exchange before it."""
    if not past or past[-1].speaker == turn.speaker or past[-1].said_as in NOT_PEOPLE:
        return None
    # Only the end is looked at, which costs nothing however much was said.
    end = past[-1].text.rstrip()[-_LONGEST_ASKED:]
    if listed := _CHOICES.search(end) or _CHOICES_IN_LINE.search(end):
        return (listed[0] if chosen(listed[0], turn.text) else listed[1]).strip()
    sentences = split_sentences(past[-1].text)
    told = past[-1].said_as == "assistant" and sentences and sentences[-1].endswith("。")
    behind = len(sentences) > 1 and asks(sentences[-2])
    if told and not behind:  # 量一量缸放在哪里。 An assistant marks what it asks.
        return None
    at = _asked_at(sentences, past[-1], turn)
    if at is None or len(sentences[at]) > _LONGEST_ASKED:
        return None
    question = sentences[at]
    if at > 0 and _WHICH_ONE.match(question):
        choices = " ".join(one for one in sentences[:at] if _NUMBERED.search(one))
        if len(_NUMBERED.findall(choices)) > 1 and len(choices) <= _LONGEST_ASKED:
            return f"{choices} {question}"
    if is_short(question) and at > 0:
        if not _only_reacts(sentences[at - 1]):
            question = f"{sentences[at - 1]} {question}"
    elif is_short(question, 6) and len(past) > 2 and past[-3].speaker == past[-1].speaker:
        longest = len(past[-3].text) + len(past[-2].text)
        if asks(past[-3].text) and longest < 200:
            one = chosen(past[-3].text, past[-2].text)  # what was not chosen is not repeated
            first = one[0] if one else past[-3].text
            question = f"{first} ({past[-2].text.strip()}) {question}"
    return question


_WHICH_ONE: Final = re.compile(r"(?:so |and |now )?(?:which|what)\b", re.IGNORECASE)
_NUMBERED: Final = re.compile(r"\((?:[1-4]|[a-d])\) |\boption [1-4a-d]: ", re.IGNORECASE)


def _asked_at(sentences: Sequence[str], before: RawTurn, turn: RawTurn) -> int | None:
    """Which sentence of a message is the question that the turn may answer.

    People also go on behind it ("What are they called? So sweet"): then only a few words that make
    no sentence answer it. And they leave its mark out, which an assistant does not.
    """
    if not sentences:
        return None
    last = len(sentences) - 1
    person = before.said_as == "user"
    if asks(sentences[last]) or (person and screen_english.asks_unmarked(sentences[last])):
        return last
    if last == 0 or not asks(sentences[last - 1]):
        return None
    if not person:  # "Are you married? Then I know which flats to show you."
        asked, said = sentences[last - 1], turn.text
        bare = _BARE_VALUE.fullmatch(said) is not None or begins_bare(asked, said)
        return last - 1 if bare or told_in_full(asked, said) or chosen(asked, said) else None
    answer = next(iter(split_sentences(turn.text)), "")
    names = _NAMES.fullmatch(answer) is not None and is_short(answer, 4) and not is_idle(answer)
    return last - 1 if names and _ASKS_WHAT.match(sentences[last - 1]) else None


_BARE_VALUE: Final = re.compile(
    r"\W*(?:\d[\d.,:]*\s?[^\W\d_]{0,6}|both|neither|none|都有|都没有?|都不)\W*", re.IGNORECASE
)
"""Answers a question, whatever the assistant says behind it."""
_HEARD: Final = re.compile(
    r"(?:(?:that )?makes sense|understood|noted|fair enough|good to know|sounds good|got it|perfect"
    r"|no problem|great choice|good (?:choice|pick)|i see|thanks for (?:that|sharing))\W*",
    re.IGNORECASE,
)


def _only_reacts(sentence: str) -> bool:
    """Whether "Wow, that looks great!" says nothing of what is asked behind it."""
    if language_of(sentence) == "zh":
        return False
    if _HEARD.fullmatch(sentence):
        return True
    bare = screen_english.strip_openers(sentence, ())
    if re.match(r"your (?:\w+ ){1,4}(?:is|are|says?|has|have|shows?|was|were)\b", bare, re.I):
        return False  # "Your list says metformin. Are you still taking it?"
    return not bare or screen_english.is_reaction(bare) or screen_english.praises(bare)
