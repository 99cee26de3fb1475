"""What `memograd train relations` can be told.

Invariant: resolved settings survive their JSON form unchanged, so `config.json` is the whole recipe
of a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from memograd.config.settings import Count, NotNegative, Positive, RunSettings

Share = Annotated[float, Field(ge=0, le=1)]


class RelationsConfig(RunSettings):
    """Everything that training the relation model can be told."""

    # What is trained on.
    data: list[Path] = []
    """Author batches of dialogues (corpus/dialogues) to train on."""
    eval_data: list[Path] = []
    """Batches of other authors, to calibrate and to measure on."""
    pairs: list[Path] = []
    """Further pairs to train on: lines with a (earlier text), b (new message) and label, one of
    supersede, end, keep."""
    before_kept: Share = 0.5
    """Share of messages that are read with what really came before them; the others are read with
    nothing or a foreign turn before them, as when an item is old."""
    alone_share: Share = 1.0
    """Share of the messages with no earlier fact that a pass reads. They are half of the text and
    teach only what is worth keeping; a model that read 0.4 of them kept greetings."""
    items_as_read: Share = 0.6
    """Share of the messages whose items are worded as the memory's reader words them; those of the
    others are statements or quotations."""
    unrelated_weight: NotNegative = 0.6
    """What an untouched item of the same dialogue counts in the loss."""

    # The network.
    layers: Annotated[int, Field(ge=1, le=12)] = 12
    """Layers of multilingual-e5-small that are kept, spread evenly."""
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
    bfloat16: bool = True
    """Products in 16 bits, which is several times faster where the processor has AMX."""
