"""The text task from end to end: through the command line, killed and resumed, and bad input."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import run

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.rewards import RewardTable
from memograd.rewards.user_code import load_file
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.evaluate import evaluate
from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.registry import train
from memograd.tasks.text.measure import MeasuredRows, compare
from memograd.tasks.text.settings import TextTrainConfig

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "text"

REWARDS = '''
def vowels(completions, answer, **columns):
    """A byte model says anything; its share of small numbers always differs a little."""
    return [sum(map(ord, c)) % 97 / 97 for c in completions]


async def sometimes(prompts, completions, answer):
    return [None if gold is None else float(len(c)) for c, gold in zip(completions, answer)]
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with eight rows, a reward file, and an import path of its own."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": f"count: {n}", "id": f"row-{n}", "answer": n} for n in range(7)]
    del rows[1]["answer"]
    lines = [json.dumps(row) for row in [*rows, {"prompt": "long " * 40, "id": "long"}]]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    (tmp_path / "mine.py").write_text(REWARDS)
    return tmp_path


@pytest.fixture
def settings(tiny_model_folder: Path) -> list[str]:
    return [
        f"model={tiny_model_folder}", "device=cpu", "lora.r=2", "prompts_per_step=2",
        "num_generations=2", "max_completion_length=4", "max_prompt_length=40",
    ]  # fmt: skip


def train_text(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return run(capsys, "train", "text", *arguments)


DATA = ("--data", "rows.jsonl", "--rewards", "mine.py:vowels,sometimes:0.1,length(low=1,high=9)")


def config(out: Path, tiny: Path, **given: Any) -> TextTrainConfig:
    settings: dict[str, Any] = {
        "data": "rows.jsonl", "rewards": "mine.py:vowels", "model": str(tiny), "device": "cpu",
        "lora": {"r": 2}, "prompts_per_step": 2, "num_generations": 2, "out": str(out),
        "max_completion_length": 4, "max_prompt_length": 40, "steps": 4, "save_steps": 2,
    }  # fmt: skip
    return TextTrainConfig(**{**settings, **given})


def test_a_run_from_the_command_line(
    folder: Path, settings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = train_text(capsys, *DATA, "out=run", "steps=1", *settings)
    assert code == 0
    path = folder / "run"
    assert "reward sometimes (yours), weight 0.1\nreward length (built in), weight 1\n" in out
    assert "left out 1 prompts of more than 40 tokens: long (listed in" in out
    assert "string prompts are continued as they stand" in out
    assert json.loads((path / "dropped.jsonl").read_text()) == {
        "id": "long",
        "tokens": 200,
        "limit": 40,
    }
    stored = TextTrainConfig.model_validate_json((path / "config.json").read_text())
    assert stored.rewards.startswith(f"{folder}/mine.py:vowels,sometimes:0.1,length(")
    assert stored.data == folder / "rows.jsonl"
    (step,) = RunFolder.open(path).read_metrics()
    assert set(step["rewards"]) == {"vowels", "sometimes", "length"}
    # What was measured: every reward of every held-out row, before and after.
    measured = {
        entry["reward"]: entry for entry in json.loads((path / "evaluation.json").read_text())
    }
    answers = [json.loads(line) for line in (path / "answers.jsonl").read_text().splitlines()]
    assert list(measured) == ["total", "vowels", "sometimes", "length"]
    for name, entry in measured.items():
        for side in ("before", "after"):
            said = [answer[side]["rewards"][name] for answer in answers]
            assert entry[side][0] == pytest.approx(sum(said) / len(said))
    trained_on = {name for name, _ in json.loads((path / "data.json").read_text())["scenarios"]}
    assert trained_on.isdisjoint(answer["id"] for answer in answers)
    assert len(trained_on) + len(answers) == 7
    table = (path / "evaluation.md").read_text()
    assert "| total (n=1) |" in table
    assert f"**{answers[0]['id']}**" in table


def test_resumed_it_equals_the_run_that_never_stopped(
    folder: Path, tiny_model_folder: Path
) -> None:
    """Stopped by a reward function that breaks in the third step, then mended."""
    whole = train(config(folder / "whole", tiny_model_folder))
    (folder / "breaking.py").write_text(
        "import pathlib\n"
        "from mine import vowels as good\n"
        "def vowels(completions, answer, **columns):\n"
        "    calls = pathlib.Path('calls')\n"
        "    calls.open('a').write('.')\n"
        "    return good(completions, answer) if len(calls.read_text()) < 4 else 1 / 0\n"
    )
    cut = folder / "cut"
    with pytest.raises(Exception, match=r"ZeroDivisionError.*breaking\.py line 6"):
        train(config(cut, tiny_model_folder, rewards="breaking.py:vowels"))
    (folder / "calls").unlink()
    (folder / "breaking.py").write_text("from mine import vowels\n")
    train(TextTrainConfig(resume=cut))
    name = "final/adapter_model.safetensors"
    assert (cut / name).read_bytes() == (whole / name).read_bytes()
    metrics = [
        [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
        for rows in (RunFolder.open(cut).read_metrics(), RunFolder.open(whole).read_metrics())
    ]
    assert metrics[0] == metrics[1]
    assert (cut / "answers.jsonl").read_text() == (whole / "answers.jsonl").read_text()


def test_chat_prompts_and_another_file_to_evaluate_on(
    folder: Path, tiny_model_folder: Path
) -> None:
    held_out = folder / "eval.jsonl"
    held_out.write_text('{"prompt": [{"role": "user", "content": "你好"}], "answer": 1}')
    path = train(
        config(
            folder / "run",
            tiny_model_folder,
            steps=1,
            rewards="length",
            text={"eval_data": "eval.jsonl", "string_prompts": "chat"},
        )
    )
    (answer,) = map(json.loads, (path / "answers.jsonl").read_text().splitlines())
    assert answer["prompt"] == [{"role": "user", "content": "你好"}]
    assert "[user] count: " in (path / "rollouts" / "step-0001.txt").read_text()


def test_a_string_prompt_reaches_the_model_as_it_stands(tiny_model_folder: Path) -> None:
    policy = LanguageModel.load(str(tiny_model_folder), lora=TextTrainConfig().lora, device="cpu")
    ids = policy.encode("你好 a")
    assert policy.tokenizer.decode(ids) == "你好 a"
    assert len(ids) == len("你好 a".encode())
    policy.tokenizer.chat_template = None
    assert len(policy.encode("a")) == 1
    with pytest.raises(BadInput, match="has no chat template"):
        policy.encode([{"role": "user", "content": "a"}])


@pytest.mark.slow
def test_texts_train_a_base_model_without_a_chat_template(
    folder: Path, tiny_model_folder: Path, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    shutil.copytree(tiny_model_folder, base)
    (base / "chat_template.jinja").unlink()
    path = train(config(folder / "run", base, steps=1, rewards="length"))
    assert "count: " in (path / "rollouts" / "step-0001.txt").read_text()
    with pytest.raises(BadInput, match="has no chat template"):
        train(config(folder / "chat", base, steps=1, text={"string_prompts": "chat"}))
    assert not (folder / "chat").exists()


def test_an_answer_that_fills_the_context_is_refused(folder: Path, tiny_model_folder: Path) -> None:
    with pytest.raises(
        BadInput,
        match=r"^max_completion_length=5000 leaves no room for a prompt in the 4096 tokens that are"
        r" there: set it to less\.$",
    ):
        train(config(folder / "run", tiny_model_folder, max_completion_length=5000))


def test_without_rows_to_evaluate_on_nothing_is_measured(
    folder: Path, tiny_model_folder: Path
) -> None:
    given = {"steps": 1, "text": {"eval_fraction": 0}}
    path = train(config(folder / "run", tiny_model_folder, **given))
    assert not (path / "evaluation.md").exists()
    assert (path / "final").is_dir()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["data=none"], "needs rows to train on; give --data"),
        (["--data", "gone.jsonl"], "There is no file "),
        (["--rewards", "gone.py:f"], "There is no reward file"),
        (["--rewards", "environment"], "that of an agent; use memograd train agent"),
        (["--rewards", "mine.py:gone"], 'no reward function "gone"; it has vowels, sometimes'),
        (
            ["--rewards", "keyword_coverage"],
            "Reward keyword_coverage needs keywords, but the rows",
        ),
        (
            ["max_prompt_length=3"],
            "All 7 prompts to train on have more than 3 tokens, 8 at least",
        ),
        (["--eval", "rows.jsonl"], "has the same prompt as"),
        (["text.string_prompts=both"], "one of text, chat"),
        (["text.eval_fraction=1"], "below 1"),
        (["text.eval_fraction=0", "eval_steps=1"], "and nothing is held out"),
    ],
)
def test_bad_input_leaves_nothing(
    folder: Path,
    settings: list[str],
    capsys: pytest.CaptureFixture[str],
    change: list[str],
    message: str,
) -> None:
    code, _, error = train_text(capsys, *DATA, "out=run", *settings, *change)
    assert code == 2
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (folder / "run").exists()


def test_a_checkpoint_without_an_adapter_is_not_begun_with(
    folder: Path, tiny_model_folder: Path
) -> None:
    told = OperationsConfig().model_dump_json()
    other = RunFolder.create(folder / "ops", told, task="memory-ops")
    other.save_checkpoint("final", lambda final: (final / "head.npz").touch(), step=1)
    for place in (other.path, other.path / "final"):
        with pytest.raises(BadInput, match="final holds no adapter of a language model"):
            train(config(folder / "run", tiny_model_folder, adapter=str(place)))
    assert not (folder / "run").exists()


def test_rewards_must_be_named(
    folder: Path, settings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, error = train_text(capsys, "--data", "rows.jsonl", *settings)
    assert (code, "give --rewards" in error) == (2, True)


def test_a_run_of_another_task_is_not_gone_on_with(folder: Path) -> None:
    RunFolder.create(folder / "other", TextTrainConfig().model_dump_json(), task="memory-qa")
    with pytest.raises(BadInput, match="is a run of memory-qa, not of text"):
        train(TextTrainConfig(resume=folder / "other"))


def test_rewards_that_apply_to_some_rows_are_compared_on_those() -> None:
    before = MeasuredRows(["a", "b", "c"], RewardTable([1.0, 2.0, 3.0], {"x": [1.0, None, None]}))
    after = MeasuredRows(["d", "e", "f"], RewardTable([2.0, 2.0, 5.0], {"x": [4.0, 5.0, None]}))
    total, x = compare(before, after)
    assert (total.reward, total.n, total.difference[0]) == ("total", 3, 1.0)
    assert (x.reward, x.n, x.before, x.difference) == ("x", 1, (1.0, 1.0, 1.0), (3.0, 3.0, 3.0))


# The example that is part of the project


def test_the_example_rewards_what_it_says() -> None:
    my_rewards = load_file(EXAMPLE / "my_rewards.py")
    said = ["Answer: green", "Answer: green grass", "green", "【绿色】", "答案:绿色", "绿色"]
    forms = ["Answer: {}", "Answer: {}", "Answer: {}", "【{}】", "答案:{}", "答案:{}"]
    scores = [1.0, 0.3, 0.0, 1.0, 1.0, 0.0]
    assert my_rewards.exact_format(said, forms, answer=said) == scores
    chats = [[{"role": "assistant", "content": text}] for text in said]
    assert my_rewards.exact_format(chats, forms) == scores
    assert my_rewards.correct(chats[:2], ["Green", "red"]) == [1.0, 0.0]


def test_every_row_of_the_example_can_be_answered_right() -> None:
    my_rewards = load_file(EXAMPLE / "my_rewards.py")
    rows = [
        json.loads(line) for line in (EXAMPLE / "prompts.jsonl").read_text("utf-8").splitlines()
    ]
    perfect = [row["form"].format(row["answer"]) for row in rows]
    assert my_rewards.exact_format(perfect, [row["form"] for row in rows]) == [1.0] * 60
    assert my_rewards.correct(perfect, [row["answer"] for row in rows]) == [1.0] * 60


@pytest.mark.slow
def test_the_example_runs(
    folder: Path, settings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = train_text(
        capsys,
        *("--data", str(EXAMPLE / "prompts.jsonl")),
        *("--rewards", f"{EXAMPLE / 'my_rewards.py'}:exact_format,correct:0.5"),
        *("out=run", "steps=2", *settings, "max_prompt_length=none"),
    )
    assert code == 0
    assert "on 54 prompts, 6 held out" in out
    assert len(RunFolder.open(folder / "run").read_metrics()) == 2


def test_what_a_warm_start_had_learnt_is_not_counted_as_learnt(
    folder: Path, tiny_model_folder: Path
) -> None:
    """A run that begins with an adapter is compared with that adapter, in training and later."""
    settings: dict[str, Any] = {"learning_rate": 0.3, "warmup_steps": 0, "steps": 2}
    first = train(config(folder / "first", tiny_model_folder, **settings))
    begun = {"adapter": str(first), "steps": 1, "learning_rate": 1e-9}
    second = train(config(folder / "second", tiny_model_folder, **begun))

    def answers(run: Path, side: str) -> list[str]:
        lines = (run / "answers.jsonl").read_text().splitlines()
        return [json.loads(line)[side]["answer"] for line in lines]

    # The same `adapter=` said again is no other one.
    assert train(TextTrainConfig(resume=second, adapter=first)) == second
    assert answers(first, "before") != answers(first, "after")
    for _ in range(2):
        assert answers(second, "before") == answers(first, "after") == answers(second, "after")
        evaluate(second, Evaluation(None, [], False))
