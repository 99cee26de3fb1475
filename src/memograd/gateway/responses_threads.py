"""`previous_response_id`: the conversation that a response ended, for a request that goes on.

In a rollout a response's id names its call, and the conversation is read from the trace, so it is
there after a restart too. Outside of rollouts nothing is written down: the latest conversations are
held in memory. Invariant: a request goes on from a response of its own rollout or from none; the
instructions of the response before it are not carried over, as OpenAI says.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from memograd.gateway.backend import BackendAnswer
from memograd.gateway.calls import BegunCall, Calls
from memograd.gateway.conversation import answer_message
from memograd.gateway.protocol import Refused
from memograd.gateway.responses_request import API, ResponseRequest
from memograd.gateway.rows import dump

HELD_BYTES: Final = 64 * 1024 * 1024
"""Of conversations outside of rollouts, as JSON."""

Messages = Sequence[Mapping[str, Any]]


class Threads:
    """The conversations of a gateway's responses; for one event loop."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._held: OrderedDict[str, tuple[Messages, int]] = OrderedDict()
        self._bytes = 0

    async def before(self, asked: ResponseRequest, rollout_id: str | None) -> Messages:
        """The messages that the request goes on from; `Refused` where there is no such response."""
        previous = asked.previous_response_id
        if previous is None:
            return ()
        if rollout_id is None:
            if previous in self._held:
                self._held.move_to_end(previous)
                return self._held[previous][0]
            raise _unknown(previous)
        owner, _, number = previous.removeprefix("resp_").partition("_")
        counted = number.isascii() and number.isdigit() and len(number) < 10
        if owner != rollout_id or not counted:
            raise _unknown(previous)
        call = await self._calls.in_store(self._calls.store.call, rollout_id, int(number))
        if call is None or call.asked.get("api") != API:
            raise _unknown(previous)
        own = 1 if call.asked.get("instructions") else 0
        return [*call.messages[own:], answer_message(call.choices[0])]

    def follow(
        self, begun: BegunCall, asked: ResponseRequest
    ) -> tuple[str, Callable[[BackendAnswer], None]]:
        """The id of the response that is about to be made, and what remembers its answer."""
        if begun.rollout is not None:
            return f"resp_{begun.rollout.id}_{begun.number}", lambda _: None
        response_id = f"resp_{secrets.token_hex(12)}"
        if asked.store is False:
            return response_id, lambda _: None
        own = 0 if asked.instructions is None else 1
        said = begun.request.said()[own:]

        def remember(answer: BackendAnswer) -> None:
            thread = [*said, answer_message(answer.choices[0])]
            size = len(dump(thread))
            self._held[response_id] = (thread, size)
            self._bytes += size
            while self._bytes > HELD_BYTES and len(self._held) > 1:
                _, (_, freed) = self._held.popitem(last=False)
                self._bytes -= freed

        return response_id, remember


def _unknown(previous: str) -> Refused:
    return Refused(
        400,
        f"There is no response {previous!r} to go on from here.",
        code="previous_response_not_found",
        param="previous_response_id",
    )
