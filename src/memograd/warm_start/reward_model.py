"""Reward models from end to end: train one on pairs, measure it, make one model of it.

The loss is -log sigmoid(score(chosen) - score(rejected)) (Bradley and Terry 1952; TRL's
RewardTrainer), over rows that `RewardModel.encode` makes, so that training, measuring and serving
see the same tokens.

Invariant: what is measured on was not trained on, neither by the weights nor by the price of
length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.run_folder import unnamed
from memograd.reward_model.api import Item
from memograd.reward_model.held_out import (
    ScoredPair,
    fitted_slope,
    held_out_report,
    report_markdown,
    score_pairs,
    write_pairs,
    write_report,
)
from memograd.reward_model.length import LengthControl
from memograd.reward_model.model import RewardModel
from memograd.tasks.base.progress import console
from memograd.warm_start.merge import NumberType, check_free, merged_weights, write_model
from memograd.warm_start.reward_model_rows import (
    LEARNT,
    learnt_by,
    note_trained,
    read_pairs,
    read_split,
    without_trained,
    write_learnt,
)
from memograd.warm_start.rows import SAME_WHEN_CUT, PreferenceRow, Rows
from memograd.warm_start.settings import RewardModelSettings
from memograd.warm_start.training import begin, create_run, train


@dataclass(frozen=True)
class PairIds:
    """The token ids of two whole rows, as TRL's RewardTrainer calls them."""

    chosen_ids: list[int]
    rejected_ids: list[int]


def train_reward_model(config: RewardModelSettings) -> Path:
    """Train a reward model on pairs and measure it on held-out ones; returns the new run folder.

    Raises BadInput for pairs, settings or a model that cannot be trained on, before the folder is
    made.
    """
    config, out = begin(config)
    assert config.data is not None  # the settings hold that
    split = read_split(config.data, config.eval_data, config.eval_fraction, config.string_prompts)
    if config.adapter is not None:
        _leave_out_learnt(split.held_out, config.adapter)
    model = RewardModel.begin(
        config.model,
        lora=config.lora if config.tuning == "lora" else None,
        adapter=config.adapter,
        device=config.device,
        seed=config.seed,
        max_length=config.max_length,
        string_prompts=config.string_prompts,
    )
    pairs, cut = pair_ids(model, split.train)
    lost = "the first of them"
    run = create_run(out, config, model, split.train, cut=cut, examples=len(pairs), lost=lost)
    note_trained(split.train, run.path, config.adapter)
    console.print(
        f"training {model.name} ({config.tuning}) on {len(pairs)} pairs, "
        f"{len(split.held_out.used)} held out, on {model.device.type}"
    )
    train(config, model, pairs, run, _trainer)
    _measure(config, model, split.train.used, split.held_out, run)
    return run.path


def pair_ids(model: RewardModel, rows: Rows[PreferenceRow]) -> tuple[list[PairIds], list[str]]:
    """The ids of all pairs, and the places of those of which a row was cut.

    Pairs that are the same once cut join `rows.left_out`. Raises BadInput if none is left.
    """
    kept: list[PairIds] = []
    cut: list[str] = []
    for row in rows.used.copy():
        whole = [model.encode(Item(row.prompt, answer)) for answer in (row.chosen, row.rejected)]
        chosen, rejected = map(model.shortened, whole)
        if chosen == rejected:
            rows.used.remove(row)
            rows.leave_out(row.place, SAME_WHEN_CUT)
            continue
        kept.append(PairIds(chosen, rejected))
        if max(map(len, whole)) > model.card.max_length:
            cut.append(row.place)
    if not kept:
        raise BadInput(
            f"No pair of {rows.source} differs within {model.card.max_length} tokens; raise "
            "max_length, or take a model with a longer context."
        )
    return kept, cut


def _trainer(arguments: dict[str, Any], **shared: Any) -> Any:
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    return RewardTrainer(args=RewardConfig(**arguments), **shared)


def _measure(
    config: RewardModelSettings,
    model: RewardModel,
    trained: Sequence[PreferenceRow],
    held_out: Rows[PreferenceRow],
    run: RunFolder,
) -> None:
    """Fit the price of length on training pairs, then measure on the others."""
    fitted_on = _scored(model, trained[: config.length_fit_pairs])
    control = LengthControl(fitted_slope(fitted_on), len(fitted_on))
    control.save(run.path)
    _write_measured(model, held_out, control.slope, str(run.path), run.path)


def evaluate_reward_model(
    model: str,
    data: Path,
    out: Path | None = None,
    *,
    string_prompts: str = "chat",
    device: str = "auto",
) -> Path:
    """Measure a reward model (run, folder or hub id) on the pairs in `data`.

    Pairs that it was trained on are left out, where that was written down. Writes `held_out.json`,
    `.md` and `.png`, and `held_out_pairs.jsonl`, into the new or empty folder `out`, and returns
    it.

    Raises BadInput if there is no such model, no pair, or `out` is taken.
    """
    out = out or unnamed("reward-model-evaluation")
    check_free(out)
    rows = read_pairs(data, string_prompts)
    _leave_out_learnt(rows, Path(model).expanduser())
    opened = RewardModel.open(model, device=device)
    control = opened.length_control
    _write_measured(opened, rows, control.slope if control else None, model, out)
    return out


def _leave_out_learnt(rows: Rows[PreferenceRow], model: Path) -> None:
    """Leave out what `model` was trained on, and say so. Raises BadInput if no pair is left."""
    without_trained(rows, model)
    learnt = len(rows.left_out.get(LEARNT, []))
    if learnt:
        console.print(f"left out {learnt} of {rows.total} pairs to measure on: {LEARNT}")


def _write_measured(
    model: RewardModel, rows: Rows[PreferenceRow], slope: float | None, name: str, folder: Path
) -> None:
    """Score the pairs, and write the report and the pairs' scores into `folder`."""
    cut = sum(
        max(len(model.encode(Item(row.prompt, answer))) for answer in (row.chosen, row.rejected))
        > model.card.max_length
        for row in rows.used
    )
    pairs = _scored(model, rows.used)
    report = held_out_report(pairs, model=name, data=rows.source, slope=slope, cut=cut)
    write_report(report, folder)
    write_pairs(pairs, folder)
    console.print(report_markdown(report))


def _scored(model: RewardModel, rows: Sequence[PreferenceRow]) -> list[ScoredPair]:
    return score_pairs(model, [(row.place, row.prompt, row.chosen, row.rejected) for row in rows])


def merge_reward_model(run: Path, out: Path, dtype: NumberType = "float32") -> Path:
    """Write the reward model of `run` as one classifier into `out`, which loads without peft.

    Raises:
        BadInput: there is no trained reward model in `run`, or `out` is not new or empty.
        MemogradError: the weights are not finite, or could not be written; nothing is left.
    """
    if not run.is_dir():
        raise BadInput(f"There is no run folder {run}.")
    check_free(out)
    model = RewardModel.open(run, device="cpu")
    whole = model.module
    if model.card.backbone is not None:
        whole = merged_weights(model.module, run)
    whole.to(getattr(torch, dtype))
    cast(Any, whole).config.pad_token_id = model.tokenizer.pad_token_id

    def also(folder: Path) -> None:
        model.save_card(folder, merged=True)
        if model.length_control is not None:
            model.length_control.save(folder)
        write_learnt(learnt_by(run), folder)

    write_model(whole, model.tokenizer, out, also)
    return out
