"""Supervised fine-tuning: learn given answers, as a warm start of GRPO or as its honest baseline.

From a file of chats, or with `task=memory-qa` from the gold answers of exactly the prompts that
`memograd train memory-qa` asks. The loss is the mean negative log-probability of the answers'
tokens, end tokens included (TRL's SFTTrainer).

Invariant: prompt tokens are never learnt: other labels on them would change nothing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from memograd.data import ConversationSplit, select_conversations, split_by_conversation
from memograd.policy.language_model import LanguageModel
from memograd.policy.tool_template import use_tool_template
from memograd.rewards.answer_part import accepted_answers
from memograd.rollout.types import Message
from memograd.tasks.memory_qa.setup import (
    MemoryQASetup,
    available_conversations,
    choose_split,
)
from memograd.warm_start.rows import EMPTY, Rows
from memograd.warm_start.settings import SftSettings
from memograd.warm_start.sft_rows import SftRow, read_sft_rows
from memograd.warm_start.shared_openings import sft_trainer
from memograd.warm_start.tokens import sft_sequences
from memograd.warm_start.training import (
    begin,
    console,
    create_run,
    longest_row,
    open_policy,
    train,
)


def sft(config: SftSettings) -> Path:
    """Train an adapter on given answers; returns the new run folder.

    Raises BadInput for rows, settings or a model that cannot be trained on, before the folder is
    made.
    """
    config, out = begin(config)
    split, rows = None, None
    if config.task is None:
        assert config.data is not None  # the settings hold that
        rows = read_sft_rows(config.data, config.string_prompts)
    else:
        split = _split(config)
        names = {
            "train": [conversation.id for conversation in split.train],
            "eval": [conversation.id for conversation in split.eval],
        }
        config = config.model_copy(update=names)
    policy = open_policy(config)
    if rows is None:
        assert split is not None
        rows = _gold_answers(config, policy, split)
    if any(row.tools for row in rows.used):
        note = use_tool_template(policy.tokenizer, None)
        if note is not None:
            console.print(note)
    sequences, cut = sft_sequences(policy, rows, longest_row(config, policy))
    run = create_run(out, config, policy, rows, cut=cut, examples=len(sequences))
    learnt = sum(label >= 0 for sequence in sequences for label in sequence.labels)
    console.print(
        f"learning {learnt} answer tokens of {len(rows.used)} rows with {policy.name}, "
        f"on {policy.device.type}"
    )
    train(config, policy, sequences, run, _trainer)
    return run.path


def _trainer(arguments: dict[str, Any], **shared: Any) -> Any:
    from trl.trainer.sft_config import SFTConfig

    ready = SFTConfig(**arguments, dataset_kwargs={"skip_prepare_dataset": True})
    return sft_trainer(args=ready, **shared)


def _split(config: SftSettings) -> ConversationSplit:
    """What is trained on, and what is kept for evaluation: all the rest unless it is named."""
    available = available_conversations(config.data, config.seed)
    if config.eval or not config.train:
        return choose_split(available, config.train, config.eval)
    select_conversations(available, config.train)
    rest = [entry.id for entry in available if entry.id not in config.train]
    return split_by_conversation(available, config.train, rest)


def _gold_answers(
    config: SftSettings, policy: LanguageModel, split: ConversationSplit
) -> Rows[SftRow]:
    """The questions of the training conversations, as GRPO asks them, with their gold answers."""
    rows: Rows[SftRow] = Rows(f"memory-qa ({', '.join(config.train)})")
    with tempfile.TemporaryDirectory() as folder:
        setup = MemoryQASetup(config.as_train_config(), policy, Path(folder) / "memory.db")
        setup.check(split.train)
        setup.remember(split.train)
        for scenario in setup.scenarios(split.train):
            gold = accepted_answers(scenario.columns["answer"])[0]
            if not gold.strip():
                rows.leave_out(scenario.id, EMPTY)
                continue
            chat = (*scenario.messages, Message(role="assistant", content=gold))
            rows.used.append(SftRow(scenario.id, chat, len(scenario.messages)))
    return rows
