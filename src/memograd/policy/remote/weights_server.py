"""A vLLM server that holds one version of all weights, and is told the next one by its folder.

Where all weights are trained there is no adapter to load beside the others: the server's own
weights are exchanged. It is told so in the order

    pause (answers keep)  ->  named "loading"  ->  reload_weights from the folder
        ->  prefix cache dropped, answers under way computed anew  ->  named  ->  resume

so an answer that was under way goes on, its later tokens drawn by the new weights from keys and
values of the new weights. vLLM says of every answer which version drew which of its tokens
(`/inference/v1/generate`), and changes the version only while it rests; so what is said of a token
is what drew it. A server that restarted says "default", one whose loading broke off "loading": both
are names that nobody asked for, and `memograd.policy.remote.pool` tells such a server again.

Invariant: a server has the name of a version only if all of that version's folder was loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from memograd.errors import BadInput
from memograd.policy.remote.server import (
    OWN_DISTRIBUTION,
    QUICK_SECONDS,
    AnswersWanted,
    SamplingFailed,
    ServedAnswer,
    ServedAnswers,
    ServerGone,
    ServerRefused,
    VllmServer,
)

GENERATE: Final = "/inference/v1/generate"
FRESH: Final = "default"
"""What vLLM calls the weights that it was started with."""
LOADING: Final = "loading "
"""Before the name of a version that is not loaded yet."""


class WeightsServer(VllmServer):
    """A server whose weights are exchanged; the arguments are those of `VllmServer`."""

    holds_one: ClassVar[bool] = True

    _root: str | None = None
    """What it was started with, a folder or a hub id."""

    def check_fit(self) -> None:
        """Raises `BadInput` unless it exchanges weights and says which drew a token."""
        try:
            self._root = self.models()[0].root
            self._version()
            self._ask("POST", GENERATE, {}, QUICK_SECONDS)
        except ServerRefused as error:
            if error.status not in (400, 422):  # an empty question is no question
                raise BadInput(
                    f"sampler.url: {self.url} cannot take all weights of a model ({error}): start "
                    "it with VLLM_SERVER_DEV_MODE=1 vllm serve ... --enable-scale-out (vLLM 0.32 "
                    "or later), or use tuning=lora"
                ) from error
        except ServerGone as error:
            raise BadInput(f"sampler.url: {error}") from error

    def load(self, name: str, folder: str) -> None:
        """Let it answer from the weights in `folder` and call them `name`, unless it does; answers
        under way go on with them."""
        if self._version() != name:
            self._exchange(name, folder)
        self._told("/resume")  # also where it has the name: resuming may be what broke off

    def _exchange(self, name: str, folder: str) -> None:
        self._told("/pause?mode=keep")
        self._name(LOADING + name)
        body = {"method": "reload_weights", "kwargs": {"weights_path": folder}}
        self._told("/collective_rpc", body)
        dropped = self._asked(
            "POST",
            "/reset_prefix_cache?reset_running_requests=true&reset_external=true",
            None,
            self._load_seconds,
        )
        if dropped.get("success") is not True:
            raise ServerGone(
                f"{self.url} did not drop the keys and values of the weights before {name}"
            )
        self._name(name)

    def unload(self, name: str) -> None:
        """Nothing: the next version takes its place."""

    def restore(self) -> None:
        """Have again the weights that it was started with."""
        if self._root is not None:
            self.load(FRESH, self._root)

    def answer(self, wanted: AnswersWanted) -> ServedAnswers:
        """Draw the answers from the weights that are loaded, whatever `wanted` calls them; each
        says which drew it. Raises as `VllmServer.answer`."""
        greedy = wanted.temperature == 0  # all answers are one, and vLLM draws it once only
        sampling: dict[str, Any] = {
            "n": 1 if greedy else wanted.count,
            "temperature": wanted.temperature,
            "max_tokens": wanted.max_tokens,
            "seed": wanted.seed,
            "logprobs": wanted.top_logprobs,
            "stop_token_ids": list(wanted.end_ids),
            "skip_special_tokens": False,
            "include_stop_str_in_output": True,
            **OWN_DISTRIBUTION,
            "top_p": wanted.top_p,
        }
        if wanted.stop:
            sampling["stop"] = list(wanted.stop)
        body: dict[str, Any] = {
            "token_ids": list(wanted.prompt),
            "sampling_params": sampling,
            "return_token_ids": True,
        }
        if wanted.cache_salt is not None:
            body["cache_salt"] = wanted.cache_salt
        found = self._asked("POST", GENERATE, body, self._seconds)
        try:
            self._check_prompt(found.get("prompt_token_ids"), wanted)
            choices = sorted(found["choices"], key=lambda choice: choice["index"])
            answers = tuple(self._generated(choice, wanted) for choice in choices)
            details = (found.get("usage") or {}).get("prompt_tokens_details") or {}
            reused = int(details.get("cached_tokens") or 0)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise SamplingFailed(
                f"{self.url} gave an answer that cannot be read ({error!r}); it must be vLLM 0.32 "
                "or later, which names the weights of every token."
            ) from error
        answers = answers * wanted.count if greedy else answers
        if len(answers) != wanted.count:
            raise SamplingFailed(
                f"{self.url} gave {len(answers)} answers where {wanted.count} were asked for."
            )
        return ServedAnswers(answers, reused)

    def _generated(self, choice: Mapping[str, Any], wanted: AnswersWanted) -> ServedAnswer:
        self._check_ended(choice)
        ids = self._known_ids(choice["token_ids"], wanted)
        content = choice["logprobs"]["content"]
        spans = tuple(
            (str(span["version"]), int(span["end"]) - int(span["start"]))
            for span in choice["weight_versions"]
        )
        if sum(tokens for _, tokens in spans) != len(ids):
            raise ValueError(f"versions of {spans} tokens for {len(ids)}")
        return ServedAnswer(
            ids=ids,
            logprobs=self._checked(ids, [one["logprob"] for one in content]),
            stop_reason="length" if choice.get("finish_reason") == "length" else "end",
            tops=tuple(
                tuple((int(top["token_id"]), float(top["logprob"])) for top in one["top_logprobs"])
                for one in (content if wanted.top_logprobs else ())
            ),
            spans=spans,
        )

    def _version(self) -> str:
        return str(self._asked("GET", "/weight_info", None, QUICK_SECONDS).get("weight_version"))

    def _name(self, name: str) -> None:
        self._told("/update_weight_version", {"new_version": name})

    def _told(self, path: str, body: Any = None) -> None:
        self._ask("POST", path, body, self._load_seconds)
