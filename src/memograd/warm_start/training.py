"""What supervised, preference and reward-model training share: TRL's trainers, our run folder.

TRL computes the loss and turns the crank; the model, the token ids, the optimiser, the schedule,
the metrics' names and the checkpoints are ours. TRL is imported when a job begins.

Invariant: the same settings on a CPU give the same metrics and weights to the bit, and TRL's log
arrives in `metrics.jsonl` line by line, a NaN included (it stops the run).
"""

from __future__ import annotations

import json
import logging
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from transformers import PreTrainedTokenizerBase, PrinterCallback, TrainerCallback

from memograd.config.unread import refuse_unread
from memograd.errors import BadInput, need_packages
from memograd.grpo import RunFolder
from memograd.grpo.run_folder import unnamed
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import quiet_libraries
from memograd.tasks.base.policy import settings_with_adapter
from memograd.tasks.base.progress import console, training_progress
from memograd.tasks.base.recipe import located
from memograd.warm_start.rows import Rows
from memograd.warm_start.settings import WarmStartSettings

logger = logging.getLogger(__name__)
METRICS = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "epoch": "epoch",
    "entropy": "entropy",
    "mean_token_accuracy": "token_accuracy",
    "rewards/chosen": "reward_chosen",
    "rewards/rejected": "reward_rejected",
    "rewards/margins": "reward_margin",
    "rewards/accuracies": "reward_accuracy",
    "margin": "reward_margin",
    "accuracy": "reward_accuracy",
    "mean_reward": "score_mean",
    "logps/chosen": "logprob_chosen",
    "logps/rejected": "logprob_rejected",
}
"""TRL's name of a number -> ours in `metrics.jsonl`; `docs/warm-start.md` says what they mean."""

LISTED = 10
"""Places that a warning names; `rows.json` in the run folder has all."""

S = TypeVar("S", bound=WarmStartSettings)


class Trainee(Protocol):
    """What is trained: a `LanguageModel`, or a `RewardModel`."""

    name: str
    tokenizer: PreTrainedTokenizerBase

    @property
    def peft_model(self) -> Any:
        """The module that TRL gets."""
        ...

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        ...

    @property
    def context_length(self) -> int:
        """The longest row, in tokens."""
        ...

    def environment(self) -> dict[str, str]:
        """What numbers may depend on beside the settings."""
        ...

    def parameters(self) -> list[torch.nn.Parameter]:
        """What the optimiser moves."""
        ...

    def save(self, folder: Path) -> None:
        """Write what was trained."""
        ...


def begin(config: S) -> tuple[S, Path]:
    """Refuse what can be refused at once; the settings as resolved, and the run's path."""
    need_packages("This training", ("trl", "datasets"), "trl")
    refuse_unread(config)
    out = config.out or unnamed(config.recipe)
    RunFolder.check_free(out)
    config = settings_with_adapter(config, config.recipe)
    return located(config), out


def open_policy(config: WarmStartSettings) -> LanguageModel:
    """The model with a fresh adapter, or with the one that the settings name."""
    if config.adapter is None:
        return LanguageModel.load(
            config.model, lora=config.lora, device=config.device, seed=config.seed
        )
    return LanguageModel.load_adapter(
        config.model, config.adapter, reference=None, device=config.device
    )


def longest_row(config: WarmStartSettings, policy: Trainee) -> int:
    """`max_length`, or the model's context if that is shorter."""
    return min(config.max_length, policy.context_length)


def create_run(
    out: Path,
    config: WarmStartSettings,
    policy: Trainee,
    rows: Rows[Any],
    *,
    cut: Sequence[str],
    examples: int,
    lost: str = "their end token too",
) -> RunFolder:
    """The new run folder; warns about rows that were left out or cut, and lists them in it.

    `examples` is how many sequences or pairs the rows became; `lost` says what a cut row lost.
    Raises BadInput where TRL would train on several GPUs.
    """
    if policy.device.type == "cuda" and torch.cuda.device_count() > 1:
        raise BadInput(
            "Several GPUs are visible, but this trains on one: set CUDA_VISIBLE_DEVICES=0."
        )
    limit = longest_row(config, policy)
    notes = [
        f"{len(places)} of {rows.total} rows of {rows.source} left out: {reason} "
        f"({_listed(places)})"
        for reason, places in rows.left_out.items()
    ]
    if cut:
        notes.append(
            f"{len(cut)} of {rows.total} rows of {rows.source} lost what is beyond {limit} tokens, "
            f"{lost} ({_listed(cut)})"
        )
    for note in notes:
        logger.warning(note)
    config = config.model_copy(update={"steps": total_steps(config, examples)})
    run = RunFolder.create(out, config.run_json(), task=config.recipe)
    listing = {
        "source": rows.source,
        "total": rows.total,
        "used": len(rows.used),
        "left_out": rows.left_out,
        "cut": list(cut),
    }
    environment = {**policy.environment(), "trl": version("trl")}
    for name, content in (("rows.json", listing), ("environment.json", environment)):
        text = json.dumps(content, indent=2, ensure_ascii=False)
        (run.path / name).write_text(text, encoding="utf-8")
    return run


def total_steps(config: WarmStartSettings, examples: int) -> int:
    """How many optimiser steps the settings ask for."""
    return config.steps or math.ceil(config.epochs * math.ceil(examples / config.batch_size))


def train(
    config: WarmStartSettings,
    policy: Trainee,
    examples: Sequence[Any],
    run: RunFolder,
    make_trainer: Callable[..., Any],
) -> None:
    """Train `policy` on `examples` (dataclasses of token ids) and write the run.

    `make_trainer(arguments, **shared)` makes TRL's trainer of the arguments that both kinds share.
    """
    from datasets import Dataset

    steps = total_steps(config, len(examples))
    with run.lock(), _trl_arguments(config, policy, steps) as arguments:
        optimizer = torch.optim.AdamW(
            policy.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda done: min(1.0, (done + 1) / (config.warmup_steps + 1))
        )
        with quiet_libraries():
            trainer = make_trainer(
                arguments,
                model=policy.peft_model,
                processing_class=policy.tokenizer,
                train_dataset=Dataset.from_list([asdict(example) for example in examples]),
                optimizers=(optimizer, schedule),
            )
        trainer.remove_callback(PrinterCallback)
        progress = training_progress(console, total=steps, describe=_describe)
        with quiet_libraries(), progress as on_step:
            trainer.add_callback(_Recorder(config, policy, run, steps, on_step))
            trainer.train()
        policy.peft_model.eval()
        run.save_checkpoint("final", policy.save, step=steps)


@contextmanager
def _trl_arguments(
    config: WarmStartSettings, policy: Trainee, steps: int
) -> Iterator[dict[str, Any]]:
    """TRL's training arguments: exact numbers, every step logged, nothing written by TRL."""
    micro = min(config.micro_batch_size, config.batch_size)
    with tempfile.TemporaryDirectory() as unused:
        yield {
            "output_dir": unused,
            "max_steps": steps,
            "per_device_train_batch_size": micro,
            "gradient_accumulation_steps": config.batch_size // micro,
            "max_grad_norm": config.max_grad_norm,
            "seed": config.seed,
            "use_cpu": policy.device.type == "cpu",
            "bf16": False,  # the model has its number type already, the adapter is in fp32
            "gradient_checkpointing": False,
            "dataloader_pin_memory": policy.device.type == "cuda",
            "max_length": None,  # rows are cut, and counted, before
            "logging_steps": 1,
            "logging_nan_inf_filter": False,  # a NaN must stop the run, not be left out of the log
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
        }


class _Recorder(TrainerCallback):
    """Writes every step of TRL's log into the run folder, and the checkpoints between."""

    def __init__(
        self,
        config: WarmStartSettings,
        policy: Trainee,
        run: RunFolder,
        steps: int,
        on_step: Callable[[dict[str, Any]], None],
    ) -> None:
        self._config = config
        self._policy = policy
        self._run = run
        self._steps = steps
        self._on_step = on_step
        self._tokens = 0
        self._began = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._began = time.perf_counter()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        if not logs or "loss" not in logs:
            return  # the summary at the end
        step = int(state.global_step)
        metrics = {
            "step": step,
            **{ours: logs[name] for name, ours in METRICS.items() if name in logs},
        }
        tokens, self._tokens = int(logs["num_tokens"]) - self._tokens, int(logs["num_tokens"])
        seconds = round(time.perf_counter() - self._began, 4)
        metrics |= {"tokens": tokens, "seconds": {"learn": seconds}}
        self._run.append_metrics(metrics)
        self._on_step(metrics)
        if step % self._config.save_steps == 0 and step < self._steps:
            self._run.save_checkpoint(f"checkpoint-{step}", self._policy.save)


def _describe(metrics: dict[str, Any]) -> str:
    margin = metrics.get("reward_margin")
    shown = "" if margin is None else f"margin {margin:+.4f}  "
    speed = metrics["tokens"] / max(metrics["seconds"]["learn"], 1e-9)
    return f"loss {metrics['loss']:.4f}  {shown}{speed:.0f} tok/s"


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - LISTED} more, see rows.json" if len(places) > LISTED else ""
    kind = "line" if places[0].isdigit() else "question"
    return f"{kind}{'s' if len(places) > 1 else ''} {', '.join(places[:LISTED])}{more}"
