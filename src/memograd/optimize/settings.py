"""What `memograd optimize` can be told.

Invariant: whatever can be refused without opening a model is refused here: an optimiser that needs
a model to write proposals is not begun without one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from memograd.config.settings import Count, Seed, Settings, Text
from memograd.config.unread import Unread
from memograd.tasks.memory_qa.settings import OF_ITEMS, MemoryConfig, MemoryQATrainConfig

Optimizer = Literal["bootstrap", "simba", "miprov2", "gepa"]
PROPOSING: tuple[Optimizer, ...] = ("miprov2", "gepa")
"""Optimisers that do nothing without proposals; simba and bootstrap choose demonstrations too."""


class EndpointConfig(Settings):
    """A model behind an OpenAI-compatible server; its key is in the environment."""

    model: Text | None = None
    """Name of the model there; none: there is no such model."""
    url: Text = "https://api.openai.com/v1"
    """Address of the server, up to its /v1; memograd gateway is one too."""

    @model_validator(mode="after")
    def _of_a_model(self) -> EndpointConfig:
        if self.model is None and "url" in self.model_fields_set:
            raise ValueError(f"url={self.url} would be ignored without a model there: set model")
        return self


class OptimizeConfig(Settings):
    """Everything that `memograd optimize memory-qa` can be told.

    unread: which of its settings nothing reads, and where.
    """

    unread: ClassVar[tuple[Unread, ...]] = (
        OF_ITEMS,
        Unread(("budget", "demos"), lambda c: not c.optimizer, "optimizer names none that is run"),
        Unread(("demos",), lambda c: c.optimizer == ["gepa"], "gepa takes no demonstrations"),
    )

    optimizer: list[Optimizer] = []
    """Optimisers, each with the same calls: bootstrap, simba, miprov2, gepa."""
    budget: Count = 200
    """Calls of the answering model that an optimiser may make, a seed."""
    seeds: Annotated[list[Seed], Field(min_length=1)] = [0, 1, 2]
    """An optimisation each; what it sees and tries is drawn with it."""
    program: list[Path] = []
    """Saved programs to measure beside those that are optimised."""
    run: list[Path] = []
    """Runs of memory-qa whose adapters are measured with and without the programs: one, or one a
    seed."""
    data: Path | None = None
    """File of conversations (docs/data.md); none: generated lives."""
    train: list[Text] = []
    """Conversation ids to optimise on; empty: all but the last."""
    eval: list[Text] = []
    """Conversation ids to measure on; empty: the last."""
    max_train: Annotated[int | None, Field(ge=1)] = None
    """Questions to optimise on, at most; none: all of them."""
    max_eval: Annotated[int | None, Field(ge=1)] = None
    """Held-out questions, at most; none: all of them."""
    memory: MemoryConfig = MemoryConfig()
    """What is remembered and retrieved."""
    model: Text = "smollm2-135m-instruct"
    """The model that answers: the packaged model's alias, a hub id or a folder."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where it computes."""
    max_completion_length: Count = 16
    """Tokens of an answer, at most."""
    rewards: str = "locomo_f1"
    """What is optimised, weighted as name:weight,name:weight."""
    prompt: EndpointConfig = EndpointConfig()
    """The model that writes proposals; key: MEMOGRAD_PROMPT_KEY."""
    evaluation: EndpointConfig = EndpointConfig()
    """The model that judges the answers of the table; key: MEMOGRAD_EVALUATION_KEY."""
    demos: Count = 2
    """Demonstrations in a prompt, at most."""
    threads: Count = 1
    """Questions asked at once; with more than one, what is drawn cannot be repeated."""
    out: Path | None = None
    """New folder of programs and table; none: runs/optimize-<timestamp>."""

    @model_validator(mode="after")
    def _fits(self) -> OptimizeConfig:
        if not (self.optimizer or self.program or self.run):
            raise ValueError("name an optimizer, a saved program or a run to measure")
        if len(set(self.optimizer)) < len(self.optimizer):
            raise ValueError("optimizer names one twice")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("seeds names one twice")
        needing = [name for name in self.optimizer if name in PROPOSING]
        if needing and self.prompt.model is None:
            raise ValueError(
                f"{needing[0]} needs a model that writes proposals: set prompt.model, and "
                "prompt.url if it is not OpenAI's"
            )
        if self.prompt.model is not None and set(self.optimizer) <= {"bootstrap"}:
            raise ValueError(
                f"prompt.model={self.prompt.model} would be ignored, for no optimizer that writes"
                " proposals is named: leave it out, or name one"
            )
        if len(self.run) not in (0, 1, len(self.seeds)):
            raise ValueError(
                f"run names {len(self.run)} runs for {len(self.seeds)} seeds: give one, or one a "
                "seed"
            )
        return self

    def questions(self) -> MemoryQATrainConfig:
        """The settings as a run of memory-qa would have them, which make the same questions."""
        return MemoryQATrainConfig(
            data=self.data,
            train=self.train,
            eval=self.eval,
            max_train=self.max_train,
            max_eval=self.max_eval,
            memory=self.memory,
            model=self.model,
            device=self.device,
            max_completion_length=self.max_completion_length,
            rewards=self.rewards,
            seed=self.seeds[0],
        )
