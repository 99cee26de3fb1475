"""What `memograd train retrieval` can be told.

Invariant: resolved settings survive their JSON form unchanged, so `config.json` is the whole recipe
of a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from memograd.config.settings import Count, NotNegative, Positive, RunSettings, Text
from memograd.config.unread import Unread
from memograd.tasks.registry import Option, Task

Share = Annotated[float, Field(ge=0, lt=1)]


class RetrievalConfig(RunSettings):
    """Everything that training a ranker can be told; the defaults take minutes, mostly to embed."""

    unread: ClassVar[tuple[Unread, ...]] = (
        Unread(("logs",), lambda c: bool(c.data), "it is of generated logs, and data names others"),
        Unread(
            ("held_out",), lambda c: bool(c.eval_data), "eval_data names what judges the ranker"
        ),
        Unread(
            ("samples", "questions_per_step"),
            lambda c: c.algorithm != "grpo",
            "only algorithm=grpo draws orders for some questions a step",
        ),
        Unread(
            ("reader",), lambda c: c.reward != "answer", "only reward=answer has questions answered"
        ),
    )

    data: list[Path] = []
    """Files of conversations with questions and evidence to train on, in any format of
    docs/data.md; none: generated life logs."""
    eval_data: list[Path] = []
    """Files to measure on and to judge by; none: conversations held out of data."""
    dialogues: list[Path] = []
    """Author batches of written dialogues (corpus/dialogues), whose questions teach what to find
    among memories as a memory words them; turns are not learnt from them."""
    beside: list[Path] = []
    """Conversations that a memory hears sittings of, in between the dialogues."""
    turns_only: list[Path] = []
    """Files of data that memories are not learnt from, because these are measured beside them."""
    held_out: Share = 0.2
    """Share of the conversations of data that is never trained on, without eval_data."""
    embedder: Text = "e5"
    """Whose vectors the ranker learns to use; a memory with another embedder ranks by fusion."""
    together: Annotated[list[Count], Field(min_length=1)] = [1, 30, 90]
    """Conversations of one question each (LongMemEval's) that are one memory, in as many sizes;
    others are by themselves."""
    strangers: Annotated[int, Field(ge=0)] = 20
    """Questions about other conversations that each memory is asked, too, to learn what it cannot
    answer."""
    logs: Count = 24
    """Generated life logs to train on, without data."""
    algorithm: Literal["supervised", "grpo"] = "supervised"
    """Listwise softmax on the evidence (supervised), or the reward alone: the share of the evidence
    among the first top_k, drawn by Plackett-Luce (grpo)."""
    reward: Literal["evidence", "answer"] = "evidence"
    """What grpo is told of the drawn results: the share of the evidence among them, or the F1 of
    what the reader answers from them."""
    reader: Text = "smollm2-135m-instruct"
    """Model that answers with reward=answer: the packaged model's alias, a hub id or a folder."""
    steps: Count = 300
    """Training steps: over all questions (supervised), or questions_per_step of them (grpo)."""
    top_k: Count = 10
    """Results that the reward and the held-out recall count."""
    samples: Annotated[int, Field(ge=2)] = 16
    """Orders that are drawn for a question, compared with each other, with grpo."""
    questions_per_step: Count = 128
    """Questions in a step of grpo."""
    learning_rate: Positive = 0.05
    """Peak learning rate of Adam; falls to zero in a cosine."""
    ridge: NotNegative = 300.0
    """Weight of the squared (standardised) weights in the sum of the questions' losses."""
    save_steps: Count = 100
    """Steps from one checkpoint to the next."""

    @model_validator(mode="after")
    def _rewarded(self) -> Self:
        if self.reward == "answer" and self.algorithm != "grpo":
            raise ValueError(
                "reward=answer needs algorithm=grpo: supervised learns from the evidence."
            )
        if bool(self.dialogues) != bool(self.beside):
            raise ValueError(
                "dialogues and beside belong together: give conversations that a memory hears in"
                " between the dialogues, or neither."
            )
        if missing := set(self.turns_only) - set(self.data):
            names = ", ".join(sorted(str(path) for path in missing))
            raise ValueError(f"turns_only names files that are not in data: {names}.")
        return self


TASK: Final = Task(
    name="retrieval",
    summary="Train what a search puts first, by questions with evidence.",
    settings=RetrievalConfig,
    recipe="memograd.tasks.retrieval.recipe",
    options=(
        Option("--data", "data", "FILES", "Conversations to train on; else generated life logs."),
        Option("--eval", "eval_data", "FILES", "What to measure on and to judge by."),
    ),
    examples=(
        "memograd train retrieval",
        "memograd train retrieval --data conversations.jsonl",
        "memograd train retrieval --data conversations.jsonl algorithm=grpo",
    ),
    notes=(
        "The ranker is the file final/ranker.json of the run. A memory ranks by it with\n"
        '  Memory.open("memories/", ranking="runs/my-run/final")\n'
        "where it beats rank fusion on held-out questions; ranking=trained goes back to the ranker"
        " that ships, ranking=fusion to none.",
    ),
)
"""The task as the registry knows it."""
