"""The text task: rows of prompts become scenarios; what is right is up to the rewards.

A row is one JSON object a line: `prompt` (a text, or a list of chat messages), an `id` if wanted,
and free columns, which rewards read. A column that some rows lack is None there, so that one file
can hold several tasks.

Invariants: rows with the same prompt are never on both sides of a split; every row is either a
scenario or an error with its file and line; a prompt is dropped only for its length, and is listed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memograd.data.record_files import json_lines
from memograd.errors import BadInput
from memograd.rollout.types import Message, Scenario
from memograd.tasks.text.settings import RowsConfig

RESERVED = ("prompts", "completions", "environment_rewards")
"""What a reward function gets beside the columns, so no column may have these names."""


@dataclass(frozen=True)
class TextRow:
    """One line of a data file; `prompt` is a text or chat messages."""

    id: str
    prompt: str | tuple[Message, ...]
    columns: dict[str, Any]
    place: str


@dataclass(frozen=True)
class Dropped:
    """A row whose prompt is too long, with its length in tokens."""

    id: str
    tokens: int


def read_rows(path: Path) -> list[TextRow]:
    """All rows of a JSONL file, in order; blank lines are skipped.

    A row without an id is called by file and line. The column `id` is there for rewards too.

    Raises:
        BadInput: the file cannot be read or has no row, or a row is not as it must be; the
            sentence has the file and the line.
    """
    rows: list[TextRow] = []
    places: dict[str, str] = {}
    for number, found in json_lines(path, "rows"):
        place = f"{path}:{number}"
        row = _row(_object(found, place), place, default_id=f"{path.stem}:{number}")
        if row.id in places:
            raise BadInput(f"{place}: the id {row.id!r} is that of {places[row.id]} already.")
        places[row.id] = place
        rows.append(row)
    if not rows:
        raise BadInput(
            f"The data file {path} has no rows; give one JSON object with a prompt each."
        )
    names = sorted({name for row in rows for name in row.columns})
    return [
        TextRow(row.id, row.prompt, {name: row.columns.get(name) for name in names}, row.place)
        for row in rows
    ]


def split_rows(
    rows: Sequence[TextRow], fraction: float, *, by_columns: bool = False
) -> tuple[list[TextRow], list[TextRow]]:
    """Rows to train on and rows to evaluate on, each in the order given.

    The different prompts with the smallest hashes are for evaluation: `fraction` of them, and at
    least one unless `fraction` is 0. The choice depends on the prompts alone, neither on their
    order nor on a seed. With `by_columns`, rows of one prompt and other columns are different
    problems and count by themselves.

    Raises:
        BadInput: nothing would be left to train on.
    """
    hashes = [_problem(row, by_columns) for row in rows]
    prompts = sorted(set(hashes))
    held_out = set(prompts[: max(1, round(fraction * len(prompts)))] if fraction else [])
    if len(held_out) == len(prompts):
        raise BadInput(
            f"The data have {len(prompts)} different {'rows' if by_columns else 'prompts'}, and "
            f"text.eval_fraction={fraction} leaves none of them to train on; give more, or name "
            "another file with --eval, or set text.eval_fraction=0."
        )
    return (
        [row for row, its in zip(rows, hashes, strict=True) if its not in held_out],
        [row for row, its in zip(rows, hashes, strict=True) if its in held_out],
    )


def told_apart(
    data: Path, settings: RowsConfig, *, by_columns: bool = False
) -> tuple[list[TextRow], list[TextRow]]:
    """Rows to train on and rows to evaluate on, of one file or of two, as the settings say.

    Raises:
        BadInput: a file is not one of rows, or the two have something in common.
    """
    rows = read_rows(data)
    if settings.eval_data is None:
        return split_rows(rows, settings.eval_fraction, by_columns=by_columns)
    evaluation = read_rows(settings.eval_data)
    check_apart(rows, evaluation, by_columns=by_columns)
    return rows, evaluation


def check_apart(
    train: Sequence[TextRow], evaluation: Sequence[TextRow], *, by_columns: bool = False
) -> None:
    """Raise `BadInput` if a row to evaluate on has the prompt of one that is trained on; with
    `by_columns`, only if the other columns are the same too."""
    trained_on = {_problem(_as_written(row), by_columns): row.place for row in train}
    for row in evaluation:
        other = trained_on.get(_problem(_as_written(row), by_columns))
        if other is not None:
            raise BadInput(
                f"{row.place} has the same {'content' if by_columns else 'prompt'} as {other}, "
                "which is trained on; take it out of one of them, or the evaluation says nothing "
                "about new prompts."
            )


def text_scenarios(
    rows: Iterable[TextRow],
    *,
    string_prompts: str,
    encode: Callable[[str | Sequence[Message]], Sequence[int]],
    limit: int,
) -> tuple[list[Scenario], list[Dropped]]:
    """The rows as scenarios, without those whose prompt has more than `limit` tokens.

    `string_prompts` is "text" (a string is continued as it stands) or "chat" (it is put as the
    user's message; rewards then see a chat too). `encode` gives the token ids of a prompt.

    Raises:
        BadInput: a prompt cannot be encoded or has no token; the sentence has file and line.
    """
    scenarios, dropped = [], []
    for row in rows:
        prompt = row.prompt
        if isinstance(prompt, str) and string_prompts == "chat":
            prompt = (Message(role="user", content=prompt),)
        try:
            tokens = len(encode(prompt))
        except BadInput as error:
            raise BadInput(f"{row.place}: {error}") from error
        if tokens == 0:
            raise BadInput(f"{row.place}: the prompt has no tokens; write what is to be continued.")
        if tokens > limit:
            dropped.append(Dropped(row.id, tokens))
        elif isinstance(prompt, str):
            scenarios.append(Scenario(row.id, (), row.columns, text=prompt))
        else:
            scenarios.append(Scenario(row.id, prompt, row.columns))
    return scenarios, dropped


def _object(found: Any, place: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadInput(f'{place}: {type(found).__name__}, not an object like {{"prompt": ...}}.')
    return found


def _row(found: dict[str, Any], place: str, *, default_id: str) -> TextRow:
    if "prompt" not in found:
        has = f"it has {', '.join(found)}" if found else "it is empty"
        raise BadInput(f'{place}: there is no "prompt"; {has}.')
    for name in RESERVED:
        if name in found:
            raise BadInput(f"{place}: no column may be called {name!r}; rewards get that anyway.")
    row_id = found.get("id", default_id)
    if isinstance(row_id, bool) or not isinstance(row_id, str | int) or not str(row_id).strip():
        raise BadInput(f'{place}: "id" must be a text or a whole number, not {row_id!r}.')
    columns = {name: value for name, value in found.items() if name != "prompt"}
    return TextRow(
        str(row_id), _prompt(found["prompt"], place), {**columns, "id": str(row_id)}, place
    )


def _prompt(prompt: Any, place: str) -> str | tuple[Message, ...]:
    if isinstance(prompt, str):
        if not prompt.strip():
            raise BadInput(f'{place}: "prompt" is blank.')
        return prompt
    if not isinstance(prompt, list) or not prompt:
        raise BadInput(
            f'{place}: "prompt" must be a text or a list of chat messages, not '
            f"{'an empty list' if prompt == [] else type(prompt).__name__}."
        )
    messages = []
    for number, message in enumerate(prompt, start=1):
        fits = isinstance(message, dict) and set(message) == {"role", "content"}
        if not fits or not all(isinstance(value, str) for value in message.values()):
            raise BadInput(
                f'{place}: message {number} of "prompt" must be {{"role": ..., "content": ...}}, '
                "both texts."
            )
        messages.append(Message(role=message["role"], content=message["content"]))
    if messages[-1]["role"] == "assistant":
        raise BadInput(
            f'{place}: "prompt" ends with what the assistant says, but the answer is to be sampled;'
            " end it with the user's message."
        )
    return tuple(messages)


def _as_written(row: TextRow) -> TextRow:
    """Without the columns that only other rows of its file have: two files have different ones."""
    return replace(row, columns={name: one for name, one in row.columns.items() if one is not None})


def _problem(row: TextRow, by_columns: bool) -> str:
    """A hash of what is asked; the id of a row is no part of it.

    A text and a chat in which the user says it and nothing else are the same prompt.
    """
    prompt = row.prompt
    chat = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    columns = {name: value for name, value in row.columns.items() if name != "id"}
    asked = [chat, columns] if by_columns else chat
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
