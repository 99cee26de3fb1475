"""Agents of the user's own, trained through the gateway: run folder, resumed, measured again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import run

from memograd.errors import BadInput, MemogradError
from memograd.gateway.store import TraceStore
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw
from memograd.tasks.agent.served import Serving, settled
from memograd.tasks.agent.settings import ServedTrainConfig
from memograd.tasks.registry import train

AGENT = '''
from openai import AsyncOpenAI


async def run(task, base_url, api_key):
    """Writes, lets a critic look, and writes again; worth more the more letters it has."""
    async with AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0) as client:

        async def say(name, messages):
            answer = await client.chat.completions.create(
                model="any", messages=messages, extra_headers={"X-Agent-Name": name}
            )
            return answer.choices[0].message.content

        chat = [{"role": "user", "content": task["prompt"]}]
        first = await say("writer", chat)
        await say("critic", [{"role": "user", "content": "查 " + task["prompt"]}])
        chat += [{"role": "assistant", "content": first}, {"role": "user", "content": "再来"}]
        last = await say("writer", chat)
    return sum(letter.isalpha() for letter in last) / 10


class MaxTurnsExceeded(Exception):
    pass


async def answers(task, base_url, api_key):
    """Returns its answer; a conversation of an even number runs into the framework's limit."""
    async with AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0) as client:
        asked = [{"role": "user", "content": task["prompt"]}]
        answer = await client.chat.completions.create(model="any", messages=asked)
    if task["number"] % 2 == 0:
        raise MaxTurnsExceeded("too many turns")
    return answer.choices[0].message.content


async def breaks(task, base_url, api_key):
    await answers({**task, "number": 1}, base_url, api_key)
    raise KeyError("a bug of the agent's own")


async def says_nothing(task, base_url, api_key):
    return 1.0
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_agent.py").write_text(AGENT)
    lines = [{"prompt": f"写 {number}", "number": number} for number in range(8)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def config(folder: Path, model: Path, agent: str = "run", **given: Any) -> ServedTrainConfig:
    settings: dict[str, Any] = {
        "model": str(model), "device": "cpu", "lora": {"r": 2}, "out": folder / "run", "steps": 2,
        "data": folder / "rows.jsonl", "prompts_per_step": 2, "num_generations": 3,
        "max_completion_length": 5, "save_steps": 1, "text": {"eval_fraction": 0.25},
        "learning_rate": 1e-2,
    }  # fmt: skip
    served = {"agent": f"{folder / 'my_agent.py'}:{agent}", **given.pop("served", {})}
    return ServedTrainConfig(**{**settings, **given, "served": served})


@pytest.mark.slow
def test_from_the_command_line_only_the_writer_is_trained(
    folder: Path, tiny_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "run"
    code, shown, err = run(
        capsys,
        *("train", "served-agent", "--agent", f"{folder / 'my_agent.py'}:run"),
        *("--data", str(folder / "rows.jsonl"), "--model", str(tiny_model_folder), "device=cpu"),
        *(f"out={out}", "lora.r=2", "steps=1", "prompts_per_step=2", "num_generations=3"),
        *("max_completion_length=5", "text.eval_fraction=0.25", "served.optimize_agents=writer"),
    )
    assert code == 0, err
    assert "as writer of " in shown
    assert "on 6 rows, 2 held out" in shown
    (row,) = RunFolder.open(out).read_metrics()
    assert set(row["rewards"]) == {"environment"}
    assert (row["rows_mean"], row["turns_mean"]) == (1.0, 2.0)  # the critic has no part in it
    assert row["sampler_gap"] < 1e-3
    store = TraceStore(f"sqlite:///{out / 'traces.db'}")
    kept = store.rollouts(state="rewarded")
    assert len(kept) == 2 + 6 + 2  # held out, trained, held out
    for record in kept:
        calls = store.calls(record.id)
        assert [call.agent for call in calls] == ["writer", "critic", "writer"]
        greedy = str(record.metadata["name"]).startswith("evaluation")
        assert {call.sampling["temperature"] for call in calls} == {0.0 if greedy else 0.8}
    measured = {name: (out / name).read_text() for name in ("evaluation.json", "answers.jsonl")}

    code, _, err = run(capsys, "evaluate", "--run", str(out))
    assert code == 0, err
    assert {name: (out / name).read_text() for name in measured} == measured


@pytest.mark.slow
def test_resumed_it_equals_the_run_that_never_stopped(
    folder: Path, tiny_model_folder: Path
) -> None:
    alone = {"served": {"concurrency": 1}, "text": {"eval_fraction": 0}}
    whole = train(config(folder, tiny_model_folder, out=folder / "whole", **alone))
    train(config(folder, tiny_model_folder, out=folder / "cut", steps=1, **alone))
    train(ServedTrainConfig(resume=folder / "cut", steps=2))
    name = "final/adapter_model.safetensors"
    assert (folder / "cut" / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.slow
def test_rewards_that_read_the_trace_need_none_of_the_agents_own(
    folder: Path, tiny_model_folder: Path
) -> None:
    out = train(
        config(folder, tiny_model_folder, "answers", rewards="length(low=1, high=3)", steps=1)
    )
    store = TraceStore(f"sqlite:///{out / 'traces.db'}")
    finished = store.rollouts()
    assert {record.state for record in finished} == {"finished"}
    cut_short = [record for record in finished if record.error]
    assert {record.error for record in cut_short} == {"MaxTurnsExceeded: too many turns"}
    assert {record.metadata["task"]["number"] % 2 for record in cut_short} == {0}
    (row,) = RunFolder.open(out).read_metrics()
    trained = [r for r in cut_short if str(r.metadata["name"]).startswith("step")]
    assert row["stop_reasons"]["error"] == len(trained)


@pytest.mark.parametrize(
    ("agent", "rewards", "said"),
    [
        ("breaks", "length(low=1, high=3)", "the agent raised KeyError"),
        ("answers", "environment", "raised MaxTurnsExceeded|which is no finite number"),
        ("says_nothing", "length(low=1, high=3)", "the agent made no call"),
        ("says_nothing", "environment", "has no call to train on"),
    ],
)
def test_an_attempt_that_failed_ends_the_run_with_its_name(
    folder: Path, tiny_model_folder: Path, agent: str, rewards: str, said: str
) -> None:
    with pytest.raises(MemogradError, match=said) as error:
        train(config(folder, tiny_model_folder, agent, rewards=rewards, served={"retries": 0}))
    assert "evaluation rows:" in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"served": {"agent": None}}, "There is no agent to train; give --agent"),
        ({"served": {"agent": "gone.py:run"}}, "There is no agent file"),
        ({"data": None}, "An agent needs rows"),
        ({"shard": "fsdp2"}, "leave shard=off"),
        ({"rewards": "exact_match"}, "Reward exact_match needs answer"),
        ({"served": {"store": "mysql://x/y"}}, "store's URL"),
    ],
)
def test_bad_input_is_one_sentence(
    folder: Path, tiny_model_folder: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        train(config(folder, tiny_model_folder, **given))
    assert not (folder / "run").exists()


def test_nothing_is_drawn_before_the_gateway_is_up(folder: Path, tiny_model_folder: Path) -> None:
    serving = Serving(settled(config(folder, tiny_model_folder)))
    with pytest.raises(MemogradError, match="The gateway is not up"):
        serving([], Draw(1))
