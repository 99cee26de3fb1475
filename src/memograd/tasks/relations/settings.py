"""What `memograd train relations` can be told.

Invariant: resolved settings survive their JSON form unchanged, so `config.json` is the whole recipe
of a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from memograd.config.settings import Count, NotNegative, Positive, RunSettings, Settings, Share
from memograd.config.unread import Unread
from memograd.tasks.registry import Option, Task


class LaterConfig(Settings):
    """What answers, errors and words are worth to GRPO, in answered questions."""

    misled_cost: Share = 0.5
    """What a misleading item takes of an answer."""
    doubt_answers: Share = 0.75
    """Share in which an item in doubt answers a question."""
    doubt_misleads: Share = 0.25
    """Share in which an item in doubt misleads."""
    unasked: NotNegative = 0.5
    """Weight of a fact that no written question asks for."""
    noise_cost: NotNegative = 0.5
    """Of a sentence that is kept and holds no fact: it takes the place of one that does."""
    token_cost: NotNegative = 0.004
    """Of a token of the message that is kept."""


class RelationsConfig(RunSettings):
    """Everything that training the relation model can be told."""

    unread: ClassVar[tuple[Unread, ...]] = (
        Unread(
            (
                *("talks", "talk_share", "crowded", "alone_share", "absent", "unrelated_weight"),
                *("dropout", "smoothing", "closing_weight", "worth_weight"),
            ),
            lambda c: c.algorithm == "grpo",
            "algorithm=grpo learns from later questions, not from what is said of each item",
        ),
        Unread(
            ("talk_share", "crowded"), lambda c: not c.talks, "talks names no long conversations"
        ),
        Unread(
            ("case_authors",),
            # Without data, the cases are those of the weights that ship.
            lambda c: bool(c.data) and not c.cases,
            "cases names no behaviour cases",
        ),
        Unread(
            ("group", "advantage", "beta", "later.noise_cost", "later.token_cost"),
            lambda c: c.algorithm != "grpo",
            "only algorithm=grpo draws decisions and compares them",
        ),
        Unread(
            tuple(f"later.{name}" for name in LaterConfig.model_fields),
            lambda c: c.algorithm != "grpo" and bool(c.data) and not c.eval_data,
            "eval_data names no dialogues whose later questions are measured",
        ),
        Unread(
            ("layer_decay",), lambda c: c.learning_layers == 0, "with learning_layers=0 none learns"
        ),
    )

    algorithm: Literal["supervised", "grpo"] = "supervised"
    """From what the dialogues say of each item, or by GRPO on their later questions."""
    start: Path | None = None
    """Weights (relations.npz) that training begins with; none: multilingual-e5-small with fresh
    heads, and for grpo the weights that ship."""

    start_share: Share = 0.0
    """Share of `start` in the weights that are written: 0.5 is the mean of what training began with
    and what it came to, which keeps more of what either does well than the end of training alone
    (WiSE-FT, Wortsman et al. 2022)."""

    # What is trained on.
    data: list[Path] = []
    """Author batches of dialogues (corpus/dialogues) to train on."""
    eval_data: list[Path] = []
    """Batches of other authors, to calibrate and to measure on."""
    cases: list[Path] = []
    """Behaviour cases (tests/behaviour) to fit the thresholds to, after supervised training."""
    case_authors: list[str] = []
    """Whose cases; none: all."""
    pairs: list[Path] = []
    """Further pairs to train on: lines with a (earlier text), b (new message) and label, one of
    supersede, end, keep."""
    lives: list[Path] = []
    """Author batches of whole lives, told to the memory that ships: each message is read beside the
    items that it meets there."""
    met: list[Path] = []
    """Messages beside the items that a memory met them with, and what each does to these
    (corpus/met)."""
    talks: list[Path] = []
    """Long conversations (corpus/conversations), most of whose turns change nothing of what was
    told before them: what a memory of months is like."""
    talk_share: NotNegative = 0.33
    """Turns of the talks that a pass reads, for each message of a dialogue."""
    crowded: Share = 0.6
    """Share of the messages whose row is filled with what others told, where there are talks."""
    before_kept: Share = 0.5
    """Share of messages that are read with what really came before them; the others are read with
    nothing or a foreign turn before them, as when an item is old."""
    alone_share: Share = 1.0
    """Share of the messages with no earlier fact that a pass reads. They are half of the text and
    teach only what is worth keeping; a model that read 0.4 of them kept greetings."""
    items_as_read: Share = 0.6
    """Share of the messages whose items are worded as the memory's reader words them; those of the
    others are statements or quotations."""
    absent: Share = 0.0
    """Share of the messages that close something which are read without what they close, beside
    facts that they do not speak of. A model that never sees them closes whatever it is shown
    behind "sold my old amp"."""
    unrelated_weight: NotNegative = 0.6
    """What an untouched item of the same dialogue counts in the loss."""

    # The network.
    layers: Annotated[int, Field(ge=1, le=12)] = 12
    """Layers of multilingual-e5-small that are kept, spread evenly."""
    learning_layers: Annotated[int | None, Field(ge=0, le=12)] = None
    """Layers, counted from the last, that learn beside the heads; none: all. With 0 only the heads
    learn, and a step costs a third."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Dropout after the embeddings and in every layer."""

    # How it learns.
    steps: Count = 2_000
    """Training steps."""
    save_steps: Count = 500
    """Steps from one checkpoint to the next."""
    batch: Count = 24
    """Messages in a step, each with its items."""
    learning_rate: Positive = 2e-4
    """Peak learning rate of AdamW; falls to nothing in a line. The heads have three times it."""
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """How much slower every layer learns than the one above it."""
    warmup: Share = 0.06
    """Share of the steps in which the learning rate rises."""
    weight_decay: NotNegative = 0.01
    """Decoupled weight decay of AdamW."""
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Label smoothing."""
    closing_weight: NotNegative = 0.5
    """What the loss of "is the item closed at all" counts beside that of the relation."""
    worth_weight: NotNegative = 0.5
    """What the loss of `worth` counts beside that of `relate`."""
    bfloat16: bool | None = None
    """Products in 16 bits. By default where the processor has AMX for them: there they are several
    times faster, and elsewhere many times slower."""

    # GRPO on later questions.
    group: Annotated[int, Field(ge=2)] = 16
    """Joint decisions that are drawn in each state and compared."""
    advantage: Literal["group", "centred", "leave_one_out"] = "group"
    """What a decision is compared with; see docs/algorithms.md."""
    beta: NotNegative = 0.02
    """Weight of the KL divergence from the weights that training began with."""
    later: LaterConfig = LaterConfig()
    """What later answers, errors and words are worth."""


TASK: Final = Task(
    name="relations",
    summary="Train how a message relates to remembered items, and what in it is worth keeping.",
    settings=RelationsConfig,
    recipe="memograd.tasks.relations.recipe",
    options=(
        Option("--data", "data", "FILES", "Author batches of dialogues to train on."),
        Option("--eval", "eval_data", "FILES", "Batches of other authors to measure on."),
        Option("--cases", "cases", "FILES", "Behaviour cases to fit the thresholds to."),
    ),
    examples=(
        "memograd train relations --data corpus/dialogues/en-a.jsonl,corpus/dialogues/zh-a.jsonl"
        " --eval corpus/dialogues/en-b.jsonl,corpus/dialogues/zh-b.jsonl",
        "memograd train relations resume=runs/my-run steps=3000",
    ),
    notes=(
        "The trained model is the file final/relations.npz of the run:\n"
        '  load_relation_model("runs/my-run/final/relations.npz")',
    ),
)
