"""The parts that settings name: who reads, who decides, and the chat model behind them.

A policy decides by itself, or leaves what it is unsure of to the manager that the settings name;
leaving it to the rules costs nothing.

Invariant: what the settings ask for is made or refused, never replaced by something else.
"""

from __future__ import annotations

import logging

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.chat.chat_model import OpenAIChatModel
from memograd.memory.chat.openai_endpoint import NO_KEY
from memograd.memory.embedders import Embedder
from memograd.memory.manager import (
    ChatManager,
    MemoryManager,
    RelationManager,
    RuleManager,
    StateManager,
)
from memograd.memory.reader import ChatReader, MemReader, RuleReader, TrainedReader

logger = logging.getLogger(__name__)


def configured_reader(settings: MemorySettings) -> MemReader:
    """The reader of the settings: trained, by rules, or by the configured chat model.

    Whoever names another manager and no reader has the rules read, as that manager expects.
    """
    alone = settings.policy is None and settings.manager == "trained"
    asked = "reader" in settings.model_fields_set
    if settings.reader == "trained" and (alone or asked) and _has_relations(settings, "reader"):
        from memograd.memory.relations import load_relation_model

        return TrainedReader(load_relation_model(settings.relations))
    return RuleReader() if settings.reader != "chat" else ChatReader(_chat(settings, "reader"))


def configured_manager(settings: MemorySettings) -> MemoryManager | StateManager:
    """The manager of the settings: a trained policy, else rules or the configured chat model.

    Raises BadInput when there is no policy where the settings say, or when they name a deciding
    part that would never be asked.
    """
    if settings.policy is None:
        if settings.defer_below:
            raise BadInput("defer_below says when a policy gives way: set policy too.")
        return _manager_of(settings)
    from memograd.memory.manager.trained.following import open_policy

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


def check_policy(manager: MemoryManager | StateManager, embedder: Embedder) -> None:
    """Raise BadInput when the manager is a policy that was trained on other vectors."""
    from memograd.memory.manager.trained.following import FollowingManager
    from memograd.memory.manager.trained.manager import TrainedManager

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
