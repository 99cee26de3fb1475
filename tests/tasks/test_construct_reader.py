"""A reader model answers from the memory: cached, resumed to the bit, the adapter untouched."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memograd.config import LoraConfig
from memograd.data import Question
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw
from memograd.policy.language_model import LanguageModel
from memograd.tasks.base.reading import BaseModelChat
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.evaluate import evaluate
from memograd.tasks.memory_construct import drawing as memory_construct_drawing
from memograd.tasks.memory_construct import recipe as memory_construct
from memograd.tasks.memory_construct.recipe import ANSWERS, open_reader
from memograd.tasks.memory_construct.settings import ConstructTrainConfig
from memograd.tasks.registry import train

QUESTION = Question("q", "Where?", "Porto", "single-hop", (), asked_at=datetime(2023, 5, 7))


@pytest.fixture
def model(tiny_model_folder: Path) -> LanguageModel:
    model = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=2), device="cpu")
    for weight in model.parameters():
        weight.data += 0.3  # as if trained, so that base and policy answer differently
    return model


def test_base_answers_without_its_adapter_and_gives_it_back(
    model: LanguageModel, tiny_model_folder: Path, tmp_path: Path
) -> None:
    def of_policy() -> str:
        [group] = model.sample(
            [model.encode("Where?")], num_generations=1, temperature=0.0, max_completion_length=8
        )
        return group.texts[0]

    trained = of_policy()
    base = open_reader("base", model, "cpu")
    other = open_reader(str(tiny_model_folder), model, "cpu")
    said = base.answer(QUESTION, ["a", "b"], "en")
    assert said == other.answer(QUESTION, ["a", "b"], "en") and len(said.splitlines()) == 1
    assert base.answer(QUESTION, [], "zh") != said
    assert of_policy() == trained
    with model.untrained():
        untrained = of_policy()
        base.answer(QUESTION, ["c"], "en")
        assert of_policy() == untrained != trained
    undated = Question("q", "Where?", "Porto", "single-hop", ())
    assert base.answer(undated, ["a"], "en") is not None
    with pytest.raises(BadInput, match=r"show it less \(build\.token_budget"):
        base.answer(QUESTION, ["x" * 5000], "en")


def test_answers_are_kept_and_a_torn_line_is_no_harm(model: LanguageModel, tmp_path: Path) -> None:
    reader = open_reader("base", model, "cpu")
    with reader.kept_in(tmp_path / ANSWERS):
        said = [reader.answer(QUESTION, [note], "en") for note in ("a", "b", "a")]
    lines = (tmp_path / ANSWERS).read_text().splitlines()
    assert len(lines) == 2 and said[0] == said[2]
    with (tmp_path / ANSWERS).open("a") as file:
        file.write('{"key": "torn')

    def breaks(self: Any, *given: Any, **options: Any) -> str:
        raise MemogradError("asked again")

    again = open_reader("base", model, "cpu")
    with pytest.MonkeyPatch.context() as broken, again.kept_in(tmp_path / ANSWERS):
        broken.setattr(BaseModelChat, "complete", breaks)
        assert [again.answer(QUESTION, [note], "en") for note in ("a", "b")] == said[:2]
        with pytest.raises(MemogradError, match="asked again"):
            again.answer(QUESTION, ["c"], "en")
    with again.kept_in(tmp_path / ANSWERS):
        again.answer(QUESTION, ["c"], "en")
    assert len([json.loads(x) for x in (tmp_path / ANSWERS).read_text().splitlines()]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("credit", ["local", "trajectory"])
def test_a_run_with_a_reader_is_resumed_to_the_bit(
    credit: str,
    tmp_path: Path,
    tiny_model_folder: Path,
    warmed: Path,
    monkeypatch: pytest.MonkeyPatch,
    trigrams,
) -> None:
    monkeypatch.setattr(memory_construct, "load_embedder", lambda name: trigrams(64))

    def config(out: Path) -> ConstructTrainConfig:
        return ConstructTrainConfig.model_validate(
            {
                "model": str(tiny_model_folder),
                "adapter": warmed,
                "device": "cpu",
                "lora": {"r": 4},
                "out": out,
                "steps": 2,
                "save_steps": 1,
                "prompts_per_step": 1,
                "num_generations": 4,
                "max_completion_length": 6,
                "temperature": 1.0,
                "learning_rate": 1e-2,
                "build": {
                    "logs": 2,
                    "eval_logs": 1,
                    "chunks": 2,
                    **({"walks": 1} if credit == "local" else {}),  # else nothing reads it
                    "credit": credit,
                    "reader": "base",
                },
            }
        )

    whole = train(config(tmp_path / "whole"))
    found = json.loads((whole / "evaluation.json").read_text())["methods"]
    for method in found:
        assert method["metrics"]["reader F1"]["n"] == method["metrics"]["answerable"]["n"]
    told = _numbers(whole)
    assert any(row["grad_norm"] > 0 for row in told)

    real = memory_construct_drawing.ConstructDrawing.__call__

    def breaks(self: Any, scenarios: Any, draw: Draw) -> Any:
        attempts = real(self, scenarios, draw)
        if draw.step == 2:  # after its questions were answered
            raise MemogradError("out of luck")
        return attempts

    cut = tmp_path / "cut"
    with monkeypatch.context() as broken:
        broken.setattr(memory_construct_drawing.ConstructDrawing, "__call__", breaks)
        with pytest.raises(MemogradError, match="out of luck"):
            train(config(cut))
    train(ConstructTrainConfig(resume=cut))
    assert _numbers(cut) == told
    assert (cut / ANSWERS).read_bytes() == (whole / ANSWERS).read_bytes()
    name = "final/adapter_model.safetensors"
    assert (cut / name).read_bytes() == (whole / name).read_bytes()
    with pytest.raises(BadInput, match=r"build\.reader"):
        train(
            ConstructTrainConfig(resume=cut, build={"reader": str(tiny_model_folder)})  # type: ignore[arg-type]
        )
    before = (cut / ANSWERS).read_bytes()
    evaluate(cut, Evaluation(None, [], False))
    assert (cut / ANSWERS).read_bytes() == before  # nothing was asked twice


def test_a_reader_that_is_not_there_leaves_no_run(tmp_path: Path, tiny_model_folder: Path) -> None:
    given = {"logs": 2, "eval_logs": 1, "reader": "./no-such-model"}
    config = {"model": str(tiny_model_folder), "out": tmp_path / "run", "build": given}
    with pytest.raises(BadInput, match="does not exist"):
        train(ConstructTrainConfig.model_validate({**config, "device": "cpu"}))
    assert not (tmp_path / "run").exists()


def _numbers(run: Path) -> list[dict[str, Any]]:
    rows = RunFolder.open(run).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
