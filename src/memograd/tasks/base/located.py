"""Settings with absolute paths, so that a run goes on from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from memograd.config import Settings, TrainConfig
from memograd.rewards import with_absolute_files

C = TypeVar("C", bound=TrainConfig)


def located(config: C) -> C:
    """The given settings with the paths of data, held-out data, model and rewards absolute."""
    update: dict[str, object] = {}
    given = config.model_fields_set
    if config.data is not None:
        update["data"] = config.data.resolve()
    if "model" in given and Path(config.model).is_dir():
        update["model"] = str(Path(config.model).resolve())
    if "rewards" in given and config.rewards:
        update["rewards"] = with_absolute_files(config.rewards)
    config = config.model_copy(update=update)
    return with_section(config, "text", eval_data=_absolute)


def with_section(config: C, section: str, **change: Any) -> C:
    """The settings with values of one section put through functions, where they are given; the
    section, and the settings, stay the same object where nothing changes."""
    group = getattr(config, section, None)
    if not isinstance(group, Settings):
        return config
    update = {
        name: made
        for name, make in change.items()
        if (value := getattr(group, name, None)) is not None and (made := make(value)) != value
    }
    if not update:
        return config
    return config.model_copy(update={section: group.model_copy(update=update)})


def _absolute(path: Path) -> Path:
    return path.resolve()
