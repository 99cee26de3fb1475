"""The ground floor: typed settings, and reading them from TOML files and `key=value` overrides.

Imports nothing of memograd but `memograd.errors`. `settings` declares what can be set, `load` reads
it and says in one sentence what is wrong with it.
"""

from __future__ import annotations

from memograd.config.load import known_settings, load_config
from memograd.config.settings import LORA_PRESETS, LoraConfig, MemoryConfig, TrainConfig

__all__ = [
    "LORA_PRESETS",
    "LoraConfig",
    "MemoryConfig",
    "TrainConfig",
    "known_settings",
    "load_config",
]
