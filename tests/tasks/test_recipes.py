"""The recipes in examples/recipes: each is read whole, and each trains two steps here.

The model is a random one of the recipe's own architecture, narrow, with the real tokenizer of the
Qwen models and its chat template. What the recipes promise at full size is not tested.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from memograd.cli.plan import app as plan
from memograd.config import load_settings
from memograd.data import write_conversations_jsonl
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.registry import train
from memograd.tasks.sql.settings import SqlTrainConfig
from memograd.tasks.text.settings import TextTrainConfig

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "examples" / "recipes").glob("*.toml"))
KINDS = {
    "locomo-qwen2.5-3b": MemoryQATrainConfig,
    "grpo-qwen2.5-0.5b": TextTrainConfig,
    "gsm8k-qwen2.5-1.5b": TextTrainConfig,
    "gsm8k-full-qwen2.5-1.5b": TextTrainConfig,
    "sql-qwen3-0.6b": SqlTrainConfig,
}
SMALL = ["prompts_per_step=2", "num_generations=2", "max_completion_length=6", "device=cpu"]


def test_every_recipe_is_known_and_says_that_it_was_not_measured() -> None:
    assert {path.stem for path in RECIPES} == set(KINDS)
    for path in RECIPES:
        text = " ".join(path.read_text().replace("#", "").split())
        assert "The full run of this file was not measured." in text


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_says_what_the_plan_says(path: Path) -> None:
    text = " ".join(path.read_text().replace("#", "").split())
    needs, command = re.findall(r"Needs: about (\d+) GiB.*?\(memograd plan (.*?)\)", text)[0]
    planned = CliRunner().invoke(plan, command.split())
    assert f"needs about {needs} GiB" in planned.output


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_read_without_a_word_left_over(path: Path) -> None:
    settings = load_settings(KINDS[path.stem], path, [])
    told = tomllib.loads(path.read_text())
    assert settings.model == told["model"]
    assert settings.learning_rate == told["learning_rate"]


@pytest.fixture(scope="module")
def qwen_folder(shared_data: Path, tmp_path_factory: pytest.TempPathFactory):
    """Makes the folder of a narrow random model with Qwen's tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen3Config

    source = shared_data / "qwen3_tokenizer"
    if not source.is_dir():
        pytest.skip("the Qwen tokenizer is not beside this checkout")

    def make(kind: str) -> Path:
        folder = tmp_path_factory.mktemp(kind)
        shutil.copy(source / "tokenizer_config.json", folder)
        with gzip.open(source / "tokenizer.json.gz") as packed:
            (folder / "tokenizer.json").write_bytes(packed.read())
        tokenizer = AutoTokenizer.from_pretrained(folder)
        torch.manual_seed(0)
        made = Qwen3Config if kind == "qwen3" else Qwen2Config
        config = made(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        return folder

    return make


def rows_for(stem: str, folder: Path, lives) -> list[str]:
    """The recipe's data, in its own format."""
    if stem == "locomo-qwen2.5-3b":
        data = folder / "conversations.jsonl"
        write_conversations_jsonl(lives(2, 0), data)
        return [f"data={data}", "max_train=4", "max_eval=2", "memory.embedder=e5"]
    if stem == "sql-qwen3-0.6b":
        return ["sql.max_eval=2", "episodes.max_turns=1"]
    if stem.startswith("gsm8k"):
        asked = [
            {
                "prompt": f"A box holds {n} pens. How many pens do 3 boxes hold?",
                "answer": str(3 * n),
            }
            for n in range(2, 12)
        ]
        data = folder / "rows.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in asked))
        return [f"data={data}"]
    examples = ROOT / "examples" / "text"
    rewards = f"rewards={examples / 'my_rewards.py'}:exact_format"
    return [f"data={examples / 'prompts.jsonl'}", rewards]


@pytest.mark.slow
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_trains_two_steps(path: Path, tmp_path: Path, qwen_folder, lives) -> None:
    model = qwen_folder("qwen3" if "qwen3" in path.stem else "qwen2")
    told = [f"model={model}", f"out={tmp_path / 'run'}", "steps=2", *SMALL]
    settings = load_settings(KINDS[path.stem], path, [*told, *rows_for(path.stem, tmp_path, lives)])
    run = train(settings)
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len(metrics) == 2
    assert all(row["grad_norm"] is not None for row in metrics)
    assert (run / "final" / "COMPLETE").is_file()
