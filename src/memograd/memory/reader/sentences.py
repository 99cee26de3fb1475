"""Cutting a text into sentences, in both scripts.

Invariant: joining the sentences gives back every visible character of the text, in order. Pure
functions.
"""

from __future__ import annotations

import re
from typing import Final

_CLOSERS = "\"'”’)）」』》】"
_EMOJI = "\U0001f300-\U0001faff\u2600-\u27bf"
_END: Final = re.compile(
    rf"[。！？；!?]+[{_CLOSERS}]*[{_EMOJI}\ufe0f]*\s*"  # Chinese needs no space behind its marks
    rf"|(?<=[!?.])[{_EMOJI}\ufe0f]+\s*"
    rf"|[.…]+[{_CLOSERS}]*(?=\s|$)\s*"
    r"|(?<=[\u3400-\u9fff])\.+(?=[\u3400-\u9fff]|$)"
    r"|[\r\n]+\s*"
)
_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|approx|e\.g|i\.e|a\.m|p\.m|u\.s|no|[a-z])\.$",
    re.IGNORECASE,
)


def split_sentences(text: str) -> list[str]:
    """The sentences with their marks, without surrounding spaces; empty ones are left out."""
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(text):
        piece = text[start : end.end()]
        if end.group().startswith(".") and _goes_on(piece.rstrip(), text[end.end() :]):
            continue
        sentences.append(piece.strip())
        start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if re.search(r"\w", sentence)]


def _goes_on(piece: str, rest: str) -> bool:
    """Whether the point belongs to an abbreviation, so that the sentence goes on."""
    if not rest or not _ABBREVIATION.search(piece):
        return False
    # "at 5 p.m. We left": an hour can end a sentence. "I" is a word, other letters are initials.
    ambiguous = re.search(r"(?:[ap]\.m|etc|u\.s|\bI|no)\.$", piece)
    return not ambiguous or not rest[0].isupper()
