"""The ground floor: typed settings, and reading them from files, environment and command line.

Imports nothing of memograd but `memograd.errors`. `settings` declares what a training run can be
told and `load` reads it; `memory_settings` does both for the memory; `mem0_config` reads mem0's
form. Each says in one sentence what is wrong with what it read.
"""

from __future__ import annotations

from memograd.config.load import known_settings, load_config
from memograd.config.mem0_config import from_mem0_config
from memograd.config.memory_settings import MemorySettings, load_memory_settings
from memograd.config.settings import (
    LORA_PRESETS,
    EpisodesConfig,
    LoraConfig,
    MemoryConfig,
    SchedulesConfig,
    TextConfig,
    TrainConfig,
)

__all__ = [
    "LORA_PRESETS",
    "EpisodesConfig",
    "LoraConfig",
    "MemoryConfig",
    "MemorySettings",
    "SchedulesConfig",
    "TextConfig",
    "TrainConfig",
    "from_mem0_config",
    "known_settings",
    "load_config",
    "load_memory_settings",
]
