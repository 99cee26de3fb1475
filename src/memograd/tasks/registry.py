"""The only list of tasks: the command line, `evaluate`, `runs` and the docs read it.

A task is a folder whose settings end in its definition, and one line here. A package of your
own adds one by the entry point `memograd.tasks`:

    [project.entry-points."memograd.tasks"]
    my-task = "my_package.definition:TASK"

Invariant: looking at a task, its settings and its options loads no torch; its recipe arrives when
it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final

from memograd.config.load import known_settings
from memograd.config.settings import RunSettings
from memograd.config.unread import refuse_unread
from memograd.errors import RAISED_BY_USERS, BadInput

if TYPE_CHECKING:
    from pathlib import Path

    from memograd.tasks.base.recipe import Recipe

_BUILT_IN: Final = {
    "memory-ops": "memograd.tasks.memory_ops.settings:TASK",
    "retrieval": "memograd.tasks.retrieval.settings:TASK",
    "memory-qa": "memograd.tasks.memory_qa.settings:TASK",
    "memory-construct": "memograd.tasks.memory_construct.settings:TASK",
    "memory-ops-text": "memograd.tasks.memory_ops_text.settings:TASK",
    "text": "memograd.tasks.text.settings:TASK",
    "agent": "memograd.tasks.agent.settings:AGENT",
    "served-agent": "memograd.tasks.agent.settings:SERVED_AGENT",
    "sql": "memograd.tasks.sql.settings:TASK",
    "relations": "memograd.tasks.relations.settings:TASK",
}


@dataclass(frozen=True)
class Option:
    """An option of the command line that stands for a setting: `--db FILE` for `sql.database`."""

    name: str
    key: str
    metavar: str
    help: str


@dataclass(frozen=True)
class Task:
    """What can be trained, as far as it can be told without loading it.

    recipe: module whose `RECIPE` trains it. options: in the order of the help. presets: flags of
    the command line and the settings that each stands for; what is given beside them wins. notes:
    paragraphs of the help. extra: what to install where a package is missing.
    """

    name: str
    summary: str
    settings: type[RunSettings]
    recipe: str
    options: Sequence[Option] = ()
    examples: Sequence[str] = ()
    notes: Sequence[str] = ()
    presets: Mapping[str, tuple[str, Sequence[str]]] = field(default_factory=dict)
    extra: str = "train"

    def train(self, settings: RunSettings) -> Path:
        """Train it with these settings; returns the run folder. See `train`."""
        if settings.resume is None:  # a run that goes on keeps what it was told
            refuse_unread(settings)
        from memograd.tasks.base.life import train_task

        return train_task(self.name, self.load(), settings)

    def load(self) -> Recipe[Any, Any]:
        """Its recipe.

        Raises:
            BadInput: a package that it needs is missing, or it names no recipe.
        """
        try:
            module = import_module(self.recipe)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("memograd"):
                raise
            if f"{self.recipe}.".startswith(f"{error.name}."):
                raise BadInput(
                    f"The task {self.name} has its recipe in {self.recipe}, but there is no module"
                    f" {error.name}."
                ) from error
            raise BadInput(
                f"This command needs the package {error.name}; run pip install"
                f" 'memograd[{self.extra}]'."
            ) from error
        if not hasattr(module, "RECIPE"):
            raise BadInput(
                f"The task {self.name} has its recipe in {self.recipe}, which defines no RECIPE."
            )
        recipe: Recipe[Any, Any] = module.RECIPE
        return recipe


class _Tasks(Mapping[str, Task]):
    """Built-in tasks in their order, then those of installed packages; each is loaded when asked
    for."""

    def __getitem__(self, name: str) -> Task:
        if name in _BUILT_IN:
            module, _, defined = _BUILT_IN[name].partition(":")
            task: Task = getattr(import_module(module), defined)
            return task
        entry = self._of_packages()[name]
        try:
            task = entry.load()
        except RAISED_BY_USERS as error:  # whatever that package does wrong
            raise BadInput(
                f"The task {name} of the installed package"
                f" {entry.dist.name if entry.dist else entry.value} does not load"
                f" ({type(error).__name__}: {error}): repair or uninstall it."
            ) from error
        if not isinstance(task, Task) or task.name != name:
            raise BadInput(
                f"The entry point {name} of memograd.tasks is {entry.value}, which must be a Task"
                f" of that name."
            )
        return task

    def __iter__(self) -> Iterator[str]:
        yield from _BUILT_IN
        yield from (name for name in self._of_packages() if name not in _BUILT_IN)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @staticmethod
    def _of_packages() -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group="memograd.tasks")}


TASKS: Final[Mapping[str, Task]] = _Tasks()
"""Every task by its name."""


def task_of_settings(settings: RunSettings) -> Task:
    """The task that these settings are of; one of ours before one of another package, which is
    trained by `TASKS[name].train(settings)` where it shares our settings. Raises BadInput where
    there is none."""
    for task in _loaded():
        if task.settings is type(settings):
            return task
    raise BadInput(
        f"No task is trained by {type(settings).__name__}: give the settings of one of"
        f" {', '.join(TASKS)}."
    )


def tasks_that_read(key: str) -> list[str]:
    """The names of the tasks that know the setting, or section of settings, `key`."""
    return [
        task.name
        for task in _loaded()
        if any(f"{one}.".startswith(f"{key}.") for one in known_settings(task.settings))
    ]


def _loaded() -> Iterator[Task]:
    """All tasks but those of installed packages that do not load: to use one of them is refused,
    and the others are not the worse for it."""
    for name in TASKS:
        try:
            yield TASKS[name]
        except BadInput:
            if name in _BUILT_IN:
                raise


def train(settings: RunSettings) -> Path:
    """Train the task that `settings` are of; returns the run folder.

    With `settings.resume`, the run in that folder goes on from its last complete checkpoint.

    Raises:
        BadInput: settings or data cannot be used.
        Stopped: a signal came; a checkpoint was written.
    """
    return task_of_settings(settings).train(settings)
