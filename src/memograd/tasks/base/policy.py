"""The policy that a run trains, opened as its settings say: the same for every task.

Invariant: without a checkpoint the adapter is fresh and drawn from the run's seed, or that of the
run that `adapter` names, which is then the reference too; with one it is the checkpoint's.
"""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.policy.language_model import LanguageModel


def load_policy(config: TrainConfig, checkpoint: Path | None) -> LanguageModel:
    """The model of the settings, with the checkpoint's adapter, or the one to begin with, and with
    a value head where the algorithm trains one."""
    policy = _with_adapter(config, checkpoint)
    policy.stop = tuple(config.stop)
    again = config.activation_checkpointing
    if again or (again is None and policy.device.type == "cuda"):
        policy.checkpoint_activations()
    if config.advantage == "gae":
        policy.add_value_head(checkpoint or config.adapter)
    return policy


def room_for_prompt(context_length: int, config: TrainConfig) -> int:
    """The most tokens that a prompt may have: what the longest answer leaves of `context_length`,
    or `max_prompt_length` if that is less.

    Raises BadInput where an answer alone fills the context.
    """
    room = context_length - config.max_completion_length
    if room < 1:
        raise BadInput(
            f"max_completion_length={config.max_completion_length} leaves no room for a prompt in"
            f" the {context_length} tokens that are there: set it to less."
        )
    return min(room, config.max_prompt_length or room)


def _with_adapter(config: TrainConfig, checkpoint: Path | None) -> LanguageModel:
    # A run that is trained by several processes cuts its weights next (`tasks.base.ranks`); whoever
    # measures it later is one process, and has them whole.
    to_cut = config.shard != "off" and dist.is_initialized()
    if checkpoint is not None:
        return LanguageModel.load_adapter(
            config.model,
            checkpoint,
            device=config.device,
            forward=config.forward,
            to_cut=to_cut,
        )
    if config.adapter is not None:
        return LanguageModel.load_adapter(
            config.model,
            config.adapter,
            reference=config.adapter,
            device=config.device,
            forward=config.forward,
            to_cut=to_cut,
        )
    return LanguageModel.load(
        config.model,
        lora=config.lora,
        device=config.device,
        seed=config.seed,
        forward=config.forward,
        to_cut=to_cut,
    )
