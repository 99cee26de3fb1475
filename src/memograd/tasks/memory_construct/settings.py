"""What `memograd train memory-construct` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from memograd.config.settings import Count, NotNegative, Settings, Share, Text, TrainConfig
from memograd.config.unread import Unread
from memograd.tasks.agent.settings import ChatTemplateConfig
from memograd.tasks.registry import Option, Task
from memograd.tasks.text.settings import MODEL, EvalDataConfig


class ConstructConfig(Settings):
    """How a memory is built from chunks, and how the answers that build it are given credit."""

    credit: Literal["local", "trajectory", "mem_alpha_original"] = "local"
    """What is compared: answers to one chunk from the same memory (local), whole attempts with one
    reward each (trajectory), or the chunks of all attempts in one group (mem_alpha_original)."""
    format: Literal["lines", "tools"] = "lines"
    """How the model says what to do: a line a call, or the tool calls of its chat template."""
    languages: Annotated[list[Literal["en", "zh"]], Field(min_length=1)] = ["en"]
    """Languages of generated logs."""
    logs: Count = 24
    """Generated logs to train on."""
    eval_logs: Count = 8
    """Generated logs, in held-out words, to measure on."""
    questions: Annotated[float, Field(gt=0, le=3)] = 2.0
    """Questions for each statement of generated logs to train on: a chunk that nothing is asked
    about teaches only to write less."""
    turns_per_chunk: Count = 4
    """Turns of a conversation that are read at once."""
    chunks: Count = 3
    """Chunks of a case, at most; what comes later is not read, and not asked about."""
    first_chunks: Annotated[int | None, Field(ge=1)] = None
    """Chunks of a case in the first step, of which there is one more every grow_every steps; none:
    all from the beginning."""
    grow_every: Count = 10
    """Steps after which cases become one chunk longer."""
    walks: Count = 2
    """Walks through a case in a step, with credit=local."""
    global_weight: NotNegative = 0.5
    """What the questions that were answered in the end from a write count, with credit=local."""
    compression_weight: NotNegative = 0.05
    """Weight of r3, how much smaller the memory is than what was read."""
    content_weight: NotNegative = 0.1
    """Weight of r4, the share of written texts that are no repeats and stand in what was read."""
    view_items: Count = 8
    """Items searched into view at a chunk, at most."""
    view_tokens: Count = 400
    """Tokens of these items, at most."""
    top_k: Count = 5
    """Items that a question may find."""
    token_budget: Count = 300
    """Tokens of the items that a question may find."""
    misled_cost: Share = 0.5
    """What a misleading item that stands above the answer takes of it."""
    reader: Text | None = None
    """Model that answers questions from what they find, scored by F1: base (the policy without its
    adapter), or an alias, hub id or folder; none: the words found say what can be answered."""
    embedder: Text = "minilm"
    """Whose vectors find items: minilm, e5 (for Chinese), st:<model id or folder>."""

    def chunks_at(self, step: int) -> int:
        """How many chunks of a case are read at a step (from 1): the curriculum over length."""
        if self.first_chunks is None:
            return self.chunks
        return min(self.chunks, self.first_chunks + (step - 1) // self.grow_every)

    @model_validator(mode="after")
    def _grows(self) -> ConstructConfig:
        if self.first_chunks is not None and self.first_chunks > self.chunks:
            raise ValueError(
                f"first_chunks={self.first_chunks} is more than chunks={self.chunks}: cases grow"
            )
        return self


OF_GENERATED_LOGS: Final = (
    Unread(
        ("build.logs", "build.languages"),
        lambda c: c.data is not None,
        "it is of generated logs, and data names others",
    ),
    Unread(
        ("build.eval_logs",),
        lambda c: c.data is not None or c.text.eval_data is not None,
        "it is of generated logs, and those to measure on are of a file",
    ),
)
"""What tasks that generate logs do not read where they are given some."""


class ConstructTrainConfig(TrainConfig):
    """Everything that `memograd train memory-construct` can be told."""

    unread: ClassVar[tuple[Unread, ...]] = (
        *TrainConfig.unread,
        *OF_GENERATED_LOGS,
        Unread(("build.questions",), lambda c: c.data is not None, "data names what is asked"),
        Unread(
            ("build.walks", "build.global_weight"),
            lambda c: c.build.credit != "local",
            "only build.credit=local walks through a case more than once",
        ),
        Unread(
            ("build.grow_every",),
            lambda c: c.build.first_chunks is None,
            "cases do not grow without build.first_chunks",
        ),
        Unread(
            ("episodes.chat_template",),
            lambda c: c.build.format != "tools",
            "only build.format=tools shows tools",
        ),
    )

    data: Path | None = None
    """Life logs, conversations or Mem-alpha's Parquet to train on; none: generated logs."""
    text: EvalDataConfig = EvalDataConfig()
    """What is measured on."""
    build: ConstructConfig = ConstructConfig()
    """How a memory is built, and how answers are given credit."""
    episodes: ChatTemplateConfig = ChatTemplateConfig()
    """How the model is shown tools, with build.format=tools."""
    rewards: Literal["environment"] = "environment"
    """What the questions about a chunk say; see build.credit and its weights."""
    max_completion_length: Count = 160
    """Tokens of an answer to a chunk, at most."""
    prompts_per_step: Count = 2
    """Cases in a step."""


LOGS: Final = Option(
    "--data", "data", "FILE", "Logs, conversations or Mem-alpha parquet; else generated."
)
LOGS_TO_EVALUATE: Final = Option("--eval", "text.eval_data", "FILE", "What to measure on.")

TASK: Final = Task(
    name="memory-construct",
    summary="Train a model to build a memory from chunks of conversation.",
    settings=ConstructTrainConfig,
    recipe="memograd.tasks.memory_construct.recipe",
    options=(LOGS, LOGS_TO_EVALUATE, MODEL),
    examples=(
        "memograd data construct-rows --out rows.jsonl",
        "memograd sft --data rows.jsonl --out runs/sft",
        "memograd train memory-construct adapter=runs/sft steps=20",
        "memograd train memory-construct build.chunks=6 build.first_chunks=2",
        "memograd train memory-construct build.credit=trajectory",
        "memograd train memory-construct resume=runs/my-run",
    ),
)
