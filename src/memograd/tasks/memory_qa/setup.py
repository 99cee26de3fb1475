"""What a memory-qa job needs before it can begin: conversations, a memory of them, scenarios.

The memory holds the turns themselves, and with `memory.keep=items` what a manager kept of them too
(`memory_qa_keepers`), in a file beside it.

Invariants: training and evaluation scenarios come from different conversations; what is measured
was not trained on by the policy that kept the items, as far as its run can tell.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from memograd.data import (
    Conversation,
    ConversationSplit,
    load_any,
    split_by_conversation,
)
from memograd.data.lifelog import LifelogSettings, generate_lifelogs
from memograd.errors import BadInput
from memograd.memory import TurnMemory, load_embedder
from memograd.memory.embedders.load import check_embedder
from memograd.memory.reader import RuleReader
from memograd.policy.model_policy import ModelPolicy
from memograd.rollout.types import Scenario
from memograd.tasks.base.policy import room_for_prompt
from memograd.tasks.base.progress import console
from memograd.tasks.memory_qa.keepers import Keeper, KeptFile, check_policy, keeper_of, trained_on
from memograd.tasks.memory_qa.scenarios import (
    ItemMemory,
    MemoryView,
    PromptMemory,
    memory_qa_messages,
    memory_qa_scenarios,
)
from memograd.tasks.memory_qa.settings import MemoryConfig, MemoryQATrainConfig

logger = logging.getLogger(__name__)

KEPT: Final = "items.jsonl"
ASKED: Final = 1.2  # questions for each statement, which makes some 60 at the end of a life
GENERATED: Final = (
    (2, LifelogSettings(split="train", questions=ASKED)),
    (1, LifelogSettings(split="test", questions=ASKED)),
)
"""Without a data file: lives by their settings. The last one, in words and with names of which the
others have none, is to evaluate on."""


def available_conversations(data: Path | None, seed: int) -> list[Conversation]:
    """The conversations in the file `data`, in any format that is known, or generated lives.

    Questions are put to a memory of the whole conversation here. One that was asked on a day before
    its end may have had another answer then, so it is left out, and logged.
    """
    if data is None:
        return [
            _asked_at_the_end(log.conversation())
            for count, settings in GENERATED
            for log in generate_lifelogs(count, seed, settings)
        ]
    loaded = load_any(data)
    conversations = [_asked_at_the_end(one) for one in loaded]
    dropped = sum(len(one.questions) for one in loaded)
    dropped -= sum(len(one.questions) for one in conversations)
    if dropped:
        logger.warning(
            "%s: left out %d questions that are asked before their conversation ends", data, dropped
        )
    return conversations


def _asked_at_the_end(conversation: Conversation) -> Conversation:
    last = max((turn.time.date() for turn in conversation.turns if turn.time), default=None)
    kept = tuple(
        question
        for question in conversation.questions
        if last is None or question.asked_at is None or question.asked_at.date() >= last
    )
    return replace(conversation, questions=kept)


def choose_split(
    available: Sequence[Conversation], train: Sequence[str], eval: Sequence[str]
) -> ConversationSplit:
    """The conversations named for training and for evaluation.

    Where neither is named, the last conversation is for evaluation and the others are for
    training; those without questions are for neither. Raises `BadInput` for unknown or doubly used
    ids, if only one set is named, and where one of the two asks nothing.
    """
    ids = [conversation.id for conversation in available if conversation.questions]
    if not train and not eval:
        if len(ids) < 2:
            raise BadInput(
                f"the data hold {len(ids)} conversation(s) with questions; one to train on and "
                "another one to evaluate on are needed"
            )
        train, eval = ids[:-1], ids[-1:]
    elif not train or not eval:
        missing = "train" if not train else "eval"
        raise BadInput(f"{missing}= names no conversation; choose from {', '.join(ids)}")
    split = split_by_conversation(available, train, eval)
    for name, chosen in (("train", split.train), ("eval", split.eval)):
        if not any(conversation.questions for conversation in chosen):
            raise BadInput(f"{name}= names no conversation with a question; choose from {ids}")
    return split


def thinned(
    conversations: Sequence[Conversation], most: int | None, seed: int
) -> tuple[Conversation, ...]:
    """The same conversations with at most `most` questions in all, drawn with the seed."""
    asked = [(one.id, place) for one in conversations for place in range(len(one.questions))]
    if most is None or most >= len(asked):
        return tuple(conversations)
    kept = set(random.Random(seed).sample(asked, most))
    return tuple(
        replace(
            one,
            questions=tuple(
                question for place, question in enumerate(one.questions) if (one.id, place) in kept
            ),
        )
        for one in conversations
    )


def check_keeping(memory: MemoryConfig, measured: Sequence[Conversation]) -> None:
    """Refuse who embeds or keeps items as the settings say, while nothing is loaded yet.

    Raises:
        BadInput: there is no such embedder or policy, they do not fit each other, or the policy was
            trained on one of the `measured` conversations.
    """
    check_embedder(memory.embedder)
    policy = memory.policy
    if policy is None:
        return
    check_policy(policy, memory.embedder)
    seen = trained_on(policy, measured)
    if seen is None:
        console.print(f"{policy} does not say what it was trained on: see that it is not this")
    elif seen:
        raise BadInput(
            f"memory.policy={policy} was trained on {', '.join(sorted(seen))}; measuring on it "
            "would say nothing about new conversations, so choose others."
        )


class MemoryQASetup:
    """Builds scenarios of conversations for one model, from a memory kept at `memory_path`."""

    def __init__(self, config: MemoryQATrainConfig, policy: ModelPolicy, memory_path: Path) -> None:
        self._config = config
        self._policy = policy
        self._memory_path = memory_path
        self._embedder = load_embedder(config.memory.embedder)
        self._items: dict[str, ItemMemory] = {}

    def remember(self, conversations: Sequence[Conversation]) -> int:
        """Write all turns into the memory, a scope each conversation; returns how many are new.

        With `memory.keep=items` a manager makes items of the conversations it did not read yet.
        """
        reader = RuleReader() if self._config.memory.ranked else None
        with self._open() as memory:
            new = sum(
                memory.add_turns(conversation.id, conversation.turns, reader=reader)
                for conversation in conversations
            )
        if self._config.memory.keep == "items":
            self._keep_items(conversations)
        return new

    def scenarios(
        self, conversations: Sequence[Conversation], view: MemoryView = MemoryView.RETRIEVED
    ) -> list[Scenario]:
        """All questions about `conversations`, which must be remembered, as the view shows them."""
        config, policy = self._config, self._policy
        scenarios = []
        with self._open() as memory:
            for conversation in conversations:
                shown = PromptMemory(
                    memory,
                    top_k=config.memory.top_k,
                    token_budget=self._token_budget(conversation),
                    count_tokens=policy.count_tokens,
                    items=self._items.get(conversation.id),
                    ranked=config.memory.ranked,
                )
                scenarios += memory_qa_scenarios(conversation, shown, view)
        return scenarios

    def _open(self) -> TurnMemory:
        return TurnMemory.open(self._memory_path, self._embedder)

    def check(self, conversations: Sequence[Conversation]) -> None:
        """Raise `BadInput` for what would stop `scenarios` later; touches no memory."""
        for conversation in conversations:
            self._token_budget(conversation)
        if self._config.memory.keep == "items":
            self._keeper()

    def _keeper(self) -> Keeper:
        config = self._config
        return keeper_of(config.memory, self._embedder, config.device)

    def _keep_items(self, conversations: Sequence[Conversation]) -> None:
        """Make the items that are not in the file yet, and have those of all ready."""
        kept = KeptFile(self._memory_path.with_name(KEPT))
        missing = kept.missing(conversations)
        if missing:
            kept.fill(missing, self._keeper())
        for one in conversations:
            items = kept.items(one)
            self._items[one.id] = ItemMemory(items, self._embedder)
            size = sum(self._policy.count_tokens(item.render() + "\n") for item in items)
            said = sum(self._policy.count_tokens(turn.render() + "\n") for turn in one.turns)
            console.print(
                f"{one.id}: {len(items)} items of {size} tokens kept of {len(one.turns)} turns of "
                f"{said}, by {kept.keeper(one)}"
            )

    def _token_budget(self, conversation: Conversation) -> int:
        """The budget of the settings, or what prompt limit and context leave for memory if less."""
        config, policy = self._config, self._policy
        limit = room_for_prompt(policy.context_length, config)
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
