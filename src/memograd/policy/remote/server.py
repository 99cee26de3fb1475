"""One vLLM server over HTTP: token ids in, token ids and their log-probabilities out.

What is asked for is the model's own distribution at one temperature: nucleus, penalties and the
authors' recommended settings (`generation_config.json`) are all named and switched off. The
log-probabilities are those of that distribution where the server was started with
`--logprobs-mode processed_logprobs`; whether it was is for `memograd.policy.remote.probe` to find.

A server fails by being gone (`ServerGone`), by refusing (`ServerRefused`), or so that the run must
end (`SamplingFailed`).

Invariants: every call ends within its seconds, however slowly an answer drips; an answer is for the
very ids that were sent, or it is an error; nothing is tried twice here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import httpx
import numpy as np

from memograd.errors import BadInput, MemogradError


class SamplingFailed(MemogradError):
    """No server could do the work; nothing was learnt from the step, and the run can go on."""


class ServerGone(MemogradError):
    """One server cannot be reached, broke off, or took too long; another one may do the work."""


class ServerRefused(MemogradError):
    """One server answered that it will not do it; `status` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


OWN_DISTRIBUTION: Final = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""What a server might otherwise set as the model's authors recommend."""

QUICK_SECONDS: Final = 10.0
"""How long a question about the server itself may take."""


@dataclass(frozen=True)
class AnswersWanted:
    """`count` answers to `prompt` by the model or adapter `model`.

    Answer i is drawn from a seed of its own, `seed` + i. A token of `end_ids` ends an answer, and
    so does a text of `stop`; both stay in it. `cache_salt`: keys and values of other requests are
    used only if theirs is the same. `vocabulary`: how many tokens the asker knows; 0: it does not
    say.
    """

    model: str
    prompt: tuple[int, ...]
    count: int
    temperature: float
    max_tokens: int
    seed: int
    end_ids: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    cache_salt: str | None = None
    top_p: float = 1.0
    top_logprobs: int = 0
    vocabulary: int = 0


@dataclass(frozen=True)
class ServedAnswer:
    """One answer: its ids, the log-probability of each [C] float32, why it ended (`end` or
    `length`), and alternatives of each token as (id, log-probability), where they were asked for.

    `spans`: names of the weights that drew it, each with how many tokens, where the server says so.
    """

    ids: tuple[int, ...]
    logprobs: np.ndarray
    stop_reason: str
    tops: tuple[tuple[tuple[int, float], ...], ...] = ()
    spans: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ServedAnswers:
    """The answers to one prompt, of which the first `reused_tokens` were not run."""

    answers: tuple[ServedAnswer, ...]
    reused_tokens: int


@dataclass(frozen=True)
class ServedModel:
    """A model, or an adapter of the model `parent`, the longest sequence that it takes, and the
    folder or hub id that it was loaded from."""

    name: str
    parent: str | None
    longest: int | None
    root: str | None = None


def check_url(url: str) -> None:
    """Raise BadInput for what is no URL of a server; asks nobody."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # brackets without end, or a port that is none
        known = False
    if not known:
        raise BadInput(f"sampler.url={url} is no URL of a server: write http://host:port.")


class VllmServer:
    """The server at `url` (up to, or with, `/v1`), which learns versions of an adapter.

    api_key: sent as a bearer token. seconds: how long answers may take, and load_seconds: a
    version. `transport` is for httpx, where not the network is meant.
    """

    holds_one: ClassVar[bool] = False
    """Whether loading a version takes the one before it away."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        seconds: float = 600.0,
        load_seconds: float = 60.0,
        connections: int = 64,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        check_url(url)
        self.url = url.rstrip("/").removesuffix("/v1")
        self._seconds = seconds
        self._load_seconds = load_seconds
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            limits=httpx.Limits(max_connections=connections + 4),
            transport=transport,
            trust_env=transport is None,
        )

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def check_health(self) -> None:
        """Raises `ServerGone` unless the server is there and well."""
        try:
            self._ask("GET", "/health", None, QUICK_SECONDS)
        except ServerRefused as error:
            raise ServerGone(str(error)) from error

    def models(self) -> list[ServedModel]:
        """The models and adapters it knows, the model itself first."""
        answer = self._asked("GET", "/v1/models", None, QUICK_SECONDS)
        try:
            found = [
                ServedModel(
                    str(one["id"]), one.get("parent"), one.get("max_model_len"), one.get("root")
                )
                for one in answer["data"]
            ]
        except (KeyError, TypeError) as error:
            raise SamplingFailed(f"{self.url} lists no models as vLLM does: {answer}") from error
        return sorted(found, key=lambda one: one.parent is not None)

    def check_fit(self) -> None:
        """Raises `BadInput` where the server was not started for what is asked of it."""

    def load(self, name: str, folder: str) -> None:
        """Let it answer as `name` with what is in `folder`, which must not change meanwhile."""
        body = {"lora_name": name, "lora_path": folder}
        self._ask("POST", "/v1/load_lora_adapter", body, self._load_seconds)

    def unload(self, name: str) -> None:
        """Let it forget `name`; the folder may go then."""
        body = {"lora_name": name}
        self._ask("POST", "/v1/unload_lora_adapter", body, self._load_seconds)

    def restore(self) -> None:
        """Have again what it was started with; nothing of the model itself was changed."""

    def sleep(self) -> None:
        """Let go of the device's memory; weights go to the host's."""
        self._ask("POST", "/sleep?level=1", None, self._load_seconds)

    def wake_up(self) -> None:
        """Take the device's memory again."""
        self._ask("POST", "/wake_up", None, self._load_seconds)

    def answer(self, wanted: AnswersWanted) -> ServedAnswers:
        """Draw the answers.

        Raises `ServerGone`, `ServerRefused`, and `SamplingFailed` for an answer that cannot be
        learnt from, whoever asks again.
        """
        greedy = wanted.temperature == 0  # all answers are one, and vLLM draws it once only
        body: dict[str, Any] = {
            "model": wanted.model,
            "prompt": list(wanted.prompt),
            "n": 1 if greedy else wanted.count,
            "temperature": wanted.temperature,
            "max_tokens": wanted.max_tokens,
            "seed": wanted.seed,
            "logprobs": wanted.top_logprobs,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
            "add_special_tokens": False,
            "skip_special_tokens": False,
            "include_stop_str_in_output": True,
            "stop_token_ids": list(wanted.end_ids),
            **OWN_DISTRIBUTION,
            "top_p": wanted.top_p,
        }
        if wanted.stop:
            body["stop"] = list(wanted.stop)
        if wanted.cache_salt is not None:
            body["cache_salt"] = wanted.cache_salt
        answer = self._asked("POST", "/v1/completions", body, self._seconds)
        try:
            choices = sorted(answer["choices"], key=lambda choice: choice["index"])
            answers = tuple(self._answer(choice, wanted) for choice in choices)
            usage = answer.get("usage") or {}
            seen = usage.get("prompt_tokens", len(wanted.prompt))
            details = usage.get("prompt_tokens_details") or {}
            reused = int(details.get("cached_tokens") or 0)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise SamplingFailed(
                f"{self.url} gave an answer that cannot be read ({error!r}); it must be vLLM 0.10 "
                "or later, which returns token ids."
            ) from error
        if seen != len(wanted.prompt):
            raise SamplingFailed(
                f"{self.url} answered a prompt of {seen} tokens where {len(wanted.prompt)} were "
                "sent: let it take token ids as they are (no chat template, no added or dropped "
                "BOS)."
            )
        answers = answers * wanted.count if greedy else answers
        if len(answers) != wanted.count:
            raise SamplingFailed(
                f"{self.url} gave {len(answers)} answers where {wanted.count} were asked for."
            )
        return ServedAnswers(answers, reused)

    def _answer(self, choice: Mapping[str, Any], wanted: AnswersWanted) -> ServedAnswer:
        self._check_ended(choice)
        ids = choice.get("token_ids")
        scores = (choice.get("logprobs") or {}).get("token_logprobs")
        if ids is None or scores is None:
            raise SamplingFailed(
                f"{self.url} returns no token ids or no log-probabilities, so nothing can be "
                "learnt from its answers; use vLLM 0.10 or later."
            )
        self._check_prompt(choice.get("prompt_token_ids"), wanted)
        drawn = self._known_ids(ids, wanted)
        logprobs = self._checked(drawn, scores)
        tops = choice["logprobs"].get("top_logprobs") if wanted.top_logprobs else None
        return ServedAnswer(
            ids=drawn,
            logprobs=logprobs,
            stop_reason="length" if choice.get("finish_reason") == "length" else "end",
            tops=tuple(_alternatives(one) for one in tops or ()),
        )

    def _check_ended(self, choice: Mapping[str, Any]) -> None:
        """Raises `ServerGone` where somebody stopped the server before the answer was over."""
        if choice.get("finish_reason") == "abort":
            raise ServerGone(f"{self.url} was stopped in the middle of an answer")

    def _check_prompt(self, seen: Any, wanted: AnswersWanted) -> None:
        """Raises `SamplingFailed` where the prompt it says it saw is not the one that was sent."""
        if seen is not None and (ids := token_ids(seen)) != wanted.prompt:
            raise SamplingFailed(self._other_prompt(ids, wanted.prompt))

    def _known_ids(self, drawn: Any, wanted: AnswersWanted) -> tuple[int, ...]:
        """The ids that were drawn; raises `SamplingFailed` for one that the asker has not."""
        ids = token_ids(drawn)
        if wanted.vocabulary and max(ids, default=0) >= wanted.vocabulary:
            raise SamplingFailed(
                f"{self.url} drew the token {max(ids)}, and the model that learns has only "
                f"{wanted.vocabulary}: let it serve the run's model."
            )
        return ids

    def _checked(self, ids: Sequence[int], scores: Sequence[float]) -> np.ndarray:
        logprobs = np.asarray(scores, dtype=np.float32)
        if logprobs.shape != (len(ids),) or not ids or not np.isfinite(logprobs).all():
            raise SamplingFailed(
                f"{self.url} gave {len(ids)} token ids with {logprobs.shape} log-probabilities, "
                "which must be as many, and finite."
            )
        return logprobs

    def _other_prompt(self, seen: Sequence[int], sent: Sequence[int]) -> str:
        if tuple(seen) == tuple(sent[1:]):
            what = "without the first token that was sent (BOS was dropped)"
        elif tuple(seen[1:]) == tuple(sent):
            what = "with a token before those that were sent (BOS was added)"
        else:
            what = "that is not the one that was sent (another tokenizer, or a chat template)"
        return (
            f"{self.url} answered a prompt {what}: {list(seen[:8])}... for {list(sent[:8])}...; "
            "let it take token ids as they are."
        )

    def _asked(self, method: str, path: str, body: Any, seconds: float) -> dict[str, Any]:
        content = self._ask(method, path, body, seconds)
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise ServerGone(f"{self.url}{path} did not answer with JSON") from error
        if not isinstance(answer, dict):
            raise ServerGone(f"{self.url}{path} answered with something that is not an object")
        return answer

    def _ask(self, method: str, path: str, body: Any, seconds: float) -> bytes:
        """The answer's bytes; raises `ServerGone` and `ServerRefused`."""
        ends = time.monotonic() + seconds
        parts = []
        limits = httpx.Timeout(seconds, connect=min(seconds, QUICK_SECONDS))
        try:
            with self._client.stream(
                method, f"{self.url}{path}", json=body, timeout=limits
            ) as response:
                for part in response.iter_bytes():
                    parts.append(part)
                    if time.monotonic() > ends:
                        raise httpx.ReadTimeout("the answer drips")
                status = response.status_code
        except httpx.TimeoutException as error:
            raise ServerGone(f"{self.url}{path} did not answer within {seconds:g} s") from error
        except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: the client was closed
            raise ServerGone(f"{self.url}{path} broke off ({type(error).__name__})") from error
        content = b"".join(parts)
        if status == 200:
            return content
        said = _message(content)
        if status >= 500:
            raise ServerGone(f"{self.url}{path} failed with {status}: {said}")
        raise ServerRefused(f"{self.url}{path} refused with {status}: {said}", status)


def _message(content: bytes) -> str:
    """What an error's body says, in one line."""
    text = content.decode("utf-8", errors="replace")
    try:
        told = json.loads(text)
        told = told.get("error", told)
        text = told["message"] if isinstance(told, dict) else str(told)
    except (ValueError, KeyError, AttributeError):
        pass  # a body that is no JSON is its own message
    return " ".join(str(text).split())[:300]


def token_ids(told: Any) -> tuple[int, ...]:
    """Token ids as a server tells them. Raises ValueError for anything else."""
    if not isinstance(told, list) or not all(type(one) is int and one >= 0 for one in told):
        raise ValueError(f"no token ids: {told!r:.60}")
    return tuple(told)


def _alternatives(tops: Mapping[str, float] | None) -> tuple[tuple[int, float], ...]:
    """`{"token_id:17": -0.3}` as (17, -0.3)."""
    return tuple(
        (int(name.removeprefix("token_id:")), float(value)) for name, value in (tops or {}).items()
    )
