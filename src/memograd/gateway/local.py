"""The backend over the local policy: token ids in, token ids out, through the engine.

The chat template writes the conversation once; an answer that comes back is the very ids that were
drawn (`conversation`). Invariants: what cannot be served is refused by name, never ignored; a call
that names no seed is drawn from its rollout's, so the same calls draw the same ids again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memograd.errors import BadInput
from memograd.gateway.backend import BackendAnswer, OnText
from memograd.gateway.conversation import TracedConversation, from_answer, to_template
from memograd.gateway.engine import MAX_BATCH, DrawnSample, Engine, EngineJob, TextStream
from memograd.gateway.grammar import GrammarConstraint, Grammars, grammar_of
from memograd.gateway.protocol import CallRefused, ChatRequest, TextRequest
from memograd.gateway.records import CallRecord, Choice
from memograd.gateway.remote_engine import RemoteEngine
from memograd.policy.continuous import SampleRequest
from memograd.policy.model_policy import ModelPolicy
from memograd.rollout.chat_ids import ChatIds, NextTurn
from memograd.rollout.tool_calls import use_tool_template

NO_EFFECT: Final = {
    *("store", "service_tier", "safety_identifier", "prompt_cache_key", "verbosity"),
    *("prompt_cache_retention", "include_reasoning", "reasoning_effort"),
}
"""Fields that change no answer; how long to think is a hint to models that think."""
ONLY: Final[dict[str, tuple[Any, ...]]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "echo": (False,),
    "best_of": (1,),
    "suffix": ("",),
}
"""Fields that may have a value without effect, beside null."""


TEXT: Final = {"type": "text"}
"""The `response_format` that is none."""


@dataclass(frozen=True)
class AnswerSampling:
    """How answers are drawn where a request does not say; `forced` wins over what it says.

    Training forces its own temperature and the whole distribution, since the loss is computed for
    these. `max_tokens` bounds every answer.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    forced: bool = False


class LocalBackend:
    """A `ModelPolicy` behind the gateway; `max_batch` samples are decoded together. Where servers
    draw for the policy, they do here too.

    `chat_template`: a Jinja file that shows tools, for requests with tools; the model's own or the
    built-in one otherwise (`memograd.rollout.tool_calls`).
    """

    def __init__(
        self,
        policy: ModelPolicy,
        *,
        sampling: AnswerSampling | None = None,
        chat_template: Path | None = None,
        max_batch: int = MAX_BATCH,
    ) -> None:
        self.model = policy.name
        self.sampling = sampling or AnswerSampling()
        self.engine: Engine | RemoteEngine = (
            Engine(policy, max_batch=max_batch)
            if policy.remote is None
            else RemoteEngine(policy.remote, policy.end_ids)
        )
        self._policy = policy
        self._version = 0
        self._grammars = Grammars(policy)
        self._plain = ChatIds(policy.tokenizer, end_ids=policy.end_ids)
        self._with_tools: ChatIds | None = None
        self._no_tools = ""
        own = policy.tokenizer.chat_template
        try:
            use_tool_template(policy.tokenizer, chat_template)
            shown = policy.tokenizer.chat_template
            self._with_tools = ChatIds(
                policy.tokenizer, end_ids=policy.end_ids, template_options={"chat_template": shown}
            )
        except BadInput as error:
            if chat_template is not None:
                self.engine.close()
                raise
            self._no_tools = str(error)
        finally:
            policy.tokenizer.chat_template = own

    @property
    def policy_version(self) -> int:
        """How often the weights have changed."""
        return self._version

    @property
    def drawn_by(self) -> int | None:
        """The version of the weights that answers now; None: what training began with."""
        if isinstance(self.engine, RemoteEngine):
            return self.engine.version
        return self._policy.version if self._policy.speaker == "trained" else None

    def weights_changed(self, sampling: AnswerSampling | None = None) -> None:
        """Serve with the weights as they are now, which were changed while the engine rested."""
        self._version += 1
        self.sampling = sampling or self.sampling
        self.engine.resume()

    def close(self) -> None:
        """End the engine."""
        self.engine.close()

    def prepare(self, request: ChatRequest, conversation: TracedConversation) -> LocalRequest:
        """Render the conversation; raises `CallRefused` for what cannot be served."""
        _refuse_unserved(request)
        if isinstance(request, TextRequest):
            return self._going_on(request, conversation)
        said, tools = request.said(), request.tool_schemas()
        uses_tools = bool(tools) or any(
            message["role"] == "tool" or message.get("tool_calls") for message in said
        )
        if uses_tools and self._with_tools is None:
            raise CallRefused(400, self._no_tools, param="tools")
        chat = self._with_tools if uses_tools and self._with_tools else self._plain
        known = conversation.find(said)
        messages = to_template(said, known.written)
        if known.ids is None:
            turn = chat.first(messages, tools)
        else:
            turn = chat.after(known.ids, messages, tools)
        ids = turn.ids if turn.starts_row else (*(known.ids or ()), *turn.ids)
        return LocalRequest(
            backend=self,
            prompt=ids,
            turn=turn,
            tools=bool(tools),
            sampling=self._settled(request, ids),
            top_logprobs=(request.top_logprobs or 0) if request.logprobs else 0,
            constraint=self._constraint(request),
        )

    def _constraint(self, request: ChatRequest) -> GrammarConstraint | None:
        """What the answer is held to."""
        grammar = grammar_of(request)
        if grammar is None:
            return None
        if isinstance(self.engine, RemoteEngine):
            raise CallRefused(
                400,
                "Sampling servers do not say which tokens a grammar allowed, so an answer that is "
                "held to one cannot be learnt from; ask without it, or train with sampler=local.",
                param="response_format",
            )
        param = "tools" if request.response_format in (None, TEXT) else "response_format"
        return self._grammars.constraint(grammar, param)

    def _going_on(self, request: TextRequest, conversation: TracedConversation) -> LocalRequest:
        """A plain text, from the ids of its longest known beginning."""
        known, rest = conversation.find_text(request.text)
        tokenizer = self._policy.tokenizer
        new = tokenizer.encode(rest, add_special_tokens=False) if known else None
        ids = (*known, *(self._policy.encode(request.text) if new is None else new))
        return LocalRequest(
            backend=self,
            prompt=ids,
            turn=NextTurn(ids, starts_row=True),
            tools=False,
            sampling=self._settled(request, ids),
            top_logprobs=(request.top_logprobs or 0) if request.logprobs else 0,
            constraint=self._constraint(request),
        )

    def recall(self, call: CallRecord, conversation: TracedConversation) -> None:
        """What was cut off by a stop string or its reader is not what the model said."""
        if call.asked.get("api") == "completions":
            text = call.messages[0]["content"]
            for choice in call.choices:
                if call.prompt_ids is not None and choice.token_ids is not None:
                    ended = self._ended(choice.token_ids)
                    ids = choice.token_ids[:-1] if ended else choice.token_ids
                    # As its reader was told it: special tokens that were drawn are not in it.
                    whole = text + self._decode(list(ids))
                    conversation.remember_text(whole, (*call.prompt_ids, *ids))
            return
        stops = call.sampling.get("stop") or ()
        written = [
            None
            if choice.token_ids is None or self._cut_off(choice.token_ids, stops)
            else self._plain.action_text(choice.token_ids)
            for choice in call.choices
        ]
        conversation.remember_call(call, written)

    def _cut_off(self, ids: tuple[int, ...], stops: Sequence[str]) -> bool:
        """Whether a stop string ended what the reader was told of these tokens."""
        if not stops:
            return False
        text = TextStream(self._decode, stops)
        for token in ids[:-1] if self._ended(ids) else ids:
            text.push(token)
        text.finish()
        return text.stopped

    def _ended(self, ids: tuple[int, ...]) -> bool:
        return bool(ids) and ids[-1] in self._policy.end_ids

    def _settled(self, request: ChatRequest, prompt: tuple[int, ...]) -> dict[str, Any]:
        """What the request's choices are drawn with; `CallRefused` if the prompt leaves no room."""
        room = self._policy.context_length - len(prompt)
        if room < 1:
            raise CallRefused(
                400,
                f"The conversation has {len(prompt)} tokens; {self.model} takes "
                f"{self._policy.context_length}, the answer included.",
                code="context_length_exceeded",
                param="messages",
            )
        own = self.sampling
        temperature, top_p = own.temperature, own.top_p
        if not own.forced:
            temperature = temperature if request.temperature is None else request.temperature
            top_p = top_p if request.top_p is None else request.top_p
        return {
            "temperature": temperature,
            "top_p": top_p,
            "seed": request.seed,
            "max_tokens": min(request.longest() or own.max_tokens, own.max_tokens, room),
            "stop": request.stops(),
            "n": request.n or 1,
        }

    def _decode(self, ids: list[int]) -> str:
        return str(
            self._policy.tokenizer.decode(
                ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )


@dataclass(frozen=True)
class LocalRequest:
    """A request whose conversation is token ids."""

    backend: LocalBackend
    prompt: tuple[int, ...]
    turn: NextTurn
    tools: bool
    sampling: dict[str, Any]
    top_logprobs: int
    constraint: GrammarConstraint | None = None

    async def run(self, seed: int, on_text: OnText | None = None) -> BackendAnswer:
        """Draw all choices beside each other; with tools, text comes whole, because only its end
        shows what of it is a call."""
        sampling = dict(self.sampling)
        sampling["seed"] = seed if sampling["seed"] is None else sampling["seed"]
        loop = asyncio.get_running_loop()
        jobs: list[EngineJob] = []
        for place in range(sampling["n"]):
            hear = None
            if on_text is not None and not self.tools:
                hear = _in_loop(loop, on_text, place)
            request = SampleRequest(
                self.prompt,
                max_tokens=sampling["max_tokens"],
                temperature=sampling["temperature"],
                top_p=sampling["top_p"],
                seed=_seed_of(sampling["seed"], place),
                top_logprobs=self.top_logprobs,
                constraint=self.constraint,
            )
            jobs.append(
                EngineJob(request, TextStream(self.backend._decode, sampling["stop"]), hear)
            )
        try:
            self.backend.engine.submit(*jobs)
            drawn = await asyncio.gather(*(asyncio.wrap_future(job.future) for job in jobs))
        finally:
            for job in jobs:
                job.cancelled = True
        choices = tuple(self._choice(one) for one in drawn)
        if on_text is not None and self.tools:
            for place, choice in enumerate(choices):
                on_text(place, choice.text)
        policy = self.backend._policy
        return BackendAnswer(
            choices=choices,
            model=self.backend.model,
            prompt_ids=self.prompt,
            prompt_tokens=len(self.prompt),
            completion_tokens=sum(len(one.ids) for one in drawn),
            sampling=sampling,
            logprobs_temperature=sampling["temperature"] or 1.0,
            mismatch=self.turn.mismatch,
            token_texts=tuple(policy.token_texts(one.ids) for one in drawn),
            tops=tuple(
                [
                    [(policy.token_texts([token])[0], logprob) for token, logprob in alternatives]
                    for alternatives in one.tops
                ]
                for one in drawn
            ),
        )

    def _choice(self, drawn: DrawnSample) -> Choice:
        text, calls = from_answer(drawn.text, tools=self.tools)
        reason = "length" if drawn.stop_reason == "length" else "stop"
        return Choice(
            text=text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else reason,
            token_ids=drawn.ids,
            logprobs=drawn.logprobs,
            allowed=drawn.allowed or None,
        )


def _in_loop(loop: asyncio.AbstractEventLoop, on_text: OnText, place: int) -> Any:
    return lambda piece: loop.call_soon_threadsafe(on_text, place, piece)


def _seed_of(seed: int, place: int) -> int:
    """A choice's own seed: any two choices of any two calls draw independently."""
    digest = hashlib.sha256(f"{seed}/{place}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _refuse_unserved(request: ChatRequest) -> None:
    """Raise `CallRefused` for what a model in this process cannot promise."""
    for name, value in (request.model_extra or {}).items():
        if value is None or name in NO_EFFECT or value in ONLY.get(name, ()):
            continue
        raise CallRefused(400, f"The local model does not know {name}={value!r}.", param=name)
