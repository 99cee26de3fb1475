"""The built-in rewards by name, and which rewards a run uses, written in one line.

    exact_match                              a built-in reward, weight 1
    length(low=40, high=60):0.2              with settings, and a weight
    my_rewards.py:exact,polite:0.5           functions of a file: exact, and polite at half weight
    my_package.rewards:exact                 a function of a module
    my_rewards.py:exact,length:0.1           all of them together
    reward_model(path="runs/rm"):0.5         made by a room above, see `Makers`

Entries are separated by commas. A bare name after a file or module is looked for there first and
among the built-ins next, so what is the user's own wins. Only built-in rewards, and those that are
made, have settings.

Built-in rewards are of two kinds. `REWARDS` are reward functions as they stand, over a whole batch.
`SCORES` are pure functions of one completion, which are easier to read and to test: positional
parameters after the completion are columns of the row (`answer`, `keywords`; `prompt` is the
prompt's text), parameters after the star are settings, fixed for a run. `bound` makes a reward
function of a score.

Invariants: a specification is either understood whole or refused in one sentence; for a row that
has no entry (None) in a column it reads, a score gives None: it does not apply there.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, get_args, get_type_hints

from memograd.errors import BadInput
from memograd.rewards.compose import ENVIRONMENT, RewardFunction, WeightedReward, environment
from memograd.rewards.matching import exact_match, numeric_match
from memograd.rewards.overlap import locomo_f1, mem0_bleu1, mem0_f1, memory_r1_exact_match
from memograd.rewards.style import (
    coherence,
    format_match,
    keyword_coverage,
    language_consistency,
    length,
    repetition_penalty,
)
from memograd.rewards.user_code import function_of, load_file, load_module

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


_FILE = re.compile(r"(?P<source>.+\.py)\s*:(?P<rest>.*)", re.DOTALL)
_NAME = r"[^\W\d]\w*"
_MODULE = re.compile(rf"(?P<source>{_NAME}(?:\.{_NAME})*)\s*:\s*(?P<rest>{_NAME}.*)", re.DOTALL)
_CALL = re.compile(r"(?P<name>\w+)\s*\((?P<settings>.*)\)", re.DOTALL)
_OPENING, _CLOSING = "([{", ")]}"

TAKEN: Mapping[str, str] = {
    "total": "the weighted sum of all rewards is called",
    "overlong": "the length penalty of overlong_share is called",
    ENVIRONMENT: "what an agent's environment gives is called",
}
"""Names that stand among the rewards of a run for something else."""

Makers = Mapping[str, Callable[[Mapping[str, Any]], RewardFunction]]
"""Rewards that rooms above this one make: name -> what makes the function of its settings. A
setting that is called `path` is a path."""


def parse_rewards(spec: str, makers: Makers | None = None) -> list[WeightedReward]:
    """Read a specification; the names in it are the names that the rewards are logged under.

    `makers` adds rewards to the built-in ones.

    Raises:
        BadInput: a name is unknown, empty, given twice or that of something else among the rewards,
            a file or module cannot be loaded, a weight is not a finite number, a setting does not
            fit, or all weights are 0.
    """
    rewards: list[WeightedReward] = []
    modules: dict[str, ModuleType] = {}
    source: ModuleType | None = None
    for part in split_entries(spec):
        named, rest = _source_and_rest(part)
        if named is not None:
            if named not in modules:
                modules[named] = (
                    load_file(Path(named)) if named.endswith(".py") else load_module(named)
                )
            source = modules[named]
        reward = _one_reward(rest, part, source, makers or {}, own=named is not None)
        if reward.name in (earlier.name for earlier in rewards):
            raise BadInput(f'Reward "{spec}" names {reward.name} twice; give it one weight.')
        rewards.append(reward)
    if all(reward.weight == 0 for reward in rewards):
        raise BadInput(f'Reward "{spec}" gives every function weight 0; nothing would be learned.')
    return rewards


def with_absolute_files(spec: str) -> str:
    """The same specification for any working directory."""
    parts = []
    for part in split_entries(spec):
        named, rest = _source_and_rest(part)
        whole = named is not None and named.endswith(".py")
        parts.append(f"{Path(str(named)).resolve()}:{rest}" if whole else _with_absolute_path(part))
    return ",".join(parts)


def _with_absolute_path(part: str) -> str:
    """The entry with its setting `path` absolute, if that names something that is there."""
    match = _CALL.match(part)
    settings = _settings(match["settings"], part) if match else {}
    path = settings.get("path")
    if match is None or not isinstance(path, str) or not Path(path).expanduser().exists():
        return part
    settings = {**settings, "path": str(Path(path).expanduser().resolve())}
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return f"{match['name']}({given}){part[match.end() :]}"


def split_entries(spec: str) -> list[str]:
    """Cut at the commas that are in no brackets and no quotes; entries without outer blanks."""
    entries, depth, quote, start = [], 0, "", 0
    for at, character in enumerate(spec):
        if quote:
            if character == quote and spec[at - 1] != "\\":
                quote = ""
        elif character in "\"'" and depth:
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth <= 0:
            entries.append(spec[start:at].strip())
            start = at + 1
    return [*entries, spec[start:].strip()]


def _source_and_rest(part: str) -> tuple[str | None, str]:
    """The file or module that an entry names, and what it takes from there."""
    match = None if _CALL.match(part) else _FILE.fullmatch(part) or _MODULE.fullmatch(part)
    if match is None:
        return None, part
    source, rest = match["source"].strip(), match["rest"].strip()
    if source in REWARDS or source in SCORES or _is_number(rest):
        return None, part
    return source, rest


def _one_reward(
    rest: str, part: str, source: ModuleType | None, makers: Makers, *, own: bool
) -> WeightedReward:
    called, weight = _called_and_weight(rest, part)
    match = _CALL.fullmatch(called)
    name = match["name"] if match else called
    if not name:
        raise BadInput(f'Reward "{part}" has an empty entry; write name or name:weight.')
    if name.endswith(".py"):
        raise BadInput(f'Reward "{part}" names a file and no function of it; write {name}:NAME.')
    if source is not None and (own or hasattr(source, name)):
        if match:
            raise BadInput(
                f'Reward "{part}": only built-in rewards have settings; write another function in '
                f"{getattr(source, '__file__', source.__name__)} that calls {name} with them."
            )
        if name in TAKEN:
            raise BadInput(
                f'Reward "{part}": {TAKEN[name]} {name}; give your function another name.'
            )
        return WeightedReward(name, function_of(source, name), weight, reads_messages=True)
    settings = _settings(match["settings"], part) if match else {}
    if name in makers:
        return WeightedReward(name, makers[name](settings), weight)
    return WeightedReward(name, get_reward(name, settings), weight)


def _called_and_weight(rest: str, part: str) -> tuple[str, float]:
    """`name(settings)` and the weight behind the last colon that is in no brackets."""
    end = rest.rfind(")") + 1
    name, colon, weight = rest[end:].partition(":")
    called = (rest[:end] + name).strip()
    return called, _parse_weight(weight.strip(), part) if colon else 1.0


def _settings(text: str, part: str) -> Mapping[str, Any]:
    """`low=40, language=zh` as Python literals; a bare word is a text."""
    problem = f'Reward "{part}": write settings as name(key=value, key="text")'
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{problem}.") from error
    if not isinstance(call, ast.Call) or call.args:
        raise BadInput(f"{problem}.")
    settings = {}
    for keyword in call.keywords:
        try:
            word = keyword.value.id if isinstance(keyword.value, ast.Name) else None
            value = ast.literal_eval(keyword.value) if word is None else word
        except ValueError as error:
            raise BadInput(f"{problem}; {keyword.arg} has another kind of value.") from error
        if keyword.arg is None:
            raise BadInput(f"{problem}.")
        settings[keyword.arg] = value
    return settings


def _parse_weight(text: str, part: str) -> float:
    weight = float(text) if _is_number(text) else math.nan
    if not math.isfinite(weight):
        raise BadInput(f'"{text}" in reward "{part}" is not a finite number; write name:0.5.')
    return weight


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
