"""A checked JSON answer from a chat model: asked once, asked again with the fault named, no more.

Reader and manager ask through this door. Invariant: what comes back has passed the caller's check,
or a MemogradError says why it has not; never a default in its place.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from memograd.errors import MemogradError
from memograd.memory.chat.chat_model import ChatMessage, ChatModel

logger = logging.getLogger(__name__)
T = TypeVar("T")
_FENCED = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)


class UnusableAnswer(Exception):
    """Raised by a check: what is wrong with the answer, in words the model can act on."""


def ask_checked(
    chat: ChatModel,
    messages: Sequence[ChatMessage],
    check: Callable[[Mapping[str, Any]], T],
    *,
    schema: Mapping[str, Any],
    max_tokens: int,
) -> T:
    """What `check` makes of the model's JSON object; one retry names the fault to the model.

    Raises MemogradError when the second answer is unusable too, or when the model fails.
    """
    tried = list(messages)
    for attempt in (1, 2):
        answer = chat.complete(tried, max_tokens=max_tokens, schema=schema)
        try:
            return check(find_object(answer))
        except UnusableAnswer as fault:
            if attempt == 2:
                raise MemogradError(
                    f"The chat model {chat.name!r} gave an unusable answer twice: {fault}"
                ) from None
            logger.warning("%s gave an unusable answer, asking again: %s", chat.name, fault)
            again = f"That cannot be used: {fault} Answer again, as JSON."
            tried.append({"role": "assistant", "content": answer})
            tried.append({"role": "user", "content": again})
    raise AssertionError("both attempts return or raise")


def find_object(answer: str) -> Mapping[str, Any]:
    """The JSON object in an answer, alone, in a code fence or among words.

    Raises UnusableAnswer when there is none.
    """
    candidates = [answer, *_FENCED.findall(answer)]
    decoder = json.JSONDecoder()
    for text in candidates:
        for start in (match.start() for match in re.finditer(r"\{", text)):
            try:
                found, _ = decoder.raw_decode(text, start)
            except (json.JSONDecodeError, RecursionError):
                continue
            if isinstance(found, dict):
                return found
    raise UnusableAnswer("it holds no JSON object.")
