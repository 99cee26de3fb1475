"""Beginning with what another run learnt: its adapter, its model, its LoRA settings.

Invariant: settings that contradict the run begun from are refused, and those that were not given
are taken from it, so `config.json` says what was really trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

from memograd.config import LoraConfig, Settings
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.resume import begun
from memograd.grpo.run_folder import checkpoint_step

REWARD_MODEL: Final = "reward-model"


class WithAdapter(Protocol):
    """Settings of a run that may begin with an adapter."""

    @property
    def adapter(self) -> Path | None: ...
    @property
    def model(self) -> str: ...
    @property
    def lora(self) -> LoraConfig: ...


C = TypeVar("C", bound=Settings)


def adapter_of(path: Path) -> Path:
    """The complete checkpoint at `path`, or the latest one of the run at `path`.

    Raises BadInput if there is none.
    """
    if (path / "adapter_config.json").is_file():
        checkpoint_step(path)  # refuses an incomplete one
        return path
    checkpoint = RunFolder.open(path).latest_checkpoint()
    if checkpoint is None:
        raise BadInput(f"{path} has no complete checkpoint, so there is no adapter in it.")
    return checkpoint


def settings_with_adapter(config: C, recipe: str = "") -> C:
    """The settings completed by those of the run that `adapter` belongs to.

    config: has the settings of `WithAdapter`. recipe: what trains with them, as `Begun` has it.
    `adapter` becomes the checkpoint itself; `model` and `lora` are that run's. Raises BadInput
    where they were given and differ.
    """
    given = cast(WithAdapter, config)
    if given.adapter is None:
        return config
    checkpoint = adapter_of(given.adapter).resolve()
    began = begun(RunFolder.open(checkpoint.parent))
    if (began.recipe == REWARD_MODEL) != (recipe == REWARD_MODEL):
        raise BadInput(
            f"adapter={given.adapter} cannot be begun with: adapters of reward models and of "
            "models that answer do not fit each other."
        )
    differs = {
        "model": _resolved(given.model) != _resolved(began.model),
        # Only what was given of it: the rest is that run's.
        "lora": any(
            getattr(given.lora, name) != getattr(began.lora, name)
            for name in given.lora.model_fields_set
        ),
    }
    for name in sorted(name for name in config.model_fields_set if differs.get(name)):
        raise BadInput(
            f"adapter={given.adapter} was trained with another {name}; leave {name} out to take "
            "that run's, or begin with a fresh adapter."
        )
    update = {"adapter": checkpoint, "model": began.model, "lora": began.lora}
    return config.model_copy(update=update)


def _resolved(model: str) -> str:
    return str(Path(model).resolve()) if Path(model).is_dir() else model
