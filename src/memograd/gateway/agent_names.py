"""Whose call it is: what an agent is called in traces, where selective training looks for it.

    1. the header X-Agent-Name     3. user
    2. metadata.agent              4. the beginning of what it was told to be, and a digest of it

Frameworks (openai-agents, LangGraph, LangChain) send no names of their agents, but the agents of a
program are told different things in their system prompts, so the prompt names them:
"answer-from-what-the-tool-5d41c0". Numbers and white space are left out of the digest, because many
prompts hold today's date. An agent that was told nothing is "agent". Invariant: a name is a
function of the request alone, the same in every rollout and every run.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from memograd.gateway.protocol import ChatRequest

UNNAMED: Final = "agent"
LONGEST: Final = 200
WORDS, CHARACTERS = 5, 40

_CHANGES: Final = re.compile(r"[\d\s]+")
_WORD: Final = re.compile(r"[^\W\d_]+")


def agent_name(request: ChatRequest, header: str | None) -> str:
    """The name; `header` is X-Agent-Name as it came."""
    named = (request.metadata or {}).get("agent")
    given = as_utf8(header) or (named if isinstance(named, str) else None) or request.user
    return given[:LONGEST] if given else _name_of(_instructions(request))


def _instructions(request: ChatRequest) -> str:
    """The system messages before anything else is said; images and the like are no name."""
    told: list[str] = []
    for message in request.messages:
        if message.role not in ("system", "developer"):
            break
        content = message.content
        parts = [content] if isinstance(content, str) else [part.text for part in content or ()]
        told += [part for part in parts if part]
    return "\n".join(told)


def _name_of(instructions: str) -> str:
    words = _WORD.findall(instructions)[:WORDS]
    if not words:
        return UNNAMED
    digest = hashlib.sha256(_CHANGES.sub("", instructions).encode("utf-8", "surrogatepass"))
    return f"{'-'.join(words).lower()[:CHARACTERS]}-{digest.hexdigest()[:6]}"


def as_utf8(header: str | None) -> str | None:
    """A header's text: HTTP's own alphabet is Latin-1, what clients send beyond ASCII is UTF-8."""
    try:
        return header and header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return header
