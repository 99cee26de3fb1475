"""A reward function is given by memograd what TRL's own trainer gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memograd.rewards import WeightedReward, compute_rewards

CHAT = [{"role": "user", "content": "Say 1."}]
# What TRL passes besides the columns; docs/text-task.md says that memograd does not.
TRL_EXTRAS = {"completion_ids", "trainer_state", "log_extra", "log_metric"}


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["Say 1.", CHAT], ids=["text", "chat"])
def test_the_same_arguments_as_trl(prompt: Any, tiny_model_folder: Path, tmp_path: Path) -> None:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    calls: list[dict[str, Any]] = []

    def look(**arguments: Any) -> list[float | None]:
        calls.append(arguments)
        return [float(row) for row in range(len(arguments["completions"]))]

    rows = Dataset.from_list([{"prompt": prompt, "answer": "1", "level": 2}] * 2)
    settings = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=3,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
    )
    trainer = GRPOTrainer(
        model=str(tiny_model_folder), reward_funcs=look, args=settings, train_dataset=rows
    )
    trainer.train()
    theirs = {name: value for name, value in calls[0].items() if name not in TRL_EXTRAS}

    texts = [c if isinstance(c, str) else c[0]["content"] for c in theirs["completions"]]
    compute_rewards(
        [WeightedReward("look", look, reads_messages=True)],
        rollout_ids=["r0", "r1"],
        prompts=[prompt] * 2,
        completions=texts,
        columns={"answer": ["1"] * 2, "level": [2] * 2},
    )
    assert calls[-1] == theirs
