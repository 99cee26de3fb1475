"""Settings that another setting makes useless, refused where they are given all the same.

A setting that nothing reads looks obeyed, and the run answers another question than was asked. What
reads a setting stands far from where it is declared, so each kind of settings says beside its
declarations, as its `unread`, which of them nothing reads, and where.

Invariant: nothing is refused that has the value which it would have if it were left out, so
settings that are written out in full can be given again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from memograd.errors import BadInput


@dataclass(frozen=True)
class Unread:
    """Settings, dotted, that nothing reads `where` the settings are such, and `because` of what."""

    names: tuple[str, ...]
    where: Callable[[Any], bool]
    because: str


class _Told(Protocol):
    unread: ClassVar[tuple[Unread, ...]]


def refuse_unread(config: _Told) -> None:
    """Raise BadInput for a setting that was given and that nothing would read."""
    rules = [rule for rule in config.unread if rule.where(config)]
    if not rules:
        return
    # What presets go by, and what must be there.
    chosen = (
        *("algorithm", "tuning", "data", "task"),
        *("optimizer", "program", "run", "seeds", "prompt"),
    )
    given = {name: getattr(config, name) for name in chosen if hasattr(config, name)}
    left_out = type(config)(**given)  # what presets fill in was not given
    for rule in rules:
        for name in rule.names:
            value = _value(config, name)
            if value != _value(left_out, name):
                raise BadInput(
                    f"{name}={_shown(value)} would be ignored, for {rule.because}: leave {name}"
                    " out, or change that."
                )


def _value(config: object, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


OF_TRAINING: Final = (
    Unread(("kl", "kl_in", "kl_correction"), lambda c: c.beta == 0, "beta=0 leaves the KL out"),
    Unread(
        ("kl_correction",),
        lambda c: c.kl_in == "reward",
        "it corrects the gradient of the KL in the loss, and with kl_in=reward there is none",
    ),
    Unread(
        ("epsilon",),
        lambda c: c.ratio == "weight" and c.epsilon_high is not None,
        "ratio=weight is cut at 1 + epsilon_high and nowhere else",
    ),
    Unread(
        ("gamma", "gae_lambda", "value_coef", "value_epsilon"),
        lambda c: c.advantage != "gae",
        "it is of the value head, which only advantage=gae trains",
    ),
    Unread(
        ("schedules.curriculum_floor",),
        lambda c: c.schedules.curriculum == "off",
        "schedules.curriculum is off",
    ),
    Unread(
        ("schedules.min_generations", "schedules.max_generations"),
        lambda c: c.schedules.group_sizes == "constant",
        "schedules.group_sizes=constant makes all groups equally large",
    ),
    Unread(
        ("schedules.pass_reward", "schedules.pass_rate_memory"),
        lambda c: c.schedules.curriculum == "off" and c.schedules.group_sizes == "constant",
        "neither schedules.curriculum nor schedules.group_sizes asks what is passed",
    ),
    Unread(
        tuple(f"schedules.replay_{name}" for name in ("capacity", "max_age", "max_uses")),
        lambda c: c.schedules.replay_groups == 0,
        "schedules.replay_groups=0 replays nothing",
    ),
    Unread(
        ("sampler.command", "sampler.start_seconds"),
        lambda c: c.sampler.engine == "vllm" and not c.sampler.start,
        "the servers of sampler.url are there already, and sampler.start is false",
    ),
)
"""Of every run of GRPO on a language model."""
