"""Agents from end to end: through the command line, stopped and resumed, and bad input."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import run

from memograd.config import known_settings
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.rollout import environment as environments
from memograd.rollout.tool_calls import ToolCall
from memograd.tasks.agent.recipe import settled
from memograd.tasks.agent.settings import AgentTrainConfig
from memograd.tasks.registry import train

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agent"

ENVIRONMENTS = '''
import random

class Count:
    """Three turns at most; earns by what is said."""

    def reset(self, number):
        self.said, self.number = [], number
        return f" Say {number}."

    def say(self, text: str) -> str:
        """Say something.

        Args:
            text: Anything.
        """
        self.said.append(text)
        return f"{random.randint(0, 9)} times"

    def get_reward(self):
        return sum(map(ord, "".join(self.said))) % 97 / 97


class Silent:
    def reset(self, **row):
        """Rewards nothing."""

    def say(self, text: str) -> str:
        """Say something.

        Args:
            text: Anything.
        """
        return text


class NoReset:
    pass


class Later(Silent):
    async def reset(self, **row):
        """Comes too late."""

    def get_reward(self):
        return 1.0


class Needy(Count):
    def reset(self, number, limit):
        """Asks for what no row has."""
'''

TEMPLATE = (
    "{# <tool_call> #}{% if tools %}{{ tools[0].function.name }}{% endif %}"
    "{% for message in messages %}<|start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with eight rows, environments and a chat template."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": "Play.", "number": number} for number in range(8)]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "envs.py").write_text(ENVIRONMENTS)
    (tmp_path / "tools.jinja").write_text(TEMPLATE)
    return tmp_path


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random byte model makes no tool calls: whatever it says is one, and most bytes end it."""
    monkeypatch.setattr(LanguageModel, "end_ids", property(lambda self: frozenset(range(60, 258))))
    monkeypatch.setattr(
        environments, "parse_tool_calls", lambda action: [ToolCall("say", {"text": action})]
    )


def config(out: Path, tiny: Path, **given: Any) -> AgentTrainConfig:
    settings: dict[str, Any] = {
        "data": "rows.jsonl", "model": str(tiny), "device": "cpu", "lora": {"r": 2},
        "prompts_per_step": 2, "num_generations": 2, "out": str(out), "steps": 4, "save_steps": 2,
        "max_completion_length": 6, "text": {"eval_fraction": 0.25},
        "episodes": {
            "environment": "envs.py:Count", "chat_template": "tools.jinja", "max_turns": 3,
        },
    }  # fmt: skip
    return AgentTrainConfig(**{**settings, **given})


@pytest.mark.slow
@pytest.mark.usefixtures("talkative")
def test_a_run_from_the_command_line(
    folder: Path, tiny_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(
        capsys,
        *("train", "agent", "--environment", "envs.py:Count", "--data", "rows.jsonl"),
        *("--model", str(tiny_model_folder), "device=cpu", "lora.r=2", "out=run", "steps=2"),
        *("prompts_per_step=2", "num_generations=2", "max_completion_length=6"),
        *("episodes.max_turns=3", "episodes.chat_template=tools.jinja", "rollout_log_steps=1"),
    )
    assert code == 0, err
    assert "reward environment (built in), weight 1\n" in out
    assert "on 7 rows, 1 held out, at most 3 turns each" in out
    path = folder / "run"
    stored = AgentTrainConfig.model_validate_json((path / "config.json").read_text())
    assert stored.episodes.environment == f"{folder}/envs.py:Count"
    assert stored.episodes.chat_template == folder / "tools.jinja"
    assert stored.rewards == "environment"
    assert RunFolder.open(path).task == "agent"
    for row in RunFolder.open(path).read_metrics():
        assert set(row["rewards"]) == {"environment"}
        assert row["sampler_gap"] < 1e-4
        assert sum(row["stop_reasons"].values()) == 4
    counts = json.loads((path / "episodes.json").read_text())
    assert set(counts) == {"before", "after"}
    measured = {row["reward"]: row for row in json.loads((path / "evaluation.json").read_text())}
    assert measured["environment"]["n"] == 1
    answer = json.loads((path / "answers.jsonl").read_text().splitlines()[0])
    assert answer["before"]["answer"].startswith("[assistant] ")
    assert "| turns mean |" in (path / "evaluation.md").read_text()
    trained_on = {name for name, _ in json.loads((path / "data.json").read_text())["scenarios"]}
    assert answer["id"] not in trained_on

    code, shown, _ = run(capsys, "rollouts", "run", "--dir", ".", "--step", "2")
    assert code == 0
    assert "environment" in shown
    # What the environment said is marked as not trained on, where a row goes on after it.
    records = (path / "rollouts" / "step-0002.jsonl").read_text()
    assert ("⟦" in shown) == ("false" in records)


@pytest.mark.usefixtures("talkative")
def test_resumed_it_equals_the_run_that_never_stopped(
    folder: Path, tiny_model_folder: Path
) -> None:
    """Stopped by an environment that breaks in the third step, then mended."""
    whole = train(config(folder / "whole", tiny_model_folder))
    good = (folder / "envs.py").read_text()
    breaking = good.replace(
        "        self.said, self.number = [], number\n",
        "        import pathlib\n"
        "        pathlib.Path('resets').open('a').write('.')\n"
        "        self.said, self.number = [], number\n"
        "        assert len(pathlib.Path('resets').read_text()) < 12, 'worn out'\n",
    )
    (folder / "envs.py").write_text(breaking)
    with pytest.raises(Exception, match=r"step 3, .* rollout 1: reset of Count .*worn out"):
        train(config(folder / "cut", tiny_model_folder))
    (folder / "envs.py").write_text(good)
    train(settled(AgentTrainConfig(resume=folder / "cut")))
    name = "final/adapter_model.safetensors"
    assert (folder / "cut" / name).read_bytes() == (whole / name).read_bytes()
    rows = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in one.read_metrics()]
        for one in (RunFolder.open(folder / "cut"), RunFolder.open(whole))
    ]
    assert rows[0] == rows[1]
    assert (folder / "cut" / "answers.jsonl").read_text() == (whole / "answers.jsonl").read_text()
    (folder / "tools.jinja").write_text(TEMPLATE + " ")
    with pytest.raises(BadInput, match="chat template is not the one of"):
        train(AgentTrainConfig(resume=folder / "cut", steps=5))


def test_the_environments_reward_is_added_once(folder: Path, tiny_model_folder: Path) -> None:
    def rewards(**given: Any) -> str:
        return settled(config(folder / "run", tiny_model_folder, **given)).rewards

    assert rewards() == "environment"
    assert rewards(rewards="length") == "environment,length"
    assert rewards(rewards="length,environment:0.5") == "length,environment:0.5"
    silent = {"environment": "envs.py:Silent"}
    assert rewards(rewards="length", episodes=silent) == "length"
    with pytest.raises(BadInput, match="Nothing rewards the agent"):
        rewards(episodes=silent)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"episodes": {}}, "needs an environment; give --environment"),
        ({"data": None}, "needs rows"),
        ({"episodes": {"environment": "gone.py:A"}}, "no environment file .*file.py:class"),
        ({"episodes": {"environment": "envs.py:Cont"}}, 'no environment class "Cont"; it has Coun'),
        ({"episodes": {"environment": "envs.py:NoReset"}}, "NoReset has no method reset"),
        ({"episodes": {"environment": "envs.py:Count,Silent"}}, "Silent has no get_reward, but"),
        ({"episodes": {"environment": "envs.py:Count,Count"}}, "names Count twice"),
        ({"episodes": {"environment": "Count"}}, "lacks a file or a class"),
        ({"episodes": {"environment": "envs.py:Later"}}, "reset of .* Later is async; make it"),
        ({"episodes": {"environment": "envs.py:Needy"}}, "Needy asks for limit, and the rows have"),
        ({"episodes": {"environment": "envs.py:Count"}}, "does not ask for tool calls"),
        (
            {
                "episodes": {
                    "environment": "envs.py:Count",
                    "chat_template": "tools.jinja",
                    "max_tokens": 5000,
                }
            },
            "max_tokens=5000 is more than the 4096 tokens",
        ),
        ({"max_prompt_length": 5}, "All 6 prompts to train on have more than 5 tokens, tools"),
        ({"rewards": "exact_match"}, "needs answer, but the rows"),
        ({"text": {"eval_data": "rows.jsonl"}}, "has the same content as .*rows.jsonl:1"),
    ],
)
def test_bad_input_is_one_sentence_and_no_run(
    folder: Path, tiny_model_folder: Path, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        train(config(folder / "run", tiny_model_folder, **given))
    assert not (folder / "run").exists()


def test_a_row_for_an_unknown_environment(folder: Path, tiny_model_folder: Path) -> None:
    both = (folder / "envs.py").read_text() + "\n\nclass Other(Count):\n    pass\n"
    (folder / "envs.py").write_text(both)
    episodes = {"environment": "envs.py:Count,Other", "chat_template": "tools.jinja"}
    with pytest.raises(BadInput, match=r"rows\.jsonl:\d: environment is None, not one of Count, O"):
        train(config(folder / "run", tiny_model_folder, episodes=episodes))


def test_the_page_has_every_setting_with_its_default() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "episodes.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `(episodes\.max_\w+)` \| (.+?) \|", page, re.MULTILINE))
    defaults = {
        name: field.default
        for name, field in known_settings(AgentTrainConfig).items()
        if name.startswith("episodes.max_")
    }
    assert listed.keys() == defaults.keys()
    assert listed["episodes.max_turns"] == str(defaults["episodes.max_turns"])
    assert {name for name, value in defaults.items() if value is None} == {
        name for name, value in listed.items() if not value.isdigit()
    }
    for target in re.findall(r"\]\(([^)#]+)", page):
        assert (EXAMPLE.parents[1] / "docs" / target).is_file(), target


@pytest.mark.slow
@pytest.mark.usefixtures("talkative")
def test_rows_of_two_environments_in_one_run(folder: Path, tiny_model_folder: Path) -> None:
    both = ENVIRONMENTS + "\n\nclass Other(Count):\n    def get_reward(self):\n        return 2.0\n"
    (folder / "envs.py").write_text(both)
    rows = [
        {"prompt": "Play.", "number": n, "environment": ("Count", "Other")[n % 2]} for n in range(4)
    ]
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    episodes = {"environment": "envs.py:Count,Other", "chat_template": "tools.jinja"}
    made = config(
        *(folder / "run", tiny_model_folder),
        **{"episodes": episodes, "text": {"eval_fraction": 0}, "steps": 1, "prompts_per_step": 4},
    )
    path = train(made)
    assert not (path / "evaluation.md").exists()
    for line in (path / "rollouts" / "step-0001.jsonl").read_text().splitlines():
        record = json.loads(line)
        earned = {rollout["rewards"]["environment"] == 2.0 for rollout in record["rollouts"]}
        assert earned == {record["columns"]["environment"] == "Other"}


@pytest.fixture
def example() -> dict[str, Any]:
    """What the example's file defines."""
    return runpy.run_path(str(EXAMPLE / "prices.py"))


def example_rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLE / name).read_text().splitlines()]


def test_in_the_example_only_what_was_looked_up_is_right(example: dict[str, Any]) -> None:
    train, held_out = example_rows("rows.jsonl"), example_rows("held_out.jsonl")
    assert not {row["thing"] for row in train} & {row["thing"] for row in held_out}
    for row in [*train, *held_out]:
        shop = example["Prices"]()
        shop.reset(row["thing"], row["price"])
        assert shop.price_of(f" {row['thing'].title()} ") == f"{row['price']} crowns"
        assert str(row["price"]) not in shop.price_of("another thing")
        said = [
            f"The {row['thing']} costs {row['price']} crowns.",
            f"The {row['thing']} costs {row['price'] + 1} crowns.",
            f"The {row['thing']} costs {row['price']} crowns, or 7.",
            f'<tool_call>{{"price": {row["price"]}}}</tool_call>',
        ]
        earned = example["right_answer"](
            [[{"role": "assistant", "content": text}] for text in said], [row["price"]] * 4
        )
        assert earned == [1.0, 0.0, 0.0, 0.0]


def test_half_of_the_examples_demonstrations_make_their_price_up(example: dict[str, Any]) -> None:
    """They teach the form of a call, and that one may do without it: the rest is left to learn."""
    held_out = {row["thing"] for row in example_rows("held_out.jsonl")}
    turns = Counter[int]()
    for row in example_rows("demonstrations.jsonl"):
        messages = row["messages"]
        turns[len(messages)] += 1
        assert not any(f"the {thing} cost" in messages[0]["content"] for thing in held_out)
        if len(messages) > 2:
            assert messages[-2]["content"] in messages[-1]["content"]
    assert turns[2] == turns[4] == example["DEMONSTRATIONS"] // 2


def test_the_files_of_the_example_are_what_its_program_writes(tmp_path: Path) -> None:
    copy = tmp_path / "prices.py"
    copy.write_text((EXAMPLE / "prices.py").read_text())
    runpy.run_path(str(copy), run_name="__main__")
    for name in ("rows.jsonl", "held_out.jsonl", "demonstrations.jsonl"):
        assert (tmp_path / name).read_text() == (EXAMPLE / name).read_text()


@pytest.mark.slow
def test_the_example_with_the_packaged_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the warm start some attempts of the first step look the price up, and so earn."""
    code, _, err = run(
        capsys,
        *("sft", "--data", str(EXAMPLE / "demonstrations.jsonl"), "learning_rate=5e-4"),
        *(f"out={tmp_path / 'warm'}", "device=cpu"),
    )
    assert code == 0, err
    code, _, err = run(
        capsys,
        *("train", "agent", "--environment", f"{EXAMPLE / 'prices.py'}:Prices"),
        *("--rewards", f"{EXAMPLE / 'prices.py'}:right_answer"),
        *("--data", str(EXAMPLE / "rows.jsonl"), "--config", str(EXAMPLE / "small.toml")),
        *(f"adapter={tmp_path / 'warm'}", f"out={tmp_path / 'run'}", "steps=1", "device=cpu"),
    )
    assert code == 0, err
    (row,) = RunFolder.open(tmp_path / "run").read_metrics()
    assert 1.0 < row["turns_mean"] < 2.0
    assert row["rows_mean"] == 1.0 and row["sampler_gap"] < 1e-3
    assert row["reward_mean"] > 0.2 and row["grad_norm"] > 0.0
    # Attempts at one question differ in what they earn, or there would be nothing to learn from.
    lines = (tmp_path / "run" / "rollouts" / "step-0001.jsonl").read_text().splitlines()
    earned = [
        {rollout["rewards"]["right_answer"] for rollout in json.loads(line)["rollouts"]}
        for line in lines
    ]
    assert {0.0, 1.0} in earned
