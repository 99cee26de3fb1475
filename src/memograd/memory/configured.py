"""The parts that settings name: who reads, who decides, and the chat model behind them.

A policy decides by itself, or leaves what it is unsure of to the manager that the settings name;
leaving it to the rules costs nothing.

Invariant: what the settings ask for is made or refused, never replaced by something else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memograd.config import MemorySettings, from_mem0_config, load_memory_settings
from memograd.errors import BadInput
from memograd.memory.chat.chat_model import OpenAIChatModel, VisionModel
from memograd.memory.chat.openai_endpoint import NO_KEY
from memograd.memory.embedders import Embedder, embedder_from_settings
from memograd.memory.manager import (
    ChatManager,
    MemoryManager,
    RelationManager,
    RuleManager,
)
from memograd.memory.reader import ChatReader, MemReader, RuleReader, TrainedReader
from memograd.memory.state.store import MemoryStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """An open store, and who reads, decides and looks at pictures (None: nobody)."""

    store: MemoryStore
    reader: MemReader
    manager: MemoryManager
    vision: VisionModel | None


def opened(
    settings: MemorySettings | None,
    path: Path | str | None,
    given: Mapping[str, Any],
    *,
    embedder: Embedder | str | None,
    reader: MemReader | str | None,
    manager: MemoryManager | str | None,
    vision: VisionModel | None,
) -> Opened:
    """The parts of a memory: those that are handed over, else those that the settings name.

    given: single settings, where `settings` is None. Raises BadInput as `Memory.open` does.
    """
    parts = {"embedder": embedder, "reader": reader, "manager": manager}
    single = {**given, **{name: part for name, part in parts.items() if isinstance(part, str)}}
    if settings is None:
        places = {} if path is None else {"path": Path(path)}
        settings = load_memory_settings(**places, **single)
    elif path is not None or single:
        raise BadInput("Give Memory.open either settings or path and single settings.")
    if reader is None or isinstance(reader, str):
        of_own = manager is not None and not isinstance(manager, str)
        if of_own and "reader" not in settings.model_fields_set:
            settings = settings.model_copy(update={"reader": "rules"})
        reader = configured_reader(settings)
    elif settings.custom_instructions is not None:
        raise BadInput("Give Memory.open either custom_instructions or a reader of your own.")
    decides: MemoryManager
    if manager is None or isinstance(manager, str):
        decides = configured_manager(settings)
    elif settings.policy is not None:
        raise BadInput("Give Memory.open either a policy or a manager of your own.")
    else:
        decides = manager
    if vision is None and settings.openai_vision_model is not None:
        seeing = settings.model_copy(update={"openai_model": settings.openai_vision_model})
        vision = configured_chat_model(seeing)
    if embedder is None or isinstance(embedder, str):
        embedder = embedder_from_settings(settings)
    check_policy(decides, embedder)
    return Opened(MemoryStore(settings, embedder), reader, decides, vision)


def settings_of(config: Any) -> MemorySettings | None:
    """The settings that a configuration means; None where none is given."""
    if config is None or isinstance(config, MemorySettings):
        return config
    if hasattr(config, "model_dump"):  # mem0's own object; what it was not told is left to us
        config = config.model_dump(exclude_unset=True)
    if not isinstance(config, Mapping):
        raise BadInput(
            "Memory takes a configuration in mem0's form or MemorySettings, not"
            f" {str(config)[:60]!r}: the folder of a memory is given to Memory.open(path)."
        )
    return from_mem0_config(config)


def configured_reader(settings: MemorySettings) -> MemReader:
    """The reader of the settings: trained, by rules, or by the configured chat model.

    Whoever names another manager and no reader has the rules read, as that manager expects.
    """
    alone = settings.policy is None and settings.manager == "trained"
    asked = "reader" in settings.model_fields_set
    if settings.reader == "chat":
        return ChatReader(
            _chat(settings, "reader"), instructions=settings.custom_instructions or ""
        )
    if settings.custom_instructions is not None:
        raise BadInput(
            "custom_instructions are read by a chat model, but the reader is"
            f" {settings.reader!r}: set reader to chat."
        )
    if settings.reader == "trained" and (alone or asked) and _has_relations(settings, "reader"):
        from memograd.memory.relations import load_relation_model

        return TrainedReader(load_relation_model(settings.relations))
    return RuleReader()


def configured_manager(settings: MemorySettings) -> MemoryManager:
    """The manager of the settings: a trained policy, else rules or the configured chat model.

    Raises BadInput when there is no policy where the settings say, or when they name a deciding
    part that would never be asked.
    """
    if settings.policy is None:
        if settings.defer_below:
            raise BadInput("defer_below says when a policy gives way: set policy too.")
        return _manager_of(settings)
    from memograd.memory.manager.trained.manager import open_policy

    if not settings.defer_below:
        if settings.manager == "chat":
            raise BadInput(
                "With a policy, the chat model decides only what the policy is unsure of: set"
                " defer_below, or leave out manager."
            )
        return open_policy(settings.policy)
    return open_policy(
        settings.policy, defer_below=settings.defer_below, deferred_to=_manager_of(settings)
    )


def configured_chat_model(settings: MemorySettings) -> OpenAIChatModel | None:
    """The endpoint that is configured, None when none is; nothing is connected yet.

    Raises BadInput when an endpoint is configured without a model.
    """
    url, key = settings.openai_base_url, settings.openai_api_key
    if not (url or key or settings.openai_model):
        return None
    if not settings.openai_model:
        raise BadInput(
            f"The endpoint {url or 'OpenAI'} is configured, but no chat model is named: set"
            " OPENAI_MODEL."
        )
    # A server of one's own takes any key; OpenAI's own wants a real one.
    without = NO_KEY if url else ""
    return OpenAIChatModel(
        settings.openai_model, api_key=key.get_secret_value() if key else without, base_url=url
    )


def check_policy(manager: MemoryManager, embedder: Embedder) -> None:
    """Raise BadInput when the manager is a policy that was trained on other vectors."""
    from memograd.memory.manager.trained.manager import FollowingManager, TrainedManager

    if isinstance(manager, TrainedManager | FollowingManager):
        manager.check_embedder(embedder.name, embedder.dimension)


def _manager_of(settings: MemorySettings) -> MemoryManager:
    alone = settings.reader != "rules" or "manager" in settings.model_fields_set
    if settings.manager == "trained" and alone and _has_relations(settings, "manager"):
        from memograd.memory.relations import load_relation_model

        return RelationManager(load_relation_model(settings.relations))
    return RuleManager() if settings.manager != "chat" else ChatManager(_chat(settings, "manager"))


def _has_relations(settings: MemorySettings, part: str) -> bool:
    """Whether the model is to be used: who asks for it by name gets it or an error."""
    from memograd.memory.relations.model import SHIPPED

    asked = settings.relations is not None or part in settings.model_fields_set
    if not asked and not SHIPPED.is_file():
        logger.warning(
            "This copy of memograd has no relation model (%s): the %s works by rules.",
            SHIPPED,
            part,
        )
        return False
    return True


def _chat(settings: MemorySettings, part: str) -> OpenAIChatModel:
    chat = configured_chat_model(settings)
    if chat is None:
        raise BadInput(
            f"The setting {part} is 'chat', but no chat model is configured: set OPENAI_MODEL and"
            " OPENAI_API_KEY (and OPENAI_BASE_URL for an endpoint of your own)."
        )
    return chat
