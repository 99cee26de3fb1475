"""The text that each token adds: for people who look at single tokens, and to see where it ends.

A byte-level token may hold a part of a character only. Invariant: the texts of all tokens, put
together, are the decoded whole; a character that takes several tokens is shown at its last one.
An answer is over with the very token that completes a text that ends it.
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


def ends_with_one_of(
    decode: Callable[[Sequence[int]], str], texts: Sequence[str]
) -> Callable[[Sequence[int]], bool]:
    """Whether token ids say one of `texts`, asked after every token of an answer.

    Looked at are as many of the last tokens as the longest text has bytes, and a few more for those
    that add no text: what stands before them was looked at when they were the last ones.
    """
    window = max(len(text.encode()) for text in texts) + 8

    def ends(ids: Sequence[int]) -> bool:
        said = decode(ids[-window:])
        return any(text in said for text in texts)

    return ends
