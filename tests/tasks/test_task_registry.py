"""The list of tasks: what all of them keep to, and what a broken one may not spoil."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from memograd.cli.runs import _settings_of
from memograd.config import RunSettings, Settings, TrainConfig, known_settings, load_settings
from memograd.config.load import _CALLED_ELSEWHERE, stored_settings
from memograd.errors import BadInput
from memograd.evaluation.run_summaries import changed_settings
from memograd.grpo import RunFolder
from memograd.tasks import registry
from memograd.tasks.base.recipe import Evaluation, located
from memograd.tasks.evaluate import evaluate
from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.registry import TASKS, Task, task_of_settings, tasks_that_read
from memograd.tasks.sql.settings import SqlTrainConfig
from memograd.tasks.text.settings import TextTrainConfig

ONCE_SHARED = {
    "train": [],
    "eval": [],
    "memory": {"top_k": 3, "token_budget": 20000, "embedder": "minilm", "keep": "turns"},
    "text": {"eval_data": None, "eval_fraction": 0.2, "string_prompts": "chat"},
    "episodes": {"environment": "memograd.tasks.sql.tool:SqlEnvironment", "max_turns": 4},
    "sql": {"database": None, "max_eval": 7},
    "served": {"agent": None, "concurrency": 8},
    "build": {"credit": "local", "chunks": 3},
    "rewards": "exact_match",
    "steps": 9,
}
"""The settings of a run as they were written while all tasks had one list of them."""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Tasks of other packages, name -> where; filled by the test."""
    found: dict[str, str] = {}

    def entry_points(*, group: str) -> list[EntryPoint]:
        return [EntryPoint(name, where, group) for name, where in found.items()]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    return found


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> None:
    made = ModuleType(name)
    made.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, made)


def test_every_task_says_what_it_is() -> None:
    for name, task in TASKS.items():
        assert task.name == name
        assert task.summary.endswith(".")
        known = known_settings(task.settings)
        assert {option.key for option in task.options} <= known.keys()
        for _, given in task.presets.values():
            load_settings(task.settings, None, given)
        shown = [key for keys in task.settings.groups.values() for key in keys]
        assert len(set(shown)) == len(shown)
        assert set(shown) <= set(task.settings.model_fields)
        assert task_of_settings(task.settings()).name == name


def test_looking_at_tasks_loads_no_torch() -> None:
    code = (
        "import sys; from memograd.tasks.registry import TASKS;"
        "print(len([task.settings() for task in TASKS.values()]), 'torch' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == [str(len(TASKS)), "False"]


def test_a_foreign_setting_is_refused_with_the_right_one() -> None:
    with pytest.raises(BadInput, match=r"policy in .* of memory-ops, .*did you mean memory\.pol"):
        load_settings(MemoryQATrainConfig, None, ["policy=x"], read_elsewhere=tasks_that_read)
    with pytest.raises(BadInput, match=r"sql\.database .* of sql, which .*: leave it out"):
        load_settings(TextTrainConfig, None, ["sql.database=x"], read_elsewhere=tasks_that_read)
    with pytest.raises(BadInput, match=r"Unknown key 'stepz' .*did you mean steps"):
        load_settings(TextTrainConfig, None, ["stepz=1"], read_elsewhere=tasks_that_read)


@pytest.mark.parametrize(
    ("kind", "key", "meant"),
    [
        (TextTrainConfig, "max_steps", "steps"),
        (TextTrainConfig, "output_dir", "out"),
        (TextTrainConfig, "per_device_train_batch_size", "prompts_per_step"),
        (TextTrainConfig, "lora_r", "lora.r"),
        (OperationsConfig, "adapter", "policy"),
    ],
)
def test_what_others_call_a_setting_is_answered_with_ours(
    kind: type[Settings], key: str, meant: str
) -> None:
    with pytest.raises(BadInput, match=rf"{key}.* did you mean {re.escape(meant)}\?$"):
        load_settings(kind, None, [f"{key}=1"], read_elsewhere=tasks_that_read)


def test_every_name_that_others_use_means_a_setting_of_some_task() -> None:
    known = {key for task in TASKS.values() for key in known_settings(task.settings)}
    assert all(known & set(ours) for ours in _CALLED_ELSEWHERE.values())


def test_a_key_that_nobody_knows_is_answered_with_where_the_keys_are() -> None:
    with pytest.raises(BadInput) as refused:
        load_settings(TextTrainConfig, None, ["qqqq=1"], read_elsewhere=tasks_that_read)
    assert re.search(r"'qqqq'.*: --help lists the \d+ that", str(refused.value))


def test_what_is_hardly_alike_is_not_meant() -> None:
    with pytest.raises(BadInput, match=r"'served\.x' .*: --help lists"):
        load_settings(TextTrainConfig, None, ["served.x=1"])


def test_a_foreign_section_of_a_file_is_refused_even_if_it_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[lora]\n[sql]\n")
    with pytest.raises(BadInput, match=r"sql in the file .* of sql, which this task does not"):
        load_settings(TextTrainConfig, file, [], read_elsewhere=tasks_that_read)
    file.write_text("[lora]\n")
    assert load_settings(TextTrainConfig, file, []) == TextTrainConfig()


def test_runs_of_the_time_of_one_list_are_read_as_their_task() -> None:
    text = json.dumps(ONCE_SHARED)
    of_text = stored_settings(text, TextTrainConfig)
    assert (of_text.text.eval_fraction, of_text.text.string_prompts) == (0.2, "chat")
    assert (of_text.rewards, of_text.steps) == ("exact_match", 9)
    of_qa = stored_settings(text, MemoryQATrainConfig)
    assert of_qa.memory.top_k == 3
    of_sql = stored_settings(text, SqlTrainConfig)
    assert (of_sql.sql.max_eval, of_sql.text.eval_fraction) == (7, 0.2)
    with pytest.raises(ValueError, match="flux"):
        stored_settings(json.dumps({**ONCE_SHARED, "flux": 1}), TextTrainConfig)


def test_what_differs_is_told_against_the_defaults_of_the_task(tmp_path: Path) -> None:
    old = RunFolder.create(tmp_path / "old", json.dumps(ONCE_SHARED), task="text")
    assert changed_settings(old, _settings_of("text")) == {
        "text.eval_fraction": 0.2,
        "text.string_prompts": "chat",
        "rewards": "exact_match",
        "steps": 9,
    }
    ops = OperationsConfig(logs=5).model_dump_json()
    made = RunFolder.create(tmp_path / "ops", ops, task="memory-ops")
    assert changed_settings(made, _settings_of("memory-ops")) == {"logs": 5}


def test_a_broken_package_spoils_no_other_task(installed: dict[str, str]) -> None:
    installed["broken"] = "memograd_broken_package:TASK"
    assert list(TASKS)[-1] == "broken"
    with pytest.raises(BadInput, match=r"The task broken .* does not load"):
        TASKS["broken"]
    assert tasks_that_read("sql.database") == ["sql"]
    with pytest.raises(BadInput, match="No task is trained by TrainConfig"):
        task_of_settings(TrainConfig())


def test_a_task_that_shares_our_settings_is_trained_as_itself(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    mine = Task("mine", "Mine.", TextTrainConfig, "my_recipe")
    module(monkeypatch, "my_definition", TASK=mine)
    module(monkeypatch, "my_recipe", RECIPE="the recipe")
    monkeypatch.setattr(
        "memograd.tasks.base.life.train_task",
        lambda name, recipe, settings: asked.append(f"{name} by {recipe}"),
    )
    installed["mine"] = "my_definition:TASK"
    TASKS["mine"].train(TextTrainConfig())
    assert asked == ["mine by the recipe"]
    assert task_of_settings(TextTrainConfig()).name == "text"


def test_a_recipe_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Task("lost", "Lost.", RunSettings, "my_lost.recipe")
    with pytest.raises(BadInput, match=r"my_lost\.recipe, but there is no module my_lost"):
        lost.load()
    module(monkeypatch, "my_empty")
    with pytest.raises(BadInput, match="my_empty, which defines no RECIPE"):
        Task("empty", "Empty.", RunSettings, "my_empty").load()


def test_a_run_of_a_task_that_nobody_has_is_not_measured_as_another(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", TrainConfig().model_dump_json(), task="gone")
    with pytest.raises(BadInput, match="run of gone, which no installed package brings"):
        evaluate(run.path, Evaluation())


def test_settings_fit_any_folder_whatever_section_names_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run goes on from another folder than the one it began in; a name is no file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    given = {
        **{"data": "q.jsonl", "model": "model", "out": "run", "text": {"eval_data": "e.jsonl"}},
        **{"rewards": "mine.py:good,exact_match", "sql": {"database": "db.sqlite"}},
        **{"served": {"agent": "team.py:run"}, "episodes": {"chat_template": "t.jinja"}},
    }
    found = located(SqlTrainConfig.model_validate(given))
    assert (found.data, found.text.eval_data) == (tmp_path / "q.jsonl", tmp_path / "e.jsonl")
    assert found.sql.database == tmp_path / "db.sqlite"
    assert found.episodes.chat_template == tmp_path / "t.jinja"
    assert found.rewards == f"{tmp_path / 'mine.py'}:good,exact_match"
    assert (found.model, found.out) == (str(tmp_path / "model"), Path("run"))
    assert found.served.agent == f"{tmp_path / 'team.py'}:run"
    assert found.model_fields_set == set(given)
    kept = SqlTrainConfig.model_validate({"served": {"agent": "exec:python a.py"}})
    assert located(kept) is kept
    operations = located(OperationsConfig(data=[Path("a.jsonl")], policy=Path("runs/x/final")))
    assert operations.data == [tmp_path / "a.jsonl"]
    assert operations.policy == tmp_path / "runs/x/final"


SETTINGS = r"^\| (`\w+`(?:, `\w+`)*) \| `([\w.]+)` \|$"
MODULE = r"^`my_task/\w+\.py`:\n\n```python\n(.+?)^```"
PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")


def test_the_page_lists_every_task_as_the_registry_does() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| .+? \| \[([a-z-]+\.md)\]", PAGE, re.MULTILINE)
    assert [(name, summary) for name, summary, _ in listed] == [
        (name, task.summary) for name, task in TASKS.items()
    ]
    for _, _, page in listed:
        assert (Path(__file__).parents[2] / "docs" / page).is_file()
    for names, where in re.findall(SETTINGS, PAGE, re.MULTILINE):
        for name in names.split(", "):
            assert task_of_settings(getattr(import_module(where), name.strip("`"))())


def test_the_task_of_the_page_is_trained_measured_and_resumed(
    installed: dict[str, str],
    tiny_model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    definition, recipe = re.findall(MODULE, PAGE, re.M | re.S)
    for name, source in (("my_task", ""), ("definition", definition), ("recipe", recipe)):
        where = name if name == "my_task" else f"my_task.{name}"
        made = ModuleType(where)
        monkeypatch.setitem(sys.modules, where, made)
        exec(compile(source, where, "exec"), made.__dict__)
    installed["letter"] = "my_task.definition:TASK"
    task = TASKS["letter"]
    settings = ["out=" + str(tmp_path / "run"), f"model={tiny_model_folder}", "device=cpu"]
    settings += ["steps=1", "prompts_per_step=2", "num_generations=2", "max_completion_length=3"]
    run = task.train(load_settings(task.settings, None, [*settings, "letter=e", "lora.r=2"]))
    task.train(load_settings(task.settings, None, [f"resume={run}", "steps=2"]))
    assert RunFolder.open(run).task == "letter"
    assert set(json.loads((run / "evaluation.json").read_text())) == {"before", "after"}
    evaluate(run, Evaluation())
    with pytest.raises(BadInput, match="run of letter, which takes no --data"):
        evaluate(run, Evaluation(data=tmp_path / "rows.jsonl"))
