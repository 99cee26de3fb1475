"""Supervised fine-tuning: learn given answers, as a warm start of GRPO or as its honest baseline.

From a file of chats, or with `task=memory-qa` from the gold answers of exactly the prompts that
`memograd train memory-qa` asks. The loss is the mean negative log-probability of the answers'
tokens, end tokens included (TRL's SFTTrainer).

Chats of one agent all begin with the same instructions and tools, often most of their tokens. TRL's
trainer then gets a micro-batch without that opening, and the opening's keys and values with their
graph instead, so that gradients reach it:

    rows     [opening | question, call, ...]          rows x (opening + rest) tokens
             [opening | question, call, ...]    ──>   opening + rows x rest

Invariants: prompt tokens are never learnt, so other labels on them would change nothing; behind a
shared opening, loss, gradients and counts are those of the whole rows, to rounding.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from memograd.data import ConversationSplit, select_conversations, split_by_conversation
from memograd.policy.language_model import LanguageModel
from memograd.policy.token_logprobs import body_of
from memograd.rewards.matching import accepted_answers
from memograd.rollout.tool_calls import use_tool_template
from memograd.rollout.types import Message
from memograd.tasks.base.progress import console
from memograd.tasks.memory_qa.setup import (
    MemoryQASetup,
    available_conversations,
    choose_split,
)
from memograd.warm_start.rows import EMPTY, Rows, SftRow, read_sft_rows
from memograd.warm_start.settings import SftSettings
from memograd.warm_start.tokens import IGNORED, sft_sequences
from memograd.warm_start.training import (
    begin,
    create_run,
    longest_row,
    open_policy,
    train,
)

LEAST = 32
"""Tokens that a micro-batch must share before a pass of its own for them is worth it."""


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


def sft_trainer(**arguments: Any) -> Any:
    """TRL's SFTTrainer that computes the opening of a micro-batch once."""
    from trl.trainer.sft_trainer import SFTTrainer

    class OpeningOnce(SFTTrainer):
        def compute_loss(
            self, model: Any, inputs: dict[str, Any], *positional: Any, **named: Any
        ) -> Any:
            with_adapter: Any = self.model
            rest = behind_opening(with_adapter.get_base_model(), inputs)
            return super().compute_loss(model, rest, *positional, **named)  # type: ignore[no-untyped-call]

    return OpeningOnce(**arguments)


def behind_opening(model: PreTrainedModel, inputs: dict[str, Any]) -> dict[str, Any]:
    """The batch behind the tokens [B, S] that all its rows open with, whose keys and values are in
    `past_key_values`; or the batch as it is, where that would spare little or the model's layers
    remember more than keys and values."""
    ids_BS, labels_BS = inputs["input_ids"], inputs["labels"]
    length = opening_length(ids_BS, labels_BS, inputs["attention_mask"])
    if length < LEAST or not _attends_to_all(model):
        return inputs
    cache = DynamicCache()
    body_of(model)(input_ids=ids_BS[:1, :length], past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(ids_BS))
    return {
        **inputs,
        "input_ids": ids_BS[:, length:],
        "labels": labels_BS[:, length:],
        "past_key_values": cache,
    }


def opening_length(ids_BS: torch.Tensor, labels_BS: torch.Tensor, attended_BS: torch.Tensor) -> int:
    """How many tokens all rows begin with, from none of which anything is learnt or predicted; 0
    for a row alone."""
    if len(ids_BS) < 2:
        return 0
    # The token before the first one learnt predicts it, so it is not part of the opening.
    predicting_BS = torch.roll(labels_BS, -1, dims=1) != IGNORED
    ends_S = (ids_BS != ids_BS[:1]).any(0) | predicting_BS.any(0) | (attended_BS == 0).any(0)
    return int(ends_S.int().argmax()) if bool(ends_S.any()) else 0


def _attends_to_all(model: PreTrainedModel) -> bool:
    """Whether keys and values are all that a layer keeps, and every token sees all before it."""
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or []
    return not model._is_stateful and all(kind == "full_attention" for kind in kinds)
