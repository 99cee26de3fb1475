"""Asking a reward model's server for scores.

A request that could not be sent, timed out, or met a server that was busy or broken is tried again
after a growing pause; a refusal (4xx) is not, it would be refused again, but a batch of too many
bytes (413) is asked for in halves. When the tries are used up, or the answer is not one finite
number per item, it raises: there is no score to fall back to.

Invariant: `score` returns exactly one finite number per item, in their order, or raises
`MemogradError`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memograd.errors import BadInput, MemogradError
from memograd.reward_model import api
from memograd.reward_model.scorer import Item
from memograd.reward_model.server import API_KEY_VARIABLE

AGAIN = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
ITEMS = 64
"""Answers of one request."""
FIRST_PAUSE = 0.25
"""Seconds before the second try; doubled each time."""
TOO_LONG = 413
"""Status of a body that has more bytes than the server takes."""

Read = TypeVar("Read", bound=BaseModel)


class TooLong(MemogradError):
    """The server takes no request of so many bytes."""


class RemoteRewardModel:
    """A reward model behind `url`; its key is in the environment (`MEMOGRAD_REWARD_MODEL_KEY`).

    timeout: seconds for one request. retries: further tries of a request that failed.
    """

    def __init__(self, url: str, *, timeout: float = 60.0, retries: int = 3) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadInput(f"url={url} of a reward model must begin with http:// or https://.")
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise BadInput(
                "Asking a reward model by URL needs httpx; run pip install 'memograd[gateway]'."
            ) from error
        try:
            host = httpx.URL(url).host
        except httpx.InvalidURL:
            host = ""
        if not host:
            raise BadInput(f"url={url} of a reward model is no address; write http://host:port.")
        self.url = url.rstrip("/")
        self._retries = retries
        key = os.environ.get(API_KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(timeout=timeout, headers=headers)

    def health(self) -> api.Health:
        """Who answers there; MemogradError if nobody does."""
        return _read(api.Health, self._ask("GET", "/health"), self.url)

    def length_slope(self) -> float:
        """The server's price of a character; BadInput if it has none."""
        slope = self.health().length_slope
        if slope is None:
            raise BadInput(
                f"The reward model at {self.url} has no fitted price of length; give "
                "length_slope=NUMBER instead."
            )
        return slope

    def score(self, items: Sequence[Item]) -> list[float]:
        """One score per item, in their order."""
        scores: list[float] = []
        for start in range(0, len(items), ITEMS):
            scores += self._score(items[start : start + ITEMS])
        return scores

    def _score(self, items: Sequence[Item]) -> list[float]:
        """Scores of one request, or of two where the server finds it too long."""
        body = {"items": [{"prompt": one.prompt, "answer": one.answer} for one in items]}
        try:
            answer = self._ask("POST", "/score-batch", body)
        except TooLong:
            if len(items) == 1:
                raise
            half = len(items) // 2
            return self._score(items[:half]) + self._score(items[half:])
        found = _read(api.BatchResponse, answer, self.url)
        if len(found.scores) != len(items):
            raise MemogradError(
                f"The reward model at {self.url} gave {len(found.scores)} scores for "
                f"{len(items)} answers."
            )
        return found.scores

    def _ask(self, method: str, path: str, body: Any = None) -> bytes:
        import httpx

        problem, tries = "", 0
        while tries <= self._retries:
            if tries:
                time.sleep(FIRST_PAUSE * 2 ** (tries - 1))
            tries += 1
            try:
                response = self._http.request(method, self.url + path, json=body)
            except UnicodeEncodeError as error:
                raise MemogradError(
                    f"A text for the reward model at {self.url} holds half a character (a lone "
                    "surrogate), which cannot be sent."
                ) from error
            except httpx.RequestError as error:
                problem = str(error) or type(error).__name__
                continue
            if response.is_success:
                return response.content
            problem = f"status {response.status_code}: {response.text[:200]}"
            if response.status_code not in AGAIN:
                break
        kind = TooLong if problem.startswith(f"status {TOO_LONG}") else MemogradError
        raise kind(
            f"The reward model at {self.url} did not answer {path} (tries: {tries}; {problem})."
        )


def _read(kind: type[Read], content: bytes, url: str) -> Read:
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise MemogradError(
            f"What answers at {url} is no reward model's server: {error.errors()[0]['msg']}."
        ) from error
