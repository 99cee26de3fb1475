"""The built-in rewards by name.

Two kinds. `REWARDS` are reward functions as they stand, over a whole batch. `SCORES` are pure
functions of one completion, which are easier to read and to test: positional parameters after the
completion are columns of the row (`answer`, `keywords`; `prompt` is the prompt's text), parameters
after the star are settings, fixed for a run. `bound` makes a reward function of a score.

Invariant: for a row that has no entry (None) in a column it reads, a score gives None: it does not
apply there.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, get_args, get_type_hints

from memograd.errors import BadInput
from memograd.rewards.compose import RewardFunction, environment
from memograd.rewards.locomo import locomo_f1
from memograd.rewards.matching import exact_match, numeric_match
from memograd.rewards.mem0 import mem0_bleu1, mem0_f1
from memograd.rewards.squad import memory_r1_exact_match
from memograd.rewards.style import (
    coherence,
    format_match,
    keyword_coverage,
    language_consistency,
    length,
    repetition_penalty,
)

Score = Callable[..., float | None]
"""`f(completion, column, ..., *, setting=default, ...)`: the score of one completion."""

REWARDS: dict[str, RewardFunction] = {
    "locomo_f1": locomo_f1,
    "mem0_f1": mem0_f1,
    "mem0_bleu1": mem0_bleu1,
    "environment": environment,
}
SCORES: dict[str, Score] = {
    score.__name__: score
    for score in (
        *(exact_match, memory_r1_exact_match, numeric_match),
        *(format_match, length, repetition_penalty),
        *(language_consistency, coherence, keyword_coverage),
    )
}


def get_reward(name: str, settings: Mapping[str, Any] | None = None) -> RewardFunction:
    """The built-in reward of that name, with its settings.

    Raises `BadInput` with the nearest names if there is none, and for a setting that it does not
    have or that does not fit.
    """
    if name in SCORES:
        return bound(SCORES[name], settings or {})
    if name in REWARDS:
        if settings:
            raise BadInput(f'Reward "{name}" has no settings, but {", ".join(settings)} is given.')
        return REWARDS[name]
    known = [*REWARDS, *SCORES]
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}."
    raise BadInput(f'There is no reward "{name}"; {hint}')


def bound(score: Score, settings: Mapping[str, Any]) -> RewardFunction:
    """The reward function that scores every completion of a batch with these settings."""
    _check_settings(score, settings)
    columns = _columns(score)

    def reward(
        prompts: Sequence[Any], completions: Sequence[str], **batch: Sequence[Any]
    ) -> list[float | None]:
        batch["prompt"] = [prompt_text(prompt) for prompt in prompts]
        values: list[float | None] = []
        for row, completion in enumerate(completions):
            read = [batch[column][row] for column in columns]
            applies = all(value is not None for value in read)
            values.append(score(completion, *read, **settings) if applies else None)
        return values

    if set(columns) <= {"prompt"}:
        # A setting out of range is found now and not after a model was loaded.
        score("", *columns, **settings)
    named = [name for name in columns if name != "prompt"]
    signature = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
            for name in ("prompts", "completions", *named)
        ]
    )
    reward.__signature__ = signature  # type: ignore[attr-defined]
    reward.__doc__ = score.__doc__
    return reward


def prompt_text(prompt: str | Sequence[Mapping[str, str]]) -> str:
    """A prompt's own text, or what the user said last in a chat."""
    if isinstance(prompt, str):
        return prompt
    said = [message["content"] for message in prompt if message["role"] == "user"]
    return said[-1] if said else "\n".join(message["content"] for message in prompt)


def _columns(score: Score) -> list[str]:
    parameters = list(inspect.signature(score).parameters.values())[1:]
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def _check_settings(score: Score, settings: Mapping[str, Any]) -> None:
    hints = get_type_hints(score)
    known = [
        p.name for p in inspect.signature(score).parameters.values() if p.kind is p.KEYWORD_ONLY
    ]
    name = getattr(score, "__name__", "score")
    for setting, value in settings.items():
        if setting not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise BadInput(f'Reward "{name}" has no setting {setting}; {has}.')
        if not _fits(value, hints[setting]):
            expected = str(getattr(hints[setting], "__name__", hints[setting]))
            raise BadInput(f'{setting} of reward "{name}" must be {expected}, not {value!r}.')


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, UnionType):
        return any(_fits(value, member) for member in get_args(kind))
    plain = getattr(kind, "__origin__", kind)
    if plain in (list, tuple):
        return isinstance(value, plain) and all(isinstance(entry, str) for entry in value)
    if isinstance(value, bool):
        return plain is bool
    return isinstance(value, (int, float) if plain is float else plain)
