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

A request that could not be sent, timed out, or met a server that was busy or broken is tried again
after a growing pause; a refusal (4xx) is not, it would be refused again, but a batch of too many
bytes (413) is asked for in halves. When the tries are used up, or the answer is not one finite
number per item, it raises.

Invariant: a score that cannot be had raises, and `rewards.compose` makes that a `RewardError` with
the rollouts in it; never a 0.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memograd.errors import BadInput, MemogradError
from memograd.reward_model import api
from memograd.reward_model.api import Item, Prompt, Scorer
from memograd.reward_model.length import LENGTH_FILE, LengthControl, controlled
from memograd.reward_model.server import API_KEY_VARIABLE
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
    """What can be seen without loading the model: that it is there, and has its length fit."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        if folder.is_absolute() or not _on_hub(path):
            raise BadInput(
                f"There is no reward model {path}; train one, or give a folder or hub id."
            )
        return
    if (folder / "run.json").is_file():
        from memograd.reward_model.model import latest_checkpoint

        folder = latest_checkpoint(folder)
    elif not (folder / "config.json").is_file() and not (folder / "reward_model.json").is_file():
        raise BadInput(f"{path} holds no reward model; give a run folder or a saved model.")
    if length_control and LengthControl.of(folder) is None:
        raise BadInput(
            f"{path} has no fitted price of length ({LENGTH_FILE}); give length_slope=NUMBER."
        )


def _on_hub(model: str) -> bool:
    from transformers import AutoConfig

    try:
        AutoConfig.from_pretrained(model)
    except (OSError, ValueError):
        return False
    return True


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


AGAIN = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
ITEMS = 64
"""Answers of one request."""
FIRST_PAUSE = 0.25
"""Seconds before the second try; doubled each time."""
TOO_LONG = 413
"""Status of a body that has more bytes than the server takes."""

Read = TypeVar("Read", bound=BaseModel)


class TooLong(MemogradError):
    """The server takes no request of so many bytes."""


class RemoteRewardModel:
    """A reward model behind `url`; its key is in the environment (`MEMOGRAD_REWARD_MODEL_KEY`).

    timeout: seconds for one request. retries: further tries of a request that failed.
    """

    def __init__(self, url: str, *, timeout: float = 60.0, retries: int = 3) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadInput(f"url={url} of a reward model must begin with http:// or https://.")
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise BadInput(
                "Asking a reward model by URL needs httpx; run pip install 'memograd[gateway]'."
            ) from error
        try:
            host = httpx.URL(url).host
        except httpx.InvalidURL:
            host = ""
        if not host:
            raise BadInput(f"url={url} of a reward model is no address; write http://host:port.")
        self.url = url.rstrip("/")
        self._retries = retries
        key = os.environ.get(API_KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(timeout=timeout, headers=headers)

    def health(self) -> api.Health:
        """Who answers there; MemogradError if nobody does."""
        return _read(api.Health, self._ask("GET", "/health"), self.url)

    def length_slope(self) -> float:
        """The server's price of a character; BadInput if it has none."""
        slope = self.health().length_slope
        if slope is None:
            raise BadInput(
                f"The reward model at {self.url} has no fitted price of length; give "
                "length_slope=NUMBER instead."
            )
        return slope

    def score(self, items: Sequence[Item]) -> list[float]:
        """One score per item, in their order."""
        scores: list[float] = []
        for start in range(0, len(items), ITEMS):
            scores += self._score(items[start : start + ITEMS])
        return scores

    def _score(self, items: Sequence[Item]) -> list[float]:
        """Scores of one request, or of two where the server finds it too long."""
        body = {"items": [{"prompt": one.prompt, "answer": one.answer} for one in items]}
        try:
            answer = self._ask("POST", "/score-batch", body)
        except TooLong:
            if len(items) == 1:
                raise
            half = len(items) // 2
            return self._score(items[:half]) + self._score(items[half:])
        found = _read(api.BatchResponse, answer, self.url)
        if len(found.scores) != len(items):
            raise MemogradError(
                f"The reward model at {self.url} gave {len(found.scores)} scores for "
                f"{len(items)} answers."
            )
        return found.scores

    def _ask(self, method: str, path: str, body: Any = None) -> bytes:
        import httpx

        problem, tries = "", 0
        while tries <= self._retries:
            if tries:
                time.sleep(FIRST_PAUSE * 2 ** (tries - 1))
            tries += 1
            try:
                response = self._http.request(method, self.url + path, json=body)
            except UnicodeEncodeError as error:
                raise MemogradError(
                    f"A text for the reward model at {self.url} holds half a character (a lone "
                    "surrogate), which cannot be sent."
                ) from error
            except httpx.RequestError as error:
                problem = str(error) or type(error).__name__
                continue
            if response.is_success:
                return response.content
            problem = f"status {response.status_code}: {response.text[:200]}"
            if response.status_code not in AGAIN:
                break
        kind = TooLong if problem.startswith(f"status {TOO_LONG}") else MemogradError
        raise kind(
            f"The reward model at {self.url} did not answer {path} (tries: {tries}; {problem})."
        )


def _read(kind: type[Read], content: bytes, url: str) -> Read:
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise MemogradError(
            f"What answers at {url} is no reward model's server: {error.errors()[0]['msg']}."
        ) from error
