"""memory-qa from end to end on a tiny model: train, evaluate, stop and go on, refuse bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from memograd.data import Conversation, load_conversations_jsonl, write_conversations_jsonl
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.memory_qa import recipe as memory_qa
from memograd.tasks.memory_qa import setup as memory_qa_setup
from memograd.tasks.memory_qa.measure import EVERY, TRAINED, UNTRAINED, WARM_START
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.memory_qa.setup import (
    MemoryQASetup,
    available_conversations,
    choose_split,
    thinned,
)
from memograd.tasks.registry import train


@pytest.fixture(scope="module")
def module_settings(tiny_model_folder, small_data) -> dict[str, object]:
    return {
        "data": str(small_data),
        "model": str(tiny_model_folder),
        "device": "cpu",
        "steps": 4,
        "prompts_per_step": 2,
        "num_generations": 2,
        "max_completion_length": 4,
        "save_steps": 2,
        "memory": {"top_k": 2, "embedder": "minilm"},
        "lora": {"r": 2},
        "eval_batch_size": 64,
        # A random model says nothing that an F1 would reward; BLEU-1 sees single characters.
        "rewards": "mem0_bleu1",
    }


@pytest.fixture
def settings(module_settings) -> dict[str, object]:
    return {**module_settings}


@pytest.fixture(scope="module")
def one_step(module_settings, tmp_path_factory) -> Path:
    """A finished run of one step, which no test may change."""
    out = tmp_path_factory.mktemp("runs") / "run"
    return train(MemoryQATrainConfig(out=out, **{**module_settings, "steps": 1}))


@pytest.fixture
def run(one_step, tmp_path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(one_step, tmp_path / "run"))


@pytest.fixture(scope="module")
def whole(module_settings, tmp_path_factory) -> Path:
    """A run of four steps that never stopped, which no test may change."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    return train(MemoryQATrainConfig(out=out, **module_settings))


def without_seconds(run: Path) -> list[dict]:
    rows = RunFolder.open(run).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_a_run_and_its_evaluation(tmp_path, settings, capsys) -> None:
    settings["memory"] = {"top_k": 2}  # the embedder that is meant, whose turns are ranked
    run = train(MemoryQATrainConfig(out=tmp_path / "run", **settings))
    assert {
        "config.json", "environment.json", "metrics.jsonl", "rollouts", "checkpoint-2", "final",
        "curves.png", "evaluation.md", "evaluation.json", "answers.jsonl", "memory.db",
    } <= {path.name for path in run.iterdir()}  # fmt: skip
    assert (run / "curves.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((run / "evaluation.json").read_text())
    assert [entry["method"] for entry in report["reports"]] == [
        UNTRAINED,
        TRAINED,
    ]
    memory_qa.evaluate(run, Evaluation(None, [], True))
    report = json.loads((run / "evaluation.json").read_text())
    assert [entry["method"] for entry in report["reports"]] == list(EVERY)
    for answer in map(json.loads, (run / "answers.jsonl").read_text().splitlines()):
        assert set(answer["answers"]) == set(EVERY)
    assert "retrieved memory, trained" in capsys.readouterr().out


@pytest.mark.slow
def test_killed_and_resumed_it_equals_the_run_that_never_stopped(tmp_path, settings, whole) -> None:
    """A real `kill -9` of the command line in the middle of training. That resuming is exact, to
    the adapter's last bit, is shown below without a process."""
    overrides = [
        f"{key}={value}" for key, value in settings.items() if key not in ("memory", "lora")
    ]
    command = [
        sys.executable, "-m", "memograd", "train", "memory-qa", f"out={tmp_path / 'cut'}",
        "memory.top_k=2", "memory.embedder=minilm", "lora.r=2", *overrides,
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "cut" / "checkpoint-2").exists() and time.monotonic() < deadline:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "cut" / "final").exists()
    resumed = train(MemoryQATrainConfig(resume=tmp_path / "cut"))
    assert without_seconds(resumed) == without_seconds(whole)
    name = "final/adapter_model.safetensors"
    assert (resumed / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.slow
def test_a_finished_run_can_be_made_longer(tmp_path, settings, whole) -> None:
    short = train(MemoryQATrainConfig(out=tmp_path / "short", **{**settings, "steps": 3}))
    longer = train(MemoryQATrainConfig(resume=short, steps=4))
    assert without_seconds(longer) == without_seconds(whole)


@pytest.mark.slow
def test_more_steps_asked_for_once_are_remembered(run) -> None:
    """Resumed with steps=2 and stopped again, a plain resume still goes to step 2."""
    train(MemoryQATrainConfig(resume=run, steps=2))
    shutil.rmtree(run / "final")
    again = train(MemoryQATrainConfig(resume=run))
    assert [row["step"] for row in without_seconds(again)] == [1, 2]
    with pytest.raises(BadInput, match="at step 2 already"):
        train(MemoryQATrainConfig(resume=run, steps=1))


def test_two_processes_cannot_train_in_one_folder(run) -> None:
    with (
        RunFolder.open(run).lock(),
        pytest.raises(BadInput, match="Another process trains"),
    ):
        train(MemoryQATrainConfig(resume=run, steps=2))


def test_a_kill_between_the_two_renames_of_the_only_checkpoint_is_mended(run, whole) -> None:
    (run / "final").rename(run / ".replaced-final")
    longer = train(MemoryQATrainConfig(resume=run, steps=2))
    assert without_seconds(longer) == without_seconds(whole)[:2]
    name = "adapter_model.safetensors"
    assert (longer / "final" / name).read_bytes() == (whole / "checkpoint-2" / name).read_bytes()


def test_settings_of_another_version_are_named(run) -> None:
    stored = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**stored, "flux": 1}))
    with pytest.raises(BadInput, match=r"config\.json does not fit.*flux"):
        memory_qa.evaluate(run, Evaluation(None, [], False))


def test_a_resumed_run_keeps_its_settings(run) -> None:
    with pytest.raises(BadInput, match="learning_rate"):
        train(MemoryQATrainConfig(resume=run, learning_rate=0.5))


def test_a_folder_that_holds_a_run_is_refused_and_untouched(settings, run) -> None:
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(BadInput, match="not empty"):
        train(MemoryQATrainConfig(out=run, **settings))
    assert (run / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "no-such-file.json"}, "no-such-file.json"),
        ({"train": ["nobody"], "eval": ["life-7-1"]}, "nobody"),
        ({"train": ["life-7-0"]}, "eval= names no conversation"),
        ({"model": "./no-such-model"}, "does not exist"),
        ({"rewards": "locomo_f2"}, "locomo_f1"),
        ({"rewards": "environment"}, "that of an agent"),
        ({"rewards": "memograd.tasks.memory_ops_text:worth"}, "worth needs operations, but quest"),
        ({"max_prompt_length": 40}, "max_prompt_length"),
        ({"memory": {"embedder": "mini"}}, "minilm"),
    ],
)
def test_bad_input_leaves_no_half_made_run(tmp_path, settings, changes, message) -> None:
    out = tmp_path / "run"
    with pytest.raises(BadInput, match=message):
        train(MemoryQATrainConfig(out=out, **{**settings, **changes}))
    assert not out.exists()


def test_measuring_on_what_was_trained_on_is_refused(run) -> None:
    with pytest.raises(BadInput, match="trained on life-7-0"):
        memory_qa.evaluate(run, Evaluation(None, ["life-7-0"], False))


@pytest.mark.slow
def test_other_data_can_be_evaluated(tmp_path, lives, run) -> None:
    write_conversations_jsonl(lives(3, 99, most=4), tmp_path / "other.json")
    memory_qa.evaluate(run, Evaluation(tmp_path / "other.json", ["life-99-1"], False))
    report = json.loads((run / "evaluation-other" / "evaluation.json").read_text())
    ids = [question["id"] for question in report["reports"][0]["questions"]]
    assert all(name.startswith("life-99-1/") for name in ids)


def test_without_a_choice_the_last_conversation_is_held_out(tmp_path, lives) -> None:
    write_conversations_jsonl(lives(3, 1), tmp_path / "data.json")
    split = choose_split(available_conversations(tmp_path / "data.json", 0), [], [])
    assert [c.id for c in split.train] == ["life-1-0", "life-1-1"]
    assert [c.id for c in split.eval] == ["life-1-2"]
    write_conversations_jsonl(lives(1, 1), tmp_path / "one.json")
    with pytest.raises(BadInput, match="one to train on and another"):
        choose_split(available_conversations(tmp_path / "one.json", 0), [], [])


def test_prompts_stay_within_the_prompt_limit(tmp_path, settings, trigrams, monkeypatch) -> None:
    monkeypatch.setattr(memory_qa_setup, "load_embedder", lambda name: trigrams(384, name))
    memory = {"top_k": 50, "embedder": "minilm"}
    config = MemoryQATrainConfig(**{**settings, "memory": memory, "max_prompt_length": 600})
    policy = LanguageModel.load(config.model, lora=config.lora, device="cpu")
    split = choose_split(available_conversations(None, 0), [], [])
    setup = MemoryQASetup(config, policy, tmp_path / "memory.db")
    setup.remember(split.eval)
    lengths = [len(policy.encode(s.messages)) for s in setup.scenarios(split.eval)]
    assert 500 < max(lengths) <= 600


OWN = [
    {
        "id": name,
        "turns": [
            {"speaker": name, "text": f"I moved to {place}.", "time": "2024-06-02"},
            {"speaker": name, "text": f"我住在{place}。", "time": "2024-07-02T10:00"},
        ],
        "questions": [
            {"question": "Where?", "answer": place, "evidence": ["t1"], "category": "homes"},
            {"question": "住在哪里？", "answer": place, "evidence": ["t2"], "accepted": ["a"]},
            {"question": "Where in June?", "answer": "Bonn", "asked_at": "2024-06-30"},
        ],
    }
    for name, place in (("Ann", "Oslo"), ("李雷", "上海"), ("Bob", "Rome"))
]


@pytest.mark.slow
def test_conversations_of_ones_own(tmp_path, settings, caplog) -> None:
    """JSONL with own categories; what was asked before the end is not asked at the end."""
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in OWN), encoding="utf-8")
    own = {**settings, "data": str(path), "steps": 1, "rewards": "locomo_f1:1,mem0_bleu1:1"}
    run = train(MemoryQATrainConfig(out=tmp_path / "run", train=["Ann"], eval=["李雷"], **own))
    assert "left out 3 questions that are asked before" in caplog.text
    report = json.loads((run / "evaluation.json").read_text())["reports"][0]
    assert report["n"] == 2
    assert set(report["estimates"]["locomo_f1"]) == {"overall", "homes", "question"}
    memory_qa.evaluate(run, Evaluation(path, ["李雷", "Bob"], False))
    text = (run / "evaluation-mine" / "evaluation.md").read_text()
    assert "interval over conversations and their questions" in text


def test_what_was_trained_on_is_refused_under_another_name(tmp_path, settings, run) -> None:
    copies = load_conversations_jsonl(settings["data"])
    other = tmp_path / "other.json"
    write_conversations_jsonl([_renamed(copy, f"new-{copy.id}") for copy in copies], other)
    with pytest.raises(BadInput, match="was trained on new-life-7-0, new-life-7-1"):
        memory_qa.evaluate(run, Evaluation(other, ["new-life-7-0", "new-life-7-1"], False))
    memory_qa.evaluate(run, Evaluation(other, [], False))
    report = json.loads((run / "evaluation-other" / "evaluation.json").read_text())
    ids = [question["id"] for question in report["reports"][0]["questions"]]
    assert all(name.startswith("new-life-7-2/") for name in ids)


def _renamed(one: Conversation, name: str) -> Conversation:
    questions = [
        replace(question, id=f"{name}/q{place}") for place, question in enumerate(one.questions)
    ]
    return replace(one, id=name, questions=tuple(questions))


def test_conversations_without_questions_are_for_neither_side(tmp_path) -> None:
    turns = [{"speaker": "Eve", "text": "Hello!", "time": "2024-07-02"}]
    late = {"question": "Where?", "answer": "Bonn", "asked_at": "2024-06-30"}
    silent = [{"id": "silent", "turns": turns, "questions": [late]}]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in [*OWN, *silent]), encoding="utf-8")
    available = available_conversations(path, 0)
    split = choose_split(available, [], [])
    assert [one.id for one in split.eval] == ["Bob"]
    with pytest.raises(BadInput, match="eval= names no conversation with a question"):
        choose_split(available, ["Ann"], ["silent"])


@pytest.mark.slow
def test_what_a_warm_start_knew_is_not_counted_as_learnt(tmp_path, settings, run) -> None:
    first = run.rename(tmp_path / "first")
    given = {key: value for key, value in settings.items() if key not in ("model", "lora")}
    given = {**given, "adapter": str(first), "steps": 1}
    run = train(MemoryQATrainConfig(out=tmp_path / "run", **given))

    def methods() -> list[str]:
        report = json.loads((run / "evaluation.json").read_text())
        return [entry["method"] for entry in report["reports"]]

    assert methods() == [UNTRAINED, WARM_START, TRAINED]
    assert json.loads((run / "before.json").read_text())["measured"]["report"]["method"] == (
        WARM_START
    )
    assert train(MemoryQATrainConfig(resume=run, adapter=first, steps=2)) == run
    assert methods() == [UNTRAINED, WARM_START, TRAINED]
    memory_qa.evaluate(run, Evaluation())
    assert methods() == [UNTRAINED, WARM_START, TRAINED]


def test_questions_are_thinned_by_the_seed_and_nothing_else_changes(lives) -> None:
    available = lives(3, 0)
    asked = [question for one in available for question in one.questions]

    def kept(most: int | None, seed: int = 0) -> list:
        thin = thinned(available, most, seed)
        assert [one.turns for one in thin] == [one.turns for one in available]
        return [question for one in thin for question in one.questions]

    assert kept(None) == kept(len(asked)) == asked
    assert len(kept(5)) == 5
    assert set(kept(5)) <= set(asked)
    assert kept(5) == kept(5)
    assert kept(5) != kept(5, seed=1)
