"""The models that an optimisation calls, each behind a gateway that writes its calls down.

The answering model is the local policy; the one that writes proposals is any OpenAI-compatible
server. Both are reached over HTTP as any agent would reach them, so what is counted is what was
served: calls and tokens come from the trace store and from no optimiser's own books.

Invariant: every call of an optimisation belongs to one rollout of the store, named by who asked
for what; a call that failed is remembered and ends the optimisation, whatever DSPy made of it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError

from memograd.errors import MemogradError
from memograd.gateway.admission import GatewayLimits
from memograd.gateway.app import create_app
from memograd.gateway.backend import Backend
from memograd.gateway.store import TraceStore
from memograd.web.running import running

# DSPy would fetch a list of models' prices from the network; ours has no price.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")


@dataclass(frozen=True)
class Spent:
    """Calls, and tokens in and out."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """DSPy logs every trial, and every answer that its longest cuts; the table says what came."""
    logger = logging.getLogger("dspy")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


class CountedModel:
    """A backend behind a gateway, and the rollouts of its callers."""

    def __init__(self, backend: Backend, url: str, store: TraceStore, most_tokens: int) -> None:
        self.name = backend.model
        self._backend, self._url, self._store = backend, url, store
        self._most_tokens = most_tokens

    @contextlib.contextmanager
    def caller(self, purpose: str, seed: int, *, temperature: float) -> Iterator[Caller]:
        """A rollout for everything that is asked within this block."""
        made = self._store.create(
            metadata={"purpose": purpose, "seed": seed},
            policy_version=self._backend.policy_version,
            seed=seed,
        )
        lm = dspy.LM(
            # DSPy reads a family of models out of some names; ours is whatever is served.
            "openai/served",
            api_base=f"{self._url}/rollout/{made.record.id}/v1",
            api_key=made.api_key,
            cache=False,  # or repeated attempts would be equal
            num_retries=0,  # the gateway tries again itself, and a call counts once
            temperature=temperature,
            max_tokens=self._most_tokens,
        )
        caller = Caller(lm, self._store, made.record.id)
        try:
            yield caller
        except BaseException as error:
            self._store.fail(made.record.id, f"{type(error).__name__}: {error}")
            raise
        if caller.spent.calls:  # what was never asked stays open
            self._store.finish(made.record.id)


class Caller:
    """A model as DSPy calls it, and what was spent on it."""

    def __init__(self, lm: dspy.LM, store: TraceStore, rollout: str) -> None:
        self.lm = lm
        self._store, self._rollout = store, rollout

    @property
    def spent(self) -> Spent:
        """What was answered so far."""
        calls = self._store.calls(self._rollout)
        return Spent(
            len(calls),
            sum(call.prompt_tokens for call in calls),
            sum(call.completion_tokens for call in calls),
        )


@contextlib.contextmanager
def served(
    backend: Backend, store: TraceStore, *, threads: int, most_tokens: int
) -> Iterator[CountedModel]:
    """The backend behind a gateway of its own, until the end of this block."""
    # Nobody but the rollouts made here may ask.
    limits = GatewayLimits(max_calls=max(threads * 2, 16))
    try:
        app = create_app(backend, store, key=secrets.token_urlsafe(24), limits=limits)
        with running(app) as url:
            yield CountedModel(backend, url, store, most_tokens)
    finally:
        backend.close()


class FailedCalls(BaseCallback):  # type: ignore[misc]
    """Remembers what failed, which optimisers count as bad answers, or pass over, and go on.

    errors: calls that gave no answer. unread: proposals in no form that DSPy could read.
    """

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.unread: list[BaseException] = []

    def on_lm_end(
        self, call_id: str, outputs: dict[str, Any] | None, exception: BaseException | None = None
    ) -> None:
        """As DSPy calls it after every request."""
        if exception is not None:
            self.errors.append(exception)

    def on_module_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """As DSPy calls it after every module, those around one that failed too."""
        if isinstance(exception, AdapterParseError) and exception not in self.unread:
            self.unread.append(exception)

    def check(self, doing: str) -> None:
        """Raise MemogradError where anything failed."""
        if self.errors:
            first = " ".join(str(self.errors[0]).split())
            raise MemogradError(
                f"{doing}: {len(self.errors)} calls failed, the first one with: {first[:500]}"
            )
