"""Which settings a resumed run takes, and that a refusal changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memograd.config import LoraConfig, TrainConfig
from memograd.errors import BadInput
from memograd.grpo.resume import CHANGEABLE, resumed_config, stored_config
from memograd.grpo.run_folder import RunFolder
from memograd.tasks.agent.settings import AgentTrainConfig
from memograd.tasks.base.recipe import located

BEGAN = TrainConfig(steps=10, learning_rate=0.01, lora=LoraConfig(r=4, alpha=8))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", BEGAN.model_dump_json())


def test_what_may_change_is_taken_and_kept(run: RunFolder) -> None:
    resumed = resumed_config(run, TrainConfig(resume=run.path, steps=20, save_steps=3))
    assert resumed == BEGAN.model_copy(update={"steps": 20, "save_steps": 3})
    assert stored_config(run, TrainConfig) == resumed
    assert resumed_config(run, TrainConfig(resume=run.path)) == resumed


def test_the_same_value_given_again_is_no_change(run: RunFolder) -> None:
    again = TrainConfig(resume=run.path, learning_rate=0.01, lora=LoraConfig(r=4))
    assert resumed_config(run, again) == BEGAN


def test_a_model_folder_is_the_same_from_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny").mkdir()
    begun = BEGAN.model_copy(update={"model": str((tmp_path / "tiny").resolve())})
    run = RunFolder.create(tmp_path / "run", begun.model_dump_json())
    monkeypatch.chdir(tmp_path)
    assert resumed_config(run, located(TrainConfig(resume=run.path, model="tiny"))) == begun


def test_a_run_of_the_time_when_tasks_shared_their_settings_is_read_by_its_own(
    tmp_path: Path,
) -> None:
    shared = {
        **json.loads(TrainConfig(steps=7).model_dump_json()),
        "memory": {"top_k": 5},
        "train": [],
        "text": {"eval_fraction": 0.2, "string_prompts": "chat", "eval_data": None},
    }
    run = RunFolder.create(tmp_path / "run", json.dumps(shared))
    rows = stored_config(run, AgentTrainConfig)
    assert (rows.steps, rows.text.eval_fraction) == (7, 0.2)
    strange = RunFolder.create(tmp_path / "strange", json.dumps({**shared, "stepz": 1}))
    with pytest.raises(BadInput, match="does not fit this version of memograd: stepz"):
        stored_config(strange, AgentTrainConfig)


def test_everything_else_is_refused_by_its_name(run: RunFolder) -> None:
    before = run.config_json
    changed = TrainConfig(resume=run.path, steps=20, seed=1, lora=LoraConfig(alpha=9))
    with pytest.raises(BadInput, match=r"but lora\.alpha, seed would change .*config\.json; only"):
        resumed_config(run, changed)
    assert run.config_json == before


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
def test_settings_that_a_crash_left_damaged_are_said(run: RunFolder, content: bytes) -> None:
    (run.path / "config.json").write_bytes(content)
    with pytest.raises(BadInput, match=r"config\.json is damaged \(.*\); put back the settings"):
        stored_config(run, TrainConfig)


def test_fewer_steps_than_are_done_are_refused(run: RunFolder) -> None:
    run.save_checkpoint("checkpoint-4", lambda folder: None)
    with pytest.raises(BadInput, match=r"at step 4 already, beyond steps=3"):
        resumed_config(run, TrainConfig(resume=run.path, steps=3))


def test_what_may_change_exists_and_is_documented() -> None:
    assert set(TrainConfig.model_fields) >= CHANGEABLE
    text = (Path(__file__).resolve().parents[2] / "docs" / "runs.md").read_text(encoding="utf-8")
    for name in CHANGEABLE:
        assert f"`{name}`" in text
