"""What `memograd evaluate` can be told of a policy over memory operations.

Imports pydantic and `settings`. Invariant: what does not fit is one sentence that names the setting
(`tests/recipes/test_memory_ops_evaluate.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from memograd.config.settings import Count, Settings, Text

Ks = Annotated[list[Count], Field(min_length=1)]
Budgets = Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1)]


class OperationsEvaluation(Settings):
    """On what a policy is measured, beside whom, and how far."""

    data: list[Path] = []  # noqa: RUF012 (pydantic copies it)
    """Files to measure on: life logs or conversations with questions; none: the run's own."""
    out: Path | None = None
    """Folder for the tables; none: the run's, or a folder in it where data are given."""
    heads: list[Text] = []  # noqa: RUF012
    """Other trained heads for the table, each NAME=FOLDER."""
    ks: Ks = [5, 10]  # noqa: RUF012
    """Numbers of items found for which evidence recall is measured."""
    budgets: Budgets = [1.0, 0.5, 0.25]  # noqa: RUF012
    """Shares of all tokens that the memory may hold, a table each; 1 is no limit."""
    limit_logs: Annotated[int | None, Field(ge=1)] = None
    """Measure on the first so many logs only."""
    manager_model: Annotated[str | None, Field(min_length=1)] = None
    """Chat model that decides by prompt: endpoint, or a local model; slow."""
    reader: Annotated[str | None, Field(min_length=1)] = None
    """Chat model that answers from what was found: endpoint, or a local model."""
    limit_questions: Count = 60
    """Questions that the reader answers per method, spread over all."""
    judge: Literal["strict", "lenient"] | None = None
    """Prompt by which the configured endpoint judges the reader's answers."""
