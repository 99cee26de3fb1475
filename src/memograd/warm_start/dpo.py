"""Direct preference optimisation: of two answers, make the better one likelier than the other.

    loss = -log sigmoid(beta * [log pi(chosen)/ref(chosen) - log pi(rejected)/ref(rejected)])

(Rafailov et al. 2023, arXiv:2305.18290; TRL's DPOTrainer.) The reference is the policy as training
began: the model alone, or a frozen copy of the adapter that it began with.

Invariant: prompts and answers reach the loss as `LanguageModel.encode` and the end token make them,
and the reference never moves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memograd.tasks.base.progress import console
from memograd.warm_start.rows import read_preference_rows
from memograd.warm_start.settings import DpoSettings
from memograd.warm_start.tokens import preference_ids
from memograd.warm_start.training import (
    begin,
    create_run,
    longest_row,
    open_policy,
    train,
)


def dpo(config: DpoSettings) -> Path:
    """Train an adapter on pairs of answers; returns the new run folder.

    Raises BadInput for pairs, settings or a model that cannot be trained on, before the folder is
    made.
    """
    config, out = begin(config)
    assert config.data is not None  # the settings hold that
    rows = read_preference_rows(config.data, config.string_prompts)
    policy = open_policy(config)
    pairs, cut = preference_ids(policy, rows, longest_row(config, policy))
    run = create_run(out, config, policy, rows, cut=cut, examples=len(pairs))
    console.print(f"comparing {len(pairs)} pairs with {policy.name}, on {policy.device.type}")

    def trainer(arguments: dict[str, Any], **shared: Any) -> Any:
        return _trainer(arguments, beta=config.beta, **shared)

    train(config, policy, pairs, run, trainer)
    return run.path


def _trainer(arguments: dict[str, Any], *, beta: float, **shared: Any) -> Any:
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    class TokenisedDPOTrainer(DPOTrainer):
        """TRL's trainer on token ids: its own preparation would tokenise texts anew."""

        def _prepare_dataset(self, dataset: Any, *others: Any, **named: Any) -> Any:
            return dataset

    return TokenisedDPOTrainer(args=DPOConfig(**arguments, beta=beta), **shared)
