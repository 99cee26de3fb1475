"""The environments of an agent, from the classes that the settings name.

    my_env.py:GuessNumber           one for all rows
    my_env.py:GuessNumber,LookUp    several: the rows' column environment has one of these names
    my_package.envs:GuessNumber     from a module

Invariant: a class that cannot be loaded, made or used, and a mixture of environments that reward
and others that do not, are one `BadInput` sentence before anything is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memograd.errors import BadInput
from memograd.rewards.spec import split_entries
from memograd.rewards.user_code import function_of, load_file, load_module
from memograd.rollout.environment import EnvironmentFactory


@dataclass(frozen=True)
class Environments:
    """Factories by the name of their class, and whether what they make rewards by itself."""

    by_name: dict[str, EnvironmentFactory]
    rewarding: bool

    @property
    def factory(self) -> EnvironmentFactory | dict[str, EnvironmentFactory]:
        """As `EnvironmentTask` takes it."""
        return self.by_name if len(self.by_name) > 1 else next(iter(self.by_name.values()))


def load_environments(spec: str) -> Environments:
    """Load every class that `spec` names and make one instance of each to look at.

    Raises:
        BadInput: one cannot be loaded or made, has no `reset`, or only some have a `get_reward`.
    """
    found: dict[str, EnvironmentFactory] = {}
    rewarding: dict[str, bool] = {}
    source = ""
    for entry in split_entries(spec):
        named, _, name = entry.rpartition(":")
        source, name = (named or source).strip(), name.strip()
        if not source or not name:
            raise BadInput(
                f'The environment "{entry}" names no file; write path/to/file.py:ClassName.'
            )
        if name in found:
            raise BadInput(f"episodes.environment={spec} names {name} twice.")
        found[name] = _load(source, name)
        rewarding[name] = callable(getattr(_made(found[name], name), "get_reward", None))
    if len(set(rewarding.values())) > 1:
        without = next(name for name, rewards in rewarding.items() if not rewards)
        raise BadInput(
            f"The environment {without} has no get_reward, but another one has; give all of them "
            "one, or none and reward by --rewards."
        )
    return Environments(found, any(rewarding.values()))


def _load(source: str, name: str) -> Callable[[], object]:
    kind = "environment"
    module = load_file(Path(source), kind) if source.endswith(".py") else load_module(source, kind)
    factory: Callable[[], object] = function_of(module, name, kind)
    return factory


def _made(factory: EnvironmentFactory, name: str) -> object:
    try:
        instance = factory()
    except Exception as error:
        raise BadInput(
            f"The environment {name} cannot be made without arguments: it raised "
            f"{type(error).__name__}: {error}."
        ) from error
    if not callable(getattr(instance, "reset", None)):
        raise BadInput(f"The environment {name} has no method reset; give it reset(self, **row).")
    return instance
