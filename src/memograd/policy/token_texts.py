"""The text that each token adds, for people who look at single tokens.

A byte-level token may hold a part of a character only. Invariant: the texts of all tokens, put
together, are the decoded whole; a character that takes several tokens is shown at its last one.
Imports nothing of memograd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

UNFINISHED = "\ufffd"


def token_texts(decode: Callable[[list[int]], str], ids: Sequence[int]) -> list[str]:
    """One text a token of `ids`.

    `decode` gives the text of any stretch of tokens, special tokens included. Only the stretch
    since the last whole character is decoded again, so long texts take linear time.
    """
    texts: list[str] = []
    begin = whole = 0  # `ids[begin:whole]` is the last token that ended a character
    for end in range(1, len(ids) + 1):
        before = decode(list(ids[begin:whole]))
        now = decode(list(ids[begin:end]))
        if now.endswith(UNFINISHED) and end < len(ids):
            texts.append("")
            continue
        texts.append(now[len(before) :])
        begin, whole = whole, end
    return texts
