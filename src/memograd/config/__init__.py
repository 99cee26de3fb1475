"""Typed settings, and reading them from files, environment and command line.

`settings` declares what a training run can be told, `load` reads it and reads back what a run was
told; `memory_settings` does both for the memory; `mem0_config` reads mem0's form. Each says in one
sentence what is wrong with what it read. The settings of one task are in its folder.
"""

from __future__ import annotations

from memograd.config.load import known_settings, load_settings
from memograd.config.mem0_config import from_mem0_config
from memograd.config.memory_settings import MemorySettings, load_memory_settings
from memograd.config.settings import (
    LORA_PRESETS,
    LoraConfig,
    RunSettings,
    SamplerConfig,
    SchedulesConfig,
    Settings,
    TrainConfig,
)

__all__ = [
    "LORA_PRESETS",
    "LoraConfig",
    "MemorySettings",
    "RunSettings",
    "SamplerConfig",
    "SchedulesConfig",
    "Settings",
    "TrainConfig",
    "from_mem0_config",
    "known_settings",
    "load_memory_settings",
    "load_settings",
]
