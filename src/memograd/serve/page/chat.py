"""The chat: what is recalled for a message, the answer, and what is written down of it, live.

    GET  /chat       the conversation with one user's memory
    POST /chat/say   one message; answered by a stream of HTML, one event a part that is ready

Without a configured chat model nothing answers, and the rest is the same: the message is learnt
from, and what a model would have been shown stands on the left. The manager is watched, so that the
page can say how sure it was of each operation, which the journal does not keep. Invariants: a
message that fails leaves no trace, as in `AssistantConversation`; the decisions are the manager's
own; messages that wait for a model, or for the one before them, leave the threads of all other
calls alone.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
from anyio.to_thread import run_sync
from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from memograd.assistant.conversation import AssistantConversation
from memograd.errors import BadInput, MemogradError
from memograd.memory import Memory
from memograd.memory.chat.chat_model import ChatModel
from memograd.memory.configured import configured_chat_model
from memograd.memory.journal import DatabaseFailed
from memograd.memory.manager.protocol import Change, MessageManager
from memograd.memory.manager.trained.manager import settled
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision
from memograd.memory.records.scope import Scope, check_unicode
from memograd.memory.results import hit_result, item_result, operation_result
from memograd.memory.search import Context
from memograd.serve.keys import Right
from memograd.serve.page.page_memory import PageMemory
from memograd.serve.page.view import PageRefused, View, Viewing
from memograd.serve.page.why import Reasons, explained
from memograd.serve.refusals import failure

if TYPE_CHECKING:
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState


logger = logging.getLogger(__name__)

MOST_TALKS: Final = 256
MOST_TEXT: Final = 20_000
THREADS: Final = 16
"""In which messages are answered, all talks together. A model may take minutes, and the routes have
40 threads for everything."""

routes = APIRouter()


@dataclass
class Talk:
    """One session's conversation over one memory."""

    memory: Memory
    decisions: NotedDecisions
    conversation: AssistantConversation | None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class OpenTalks:
    """The conversations of this process, the latest used of them."""

    def __init__(self, chat: ChatModel | None = None) -> None:
        """chat: the model that answers; None: that of the memory's settings, if they name one."""
        self._chat = chat
        self._talks: OrderedDict[tuple[str, str], Talk] = OrderedDict()
        self._lock = threading.Lock()
        self.threads = anyio.CapacityLimiter(THREADS)

    def chat_model(self, memory: Memory) -> ChatModel | None:
        """What answers; None where nothing is configured."""
        return self._chat or configured_chat_model(memory.store.settings)

    def of(self, key_id: str, user: str, memory: Memory) -> Talk:
        """The conversation of a session with a user's memory; begun if there is none."""
        with self._lock:
            talk = self._talks.pop((key_id, user), None)
            if talk is None:
                seen, decisions = watched(memory)
                chat = self.chat_model(memory)
                scope = Scope(user_id=user)
                answers = None if chat is None else AssistantConversation(seen, chat, scope)
                talk = Talk(seen, decisions, answers)
            self._talks[key_id, user] = talk
            if len(self._talks) > MOST_TALKS:
                self._talks.popitem(last=False)
            return talk


@routes.get("/chat")
def chat(view: Viewing, user: str = "") -> HTMLResponse:
    """The page of the chat; without a user's name it asks for one."""
    identity = view.memory.identity
    user = user or _user_of(identity.owner)
    if user:
        view.memory.check_owner(f"user:{user}")
    model = _talks(view).chat_model(view.served.memory)
    return view.page("chat.html", user=user, model=None if model is None else model.name)


@routes.post("/chat/say")
def say(view: Viewing, user: Annotated[str, Form()], text: Annotated[str, Form()]) -> Response:
    """Take one message; what follows from it comes part by part."""
    memory = view.memory
    memory.identity.need(Right.write)
    memory.check_owner(f"user:{user}")
    check_unicode(text, "the message")
    if not text.strip() or len(text) > MOST_TEXT:
        raise PageRefused(view.say("chat.empty", most=MOST_TEXT))
    talks = _talks(view)
    talk = talks.of(memory.identity.key_id, user, view.served.memory)
    headers = {"X-Accel-Buffering": "no"}
    parts = _parts(view, memory, talk, user, text, talks.threads)
    return StreamingResponse(parts, media_type="text/event-stream", headers=headers)


async def _parts(
    view: View,
    memory: PageMemory,
    talk: Talk,
    user: str,
    text: str,
    threads: anyio.CapacityLimiter,
) -> AsyncIterator[str]:
    """The answer to a message, as server-sent events of HTML.

    The talk is held between two parts and never while one is sent: whoever hangs up leaves this
    where it stands, and nobody would let go of the talk.
    """

    def recall() -> str:
        recalled = memory.context(text, ids={"user_id": user})
        return _event(view, "said", text=text, recalled=_recalled(recalled))

    def answer() -> str:
        talk.decisions.begin()
        operations, answer = memory.told(text, user, talk.memory, talk.conversation)
        rows = [
            (operation_result(event), talk.decisions.probability(event)) for event in operations
        ]
        return _event(view, "answered", answer=answer, operations=rows)

    try:
        yield await run_sync(recall)
        async with talk.turn:
            answered = await run_sync(answer, limiter=threads)
        yield answered
    except MemogradError as error:
        yield _event(view, "failed", sentence=_said(view, error))


def _said(view: View, error: MemogradError) -> str:
    """What is told of a failure: the chat model's as it is; the database's is for the log."""
    if not isinstance(error, DatabaseFailed):
        return view.told(str(error))
    logger.error("%s", error)
    return view.told(failure(error).detail)


def _recalled(context: Context) -> dict[str, Any]:
    """What a model is shown, in the order in which it is shown."""
    hits = [hit_result(hit, explain=True) for hit in context.items]
    reasons: list[Reasons] = list(explained(hits))
    return {
        "core": [item_result(item) for item in context.core],
        "items": list(zip(hits, reasons, strict=True)),
        "turns": [hit.record for hit in context.turns],
    }


def _event(view: View, part: str, **values: Any) -> str:
    html = bytes(view.page("chat_part.html", part=part, **values).body).decode()
    return "".join(f"data: {line}\n" for line in html.splitlines()) + "\n"


def _talks(view: View) -> OpenTalks:
    talks: OpenTalks = view.request.app.state.talks
    return talks


def _user_of(owner: str | None) -> str:
    """The user whose key it is; chats are with users, so that nobody else's items are recalled."""
    if owner is None:
        return ""
    sort, _, name = owner.partition(":")
    if sort != "user":
        raise BadInput("The chat is with a user's memory, and this key is bound to another owner.")
    return name


class NotedDecisions:
    """What was decided about one message."""

    def __init__(self) -> None:
        self._sure: dict[tuple[str, str | None], float] = {}

    def begin(self) -> None:
        """Another message begins: what was decided about the last one is told."""
        self._sure.clear()

    def note(self, decision: Decision) -> Decision:
        """Keep how sure a decision is."""
        op = decision.op
        named = op.item_id if op.kind.value in ("UPDATE", "DELETE") else op.text
        self._sure[op.kind.value, named] = decision.confidence
        return decision

    def probability(self, event: Event) -> float | None:
        """How sure the decision behind an event was; None of one that nobody was asked about."""
        kind = event.kind.value
        if event.kind in (EventKind.UPDATE, EventKind.DELETE):
            return self._sure.get((kind, event.subject))
        text = (event.after or {}).get("text")
        return self._sure.get((kind, text), self._sure.get((kind, None)))


def watched(memory: Memory) -> tuple[Memory, NotedDecisions]:
    """The same memory with a watched manager, and where its decisions are noted."""
    noted = NotedDecisions()
    manager: Any = settled(memory.manager)
    seen = copy.copy(memory)
    watch = _OfMessages if isinstance(manager, MessageManager) else _OfFacts
    seen.manager = watch(manager, noted)
    return seen, noted


class _OfFacts:
    def __init__(self, manager: Any, noted: NotedDecisions) -> None:
        self._manager, self._noted = manager, noted

    @property
    def actor(self) -> str:
        return str(self._manager.actor)

    def decide(
        self, state: MemoryState, fact: Fact, query: Query, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        return self._noted.note(self._manager.decide(state, fact, query, related))


class _OfMessages(_OfFacts):
    def decide_heard(
        self, heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str]
    ) -> list[Change]:
        changes: list[Change] = self._manager.decide_heard(heard, items, recent)
        for change in changes:
            self._noted.note(change.decision)
        return changes
