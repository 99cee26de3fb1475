"""A reward model as a reward function: `reward_model(path="runs/rm")`, `reward_model(url="...")`.

    path            folder of a run or of a saved model, or a hub id
    url             address of a server (memograd reward-model serve)
    length_control  True: take out what length earns by itself, as fitted in training
    length_slope    the same with a price per character of your own
    device          of a model by path
    timeout, retries  of a server: seconds for a request, further tries

A learned reward can be exploited, first of all by length: hence the control. A server must be there
when the reward is made, so that a run does not begin in vain; a model by path is loaded at its
first use, and once for all rewards with the same settings.

Invariant: a score that cannot be had raises, and `rewards.compose` makes that a `RewardError` with
the rollouts in it; never a 0.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from memograd.errors import BadInput
from memograd.reward_model.client import RemoteRewardModel
from memograd.reward_model.length import LENGTH_FILE, controlled
from memograd.reward_model.scorer import Item, Prompt, Scorer
from memograd.rewards.compose import RewardFunction

NAME = "reward_model"


def make_reward(settings: Mapping[str, Any]) -> RewardFunction:
    """The reward function that these settings describe.

    Raises:
        BadInput: a setting is unknown or does not fit, or there is no such model.
        MemogradError: nobody answers at `url`.
    """
    _check(settings)
    return _made(**settings)


def reward_of(scorer: Callable[[], Scorer], slope: Callable[[], float]) -> RewardFunction:
    """The reward function over a scorer and a price per character, both asked for when needed."""

    def reward_model(prompts: Sequence[Prompt], completions: Sequence[str]) -> list[float]:
        """The reward model's score of each completion."""
        items = [Item(p, c) for p, c in zip(prompts, completions, strict=True)]
        price = slope()
        return [
            controlled(score, item.answer, price)
            for score, item in zip(scorer().score(items), items, strict=True)
        ]

    return reward_model


def _made(
    *,
    path: str = "",
    url: str = "",
    length_control: bool = False,
    length_slope: float | None = None,
    device: str = "auto",
    timeout: float = 60.0,
    retries: int = 3,
) -> RewardFunction:
    if bool(path) == bool(url):
        raise BadInput('Reward "reward_model" needs either path="FOLDER" or url="http://...".')
    if length_control and length_slope is not None:
        raise BadInput('Reward "reward_model" takes length_control or length_slope, not both.')
    price = length_slope or 0.0
    if url:
        remote = RemoteRewardModel(url, timeout=timeout, retries=retries)
        remote.health()
        if length_control:
            price = remote.length_slope()
        return reward_of(lambda: remote, lambda: price)
    _check_folder(path, length_control)

    def local() -> Scorer:
        return _opened(path, device)

    return reward_of(local, (lambda: local().length_slope()) if length_control else lambda: price)


@cache
def _opened(path: str, device: str) -> Scorer:
    from memograd.reward_model.model import RewardModel

    return RewardModel.open(path, device=device)


def _check_folder(path: str, length_control: bool) -> None:
    """What can be seen without loading the model: that a folder is one, and has its length fit."""
    folder = Path(path).expanduser()
    if folder.is_absolute() and not folder.is_dir():
        raise BadInput(f"There is no reward model {path}; train one, or give a folder or hub id.")
    if not folder.is_dir():
        return
    if (folder / "run.json").is_file():
        try:
            task = json.loads((folder / "run.json").read_bytes()).get("task")
        except (ValueError, AttributeError) as error:
            raise BadInput(f"{folder / 'run.json'} is damaged ({error}).") from error
        if task != "reward-model":
            raise BadInput(f"{path} is a run of {task or 'another task'}, not of a reward model.")
    elif not (folder / "config.json").is_file() and not (folder / "reward_model.json").is_file():
        raise BadInput(f"{path} holds no reward model; give a run folder or a saved model.")
    fits = [place / LENGTH_FILE for place in (folder, folder.parent)]
    if length_control and not any(fit.is_file() for fit in fits):
        raise BadInput(
            f"{path} has no fitted price of length ({LENGTH_FILE}); give length_slope=NUMBER."
        )


def _check(settings: Mapping[str, Any]) -> None:
    known: dict[str, tuple[type, ...]] = {
        "path": (str,),
        "url": (str,),
        "length_control": (bool,),
        "length_slope": (int, float),
        "device": (str,),
        "timeout": (int, float),
        "retries": (int,),
    }
    assert known.keys() == inspect.signature(_made).parameters.keys()
    for name, value in settings.items():
        if name not in known:
            raise BadInput(f'Reward "{NAME}" has no setting {name}; it has {", ".join(known)}.')
        truth = isinstance(value, bool) and bool not in known[name]
        if truth or not isinstance(value, known[name]):
            kinds = " or ".join(kind.__name__ for kind in known[name])
            raise BadInput(f'{name} of reward "{NAME}" must be {kinds}, not {value!r}.')
    for name in ("timeout", "retries"):
        if settings.get(name, 1) < 0 or (name == "timeout" and settings.get(name) == 0):
            raise BadInput(f'{name} of reward "{NAME}" is out of range: {settings[name]!r}.')
