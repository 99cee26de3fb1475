"""Beginning with what another run learnt: its adapter, its model, its LoRA settings.

Invariant: settings that contradict the run begun from are refused, and those that were not given
are taken from it, so `config.json` says what was really trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar, cast

from memograd.config import TrainConfig
from memograd.config.reward_model_settings import RewardModelSettings
from memograd.config.warm_start_settings import WarmStartSettings
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.resume import stored_settings
from memograd.grpo.run_folder import checkpoint_step

C = TypeVar("C", bound=TrainConfig | WarmStartSettings)


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


def settings_with_adapter(config: C) -> C:
    """The settings completed by those of the run that `adapter` belongs to.

    `adapter` becomes the checkpoint itself; `model` and `lora` are that run's. Raises BadInput
    where they were given and differ.
    """
    if config.adapter is None:
        return config
    checkpoint = adapter_of(config.adapter).resolve()
    begun = stored_settings(RunFolder.open(checkpoint.parent))
    if isinstance(begun, RewardModelSettings) != isinstance(config, RewardModelSettings):
        raise BadInput(
            f"adapter={config.adapter} cannot be begun with: adapters of reward models and of "
            "models that answer do not fit each other."
        )
    differs = {
        "model": _resolved(config.model) != _resolved(begun.model),
        # Only what was given of it: the rest is that run's.
        "lora": any(
            getattr(config.lora, name) != getattr(begun.lora, name)
            for name in config.lora.model_fields_set
        ),
    }
    for name in sorted(name for name in config.model_fields_set if differs.get(name)):
        raise BadInput(
            f"adapter={config.adapter} was trained with another {name}; leave {name} out to take "
            "that run's, or begin with a fresh adapter."
        )
    update = {"adapter": checkpoint, "model": begun.model, "lora": begun.lora}
    return cast(C, config.model_copy(update=update))


def _resolved(model: str) -> str:
    return str(Path(model).resolve()) if Path(model).is_dir() else model
