"""Reading back with which settings a run was made, whichever command made it.

Imports the settings of all commands. Invariant: what `run_json` wrote, `settings_of_run` reads back
equal, and the settings of one recipe are never taken for another's.
"""

from __future__ import annotations

import json
from typing import Final

from memograd.config.reward_model_settings import RewardModelSettings
from memograd.config.settings import TrainConfig
from memograd.config.warm_start_settings import DpoSettings, SftSettings, WarmStartSettings

_BY_RECIPE: Final[dict[str, type[WarmStartSettings]]] = {
    kind.recipe: kind for kind in (SftSettings, DpoSettings, RewardModelSettings)
}


RECIPES: Final = frozenset(_BY_RECIPE)
"""Warm starts and reward models, whose runs are not resumed."""


def settings_of_run(config_json: str) -> TrainConfig | WarmStartSettings:
    """The settings in a run's `config.json`.

    Raises pydantic's ValidationError for settings that do not fit this version.
    """
    values = json.loads(config_json)
    kind = _BY_RECIPE.get(values.pop("recipe", "")) if isinstance(values, dict) else None
    return (kind or TrainConfig).model_validate_json(json.dumps(values))
