"""TRL's own GRPOTrainer trains on our environments, rows and rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from memograd.interop.trl import trl_rewards, trl_rows
from memograd.tasks.sql.questions import make_rows, read_questions
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sample.templates import write_sample_questions
from memograd.tasks.sql.sandbox import Sandbox
from memograd.tasks.sql.tool import TOOL, SqlEnvironment

pytestmark = pytest.mark.slow  # importing TRL's trainers takes ten seconds and more


def sql_rows(folder: Path) -> Any:
    write_sample_questions(folder / "sample.jsonl")
    rows, _ = make_rows(read_questions(folder / "sample.jsonl")[:2], Sandbox(sample_database()))
    return rows


def test_trl_trains_the_sql_environment(tiny_model_folder: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen2_5_chat_template

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_folder)
    tokenizer.chat_template = qwen2_5_chat_template
    model = AutoModelForCausalLM.from_pretrained(tiny_model_folder)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    functions, weights = trl_rewards("memograd.tasks.sql.rewards:execution:1,evidence:0.5")
    seen: list[Any] = []

    def letters(completions: list[Any], **_columns: Any) -> list[float]:
        """Worth something for a random model, so that there is something to learn."""
        seen.extend(completions)
        return [float(len(set(str(said)))) for said in completions]

    settings = GRPOConfig(
        output_dir=str(tmp_path / "out"),
        max_steps=1,
        learning_rate=1e-2,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=8,
        max_tool_calling_iterations=1,
        reward_weights=[*weights, 1.0],
        use_cpu=True,
        report_to=[],
        save_strategy="no",
    )
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=[*functions, letters],
        args=settings,
        train_dataset=trl_rows(sql_rows(tmp_path)),
        processing_class=tokenizer,
        environment_factory=SqlEnvironment,
    )
    trainer.train()
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert seen
    logged = trainer.state.log_history[0]
    assert {
        "rewards/execution/mean",
        "rewards/evidence/mean",
        "rewards/SqlEnvironment/mean",
    } <= set(logged)


def test_a_conversation_as_trl_keeps_it_is_worth_what_it_is_worth_here(tmp_path: Path) -> None:
    [row, _] = sql_rows(tmp_path)
    gold, answer = row.columns["gold_sql"], row.columns["answer"]
    call = {"type": "function", "function": {"name": TOOL, "arguments": {"sql": gold}}}
    said = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": TOOL, "content": "..."},
        {"role": "assistant", "content": answer},
    ]
    [execution, evidence], weights = trl_rewards(
        "memograd.tasks.sql.rewards:execution:1,evidence:0.5"
    )
    columns = {name: [value] for name, value in row.columns.items()}
    assert weights == [1.0, 0.5]
    assert execution(prompts=[row.prompt], completions=[said], **columns) == [1.0]
    assert evidence(prompts=[row.prompt], completions=[said], **columns)[0] > 0.5
    # The environment, as TRL holds it, is of the same opinion.
    environment = SqlEnvironment()
    environment.reset(**row.columns)
    environment.query_database_by_sql(gold)
    assert environment.get_reward() == 1.0
