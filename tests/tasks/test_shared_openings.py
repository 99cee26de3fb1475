"""Rows that open alike: the opening is run once, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from memograd.grpo import RunFolder
from memograd.warm_start import sft as training
from memograd.warm_start.settings import SftSettings
from memograd.warm_start.sft import behind_opening, opening_length, sft
from memograd.warm_start.tokens import IGNORED

TOLD = {"role": "system", "content": "You answer questions about a town, its people, its trees."}
ANSWERS = {"Who is the mayor?": "Ann", "Where is the oak?": "By the river", "How old?": "400"}


@pytest.fixture
def options(tmp_path: Path, tiny_model_folder: Path) -> dict[str, Any]:
    chats = [
        {
            "messages": [
                TOLD,
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
            ]
        }
        for question, answer in ANSWERS.items()
    ]
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    return {
        "data": rows,
        "model": str(tiny_model_folder),
        "device": "cpu",
        "lora": {"r": 4},
        "steps": 3,
        "batch_size": 3,
        "micro_batch_size": 3,
        "learning_rate": 0.02,
        "warmup_steps": 0,
    }


def test_a_run_is_that_of_the_whole_rows(tmp_path, options, monkeypatch) -> None:
    """The second run shares nothing: every number of the log, and the weights, agree."""
    shared = sft(SftSettings(out=tmp_path / "shared", **options))
    monkeypatch.setattr(training, "LEAST", 10**6)
    whole = sft(SftSettings(out=tmp_path / "whole", **options))
    logs = [RunFolder.open(run).read_metrics() for run in (shared, whole)]
    for one, other in zip(*logs, strict=True):
        assert one["tokens"] == other["tokens"]
        for name in ("loss", "grad_norm", "entropy", "token_accuracy"):
            assert one[name] == pytest.approx(other[name], rel=1e-3), name
    weights, expected = (
        load_file(run / "final" / "adapter_model.safetensors") for run in (shared, whole)
    )
    for name, weight in weights.items():
        torch.testing.assert_close(weight, expected[name], atol=2e-3, rtol=1e-2)


def batch(rows: list[tuple[list[int], int]]) -> dict[str, Any]:
    """Rows of ids, of which so many first ones are not learnt, padded as TRL pads them."""
    width = max(len(ids) for ids, _ in rows)
    padded = [ids + [0] * (width - len(ids)) for ids, _ in rows]
    labels = [
        [IGNORED] * min(given, len(ids)) + ids[given:] + [IGNORED] * (width - len(ids))
        for ids, given in rows
    ]
    attended = [[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows]
    names = ("input_ids", "labels", "attention_mask")
    return dict(zip(names, map(torch.tensor, (padded, labels, attended)), strict=True))


ROWS = st.lists(
    st.tuples(st.lists(st.integers(1, 2), min_size=1, max_size=9), st.integers(1, 9)),
    min_size=1,
    max_size=3,
)


@given(ROWS)
def test_the_opening_ends_where_rows_part_or_are_learnt(rows: list[tuple[list[int], int]]) -> None:
    given_batch = batch(rows)
    found = opening_length(*given_batch.values())
    if len(rows) == 1:
        assert found == 0
        return
    expected = 0
    while all(
        expected < len(ids) and ids[expected] == rows[0][0][expected] for ids, _ in rows
    ) and all(expected + 1 < given or given >= len(ids) for ids, given in rows):
        expected += 1
    if expected < given_batch["input_ids"].shape[1]:
        assert found == expected
    else:
        assert found == 0  # rows in which nothing is learnt


def test_the_opening_passes_through_the_layers_once(tiny_model_folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_model_folder)
    run: list[int] = []
    layer = model.get_decoder().layers[0]
    layer.register_forward_pre_hook(lambda _, given: run.append(given[0].shape[:2].numel()))
    opening = [7] * 40
    given_batch = batch([([*opening, 1, 2, 3], 41), ([*opening, 4, 5], 41)])
    rest = behind_opening(model, given_batch)
    logits = model(**{key: value for key, value in rest.items() if key != "labels"}).logits
    assert run == [40, 2 * 3]
    whole = model(given_batch["input_ids"], attention_mask=given_batch["attention_mask"]).logits
    torch.testing.assert_close(logits[0], whole[0, 40:], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(logits[1, :2], whole[1, 40:42], atol=1e-5, rtol=1e-4)
