"""One call of an agent, from its request to its answer: begun, answered, written down, told.

Invariant: an answer reaches its agent only after it is in the trace store; a call whose reader goes
away, whose time is up or whose rollout is over meanwhile is in no trace and stops costing anything.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from memograd.gateway.admission import GatewayLimits
from memograd.gateway.backend import Backend, BackendAnswer, OnText, Prepared
from memograd.gateway.conversation import TracedConversation
from memograd.gateway.protocol import CallRefused, ChatRequest
from memograd.gateway.records import CallRecord, RolloutRecord
from memograd.gateway.store import TraceStore

T = TypeVar("T")

CONVERSATIONS: Final = 4096
"""Rollouts whose conversations are held in memory; others are read from the store again."""
LONG: Final = 100_000
"""Bytes of a request that is rendered beside the event loop; a few millions take seconds."""


class ReaderGone(Exception):
    """Nobody reads the answer any more."""


@dataclass(frozen=True)
class BegunCall:
    """A call that has its number, ready to be answered; `rollout` is None where none is kept."""

    request: ChatRequest
    prepared: Prepared
    seed: int
    rollout: RolloutRecord | None
    number: int
    agent: str
    asked: Mapping[str, Any]
    conversation: TracedConversation
    policy_version: int
    began_at: float


class Calls:
    """All calls of a gateway; for one event loop, with a thread for the store."""

    def __init__(self, backend: Backend, store: TraceStore, limits: GatewayLimits) -> None:
        self.backend = backend
        self.store = store
        self.limits = limits
        self._thread = _one_thread()
        self._conversations: OrderedDict[str, TracedConversation] = OrderedDict()
        self._answering: Counter[str] = Counter()

    def close(self) -> None:
        """Wait for what is being written; the application may be started again."""
        self._thread.shutdown()
        self._thread = _one_thread()

    async def in_store(self, ask: Callable[..., T], *arguments: Any) -> T:
        """Call a method of the store beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, ask, *arguments)

    async def sweep(self) -> None:
        """End rollouts that have crashed; those that wait for an answer have not."""
        if self._answering:
            await self.in_store(self.store.heard, list(self._answering))
        await self.in_store(self.store.expire)

    async def begin(
        self,
        request: ChatRequest,
        rollout_id: str | None,
        agent: str,
        size: int = 0,
        asked: Mapping[str, Any] | None = None,
    ) -> BegunCall:
        """Render a call's conversation, of `size` bytes as it came, and give it its number; raises
        what is wrong with it, and then it has none. `asked`: what its record says of it."""
        if (request.n or 1) > self.limits.max_choices:
            raise CallRefused(400, f"n is at most {self.limits.max_choices} here.", param="n")
        if request.top_logprobs and not request.logprobs:
            raise CallRefused(400, "top_logprobs needs logprobs=true.", param="top_logprobs")
        began_at = time.time()
        conversation = TracedConversation()
        if rollout_id is not None:
            conversation = await self._conversation(rollout_id)
        if size > LONG:  # tokenising it takes long, and everybody would wait
            prepared = await asyncio.to_thread(self.backend.prepare, request, conversation)
        else:
            prepared = self.backend.prepare(request, conversation)
        rollout, number, seed = None, 0, time.time_ns() % 2**31
        if rollout_id is not None:  # only now: what was refused is no call
            rollout, number = await self.in_store(self.store.begin_call, rollout_id)
            seed = _seed_of(rollout.seed, number)
        version = self.backend.policy_version
        return BegunCall(
            request=request,
            prepared=prepared,
            seed=seed,
            rollout=rollout,
            number=number,
            agent=agent,
            asked=asked or {},
            conversation=conversation,
            policy_version=version,
            began_at=began_at,
        )

    async def answer(
        self,
        begun: BegunCall,
        *,
        on_text: OnText | None = None,
        gone: Callable[[], Awaitable[None]] | None = None,
    ) -> BackendAnswer:
        """Answer a call and write it down.

        `gone` returns when nobody reads any more; then `ReaderGone` is raised. Raises `CallRefused`
        (504) when the answer takes too long.
        """
        rollout_id = None if begun.rollout is None else begun.rollout.id
        if rollout_id is not None:
            self._answering[rollout_id] += 1
        try:
            return await self._answer(begun, on_text, gone)
        finally:
            if rollout_id is not None:
                self._answering[rollout_id] -= 1
                if not self._answering[rollout_id]:
                    del self._answering[rollout_id]

    async def _answer(
        self,
        begun: BegunCall,
        on_text: OnText | None,
        gone: Callable[[], Awaitable[None]] | None,
    ) -> BackendAnswer:
        started = time.perf_counter()
        answering = asyncio.ensure_future(begun.prepared.run(begun.seed, on_text))
        waiting: set[asyncio.Future[Any]] = {answering}
        if gone is not None:
            waiting.add(asyncio.ensure_future(gone()))
        try:
            done, _ = await asyncio.wait(
                waiting,
                timeout=self.limits.call_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                raise CallRefused(
                    504,
                    f"The answer took more than {self.limits.call_seconds:g} s.",
                    kind="timeout_error",
                )
            if answering not in done:
                raise ReaderGone
            answer = answering.result()
        finally:
            for task in waiting:
                task.cancel()
        if begun.rollout is not None:
            call = _record(begun, answer, begun.rollout.id, time.perf_counter() - started)
            await self.in_store(self.store.record, call)
            self.backend.recall(call, begun.conversation)
        return answer

    async def _conversation(self, rollout_id: str) -> TracedConversation:
        """What the rollout has said; read from the store where it is not in memory."""
        held = self._conversations.get(rollout_id)
        if held is None:
            held = TracedConversation()
            for call in await self.in_store(self.store.calls, rollout_id):
                self.backend.recall(call, held)
            # Another call of the rollout may have read it meanwhile.
            held = self._conversations.setdefault(rollout_id, held)
        self._conversations.move_to_end(rollout_id)
        while len(self._conversations) > CONVERSATIONS:
            self._conversations.popitem(last=False)
        return held


def _one_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="memograd-traces")


def _record(begun: BegunCall, answer: BackendAnswer, rollout_id: str, latency: float) -> CallRecord:
    return CallRecord(
        rollout_id=rollout_id,
        number=begun.number,
        agent=begun.agent,
        asked=begun.asked,
        model=answer.model,
        policy_version=begun.policy_version,
        messages=tuple(begun.request.said()),
        tools=tuple(begun.request.tool_schemas()),
        sampling=answer.sampling,
        prompt_ids=answer.prompt_ids,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        logprobs_temperature=answer.logprobs_temperature,
        mismatch=answer.mismatch,
        began_at=begun.began_at,
        latency=latency,
        choices=answer.choices,
    )


def _seed_of(seed: int, number: int) -> int:
    """The seed of a rollout's call: by its number, so that the same calls draw the same again."""
    digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
