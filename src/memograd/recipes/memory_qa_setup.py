"""What a memory-qa job needs before it can begin: conversations, a memory of them, scenarios.

Invariant: training and evaluation scenarios come from different conversations. Tested in
`tests/recipes/test_memory_qa_runs.py`. May import every room below the recipes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memograd.config import TrainConfig
from memograd.data import (
    Conversation,
    Split,
    generate_conversations,
    load_conversations,
    split_by_conversation,
)
from memograd.errors import BadInput
from memograd.memory import TurnMemory, load_embedder
from memograd.policy.language_model import LanguageModel
from memograd.rollout.types import Scenario
from memograd.tasks import MemoryView, memory_qa_messages, memory_qa_scenarios

GENERATED_CONVERSATIONS = 3
"""Without a data file: two generated conversations to train on, one to evaluate on."""


def available_conversations(data: Path | None, seed: int) -> list[Conversation]:
    """The conversations in the file `data`, or generated ones."""
    if data is None:
        return generate_conversations(GENERATED_CONVERSATIONS, seed=seed)
    return load_conversations(data)


def choose_split(
    available: Sequence[Conversation], train: Sequence[str], eval: Sequence[str]
) -> Split:
    """The conversations named for training and for evaluation.

    Where neither is named, the last conversation is for evaluation and the others are for
    training. Raises `BadInput` for unknown or doubly used ids, and if only one set is named.
    """
    ids = [conversation.id for conversation in available]
    if not train and not eval:
        if len(ids) < 2:
            raise BadInput(
                f"the data hold {len(ids)} conversation(s); one to train on and another one to "
                "evaluate on are needed"
            )
        train, eval = ids[:-1], ids[-1:]
    elif not train or not eval:
        missing = "train" if not train else "eval"
        raise BadInput(f"{missing}= names no conversation; choose from {', '.join(ids)}")
    return split_by_conversation(available, train, eval)


class MemoryQASetup:
    """Builds scenarios of conversations for one model, from a memory kept at `memory_path`."""

    def __init__(self, config: TrainConfig, policy: LanguageModel, memory_path: Path) -> None:
        self._config = config
        self._policy = policy
        self._memory_path = memory_path
        self._embedder = load_embedder(config.memory.embedder)

    def remember(self, conversations: Sequence[Conversation]) -> int:
        """Write all turns into the memory, a scope each conversation; returns how many are new."""
        with self._open() as memory:
            return sum(
                memory.add_turns(conversation.id, conversation.turns)
                for conversation in conversations
            )

    def scenarios(
        self, conversations: Sequence[Conversation], view: MemoryView = MemoryView.RETRIEVED
    ) -> list[Scenario]:
        """All questions about `conversations`, which must be remembered, as the view shows them."""
        config, policy = self._config, self._policy
        scenarios = []
        with self._open() as memory:
            for conversation in conversations:
                scenarios += memory_qa_scenarios(
                    conversation,
                    memory,
                    view=view,
                    top_k=config.memory.top_k,
                    token_budget=self._token_budget(conversation),
                    count_tokens=policy.count_tokens,
                )
        return scenarios

    def _open(self) -> TurnMemory:
        return TurnMemory.open(self._memory_path, self._embedder)

    def check(self, conversations: Sequence[Conversation]) -> None:
        """Raise `BadInput` for what would stop `scenarios` later; touches no memory."""
        for conversation in conversations:
            self._token_budget(conversation)

    def _token_budget(self, conversation: Conversation) -> int:
        """The budget of the settings, or what prompt limit and context leave for memory if less."""
        config, policy = self._config, self._policy
        limit = policy.context_length - config.max_completion_length
        limit = min(limit, config.max_prompt_length or limit)
        longest = 0
        for question in conversation.questions:
            alone = len(policy.encode(memory_qa_messages(question.text, [])))
            if alone >= limit:
                raise BadInput(
                    f"question {question.id} takes {alone} tokens without any memory, but a prompt "
                    f"may have {limit}; raise max_prompt_length, or leave this question out"
                )
            longest = max(longest, alone)
        return min(config.memory.token_budget, limit - longest)
