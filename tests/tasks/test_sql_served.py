"""The SQL agent on openai-agents, unchanged, trained through the gateway from end to end.

A random byte model writes no SQL, so what it says is read as a call of the tool with one of a few
statements, or as an answer; agent, gateway, database, rewards and training are real.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import run
from tests.quick import quick
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.gateway import local
from memograd.gateway.store import TraceStore
from memograd.grpo import RunFolder
from memograd.tasks.agent.settings import ServedConfig
from memograd.tasks.registry import train
from memograd.tasks.sql.measure import MEASURES
from memograd.tasks.sql.settings import DEFAULT_REWARDS, SqlTrainConfig
from memograd.tasks.sql.tool import TOOL
from memograd.tasks.text.settings import RowsConfig

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("agents") is None, reason="openai-agents is not installed"
)
AGENT = f"{Path(__file__).resolve().parents[2] / 'examples' / 'sql' / 'agent_openai.py'}:run"
STATEMENTS = ("SELECT med_name FROM drugs_info LIMIT 1", "SELECT gone FROM disease")


def called(text: str, name: str = TOOL) -> tuple[str, tuple[dict[str, Any], ...]]:
    number = sum(map(ord, text))
    arguments = json.dumps({"sql": STATEMENTS[number // 2 % 2]})
    function = {"name": name, "arguments": arguments}
    return "", ({"id": f"call_{number}", "type": "function", "function": function},)


@pytest.fixture
def reads_as(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says how the model's texts are read."""

    def read(how: Callable[[str], Any]) -> None:
        monkeypatch.setattr(local, "from_answer", lambda text, tools: how(text))

    return read


def config(folder: Path, model: str) -> SqlTrainConfig:
    return SqlTrainConfig(
        model=model, device="cpu", out=folder / "run", steps=1, prompts_per_step=1,
        num_generations=2, max_completion_length=4, text=RowsConfig(eval_fraction=0),
        lora=LoraConfig(r=2), served=ServedConfig(agent=AGENT, retries=0),
    )  # fmt: skip


@pytest.mark.slow  # without --agent it is run in test_sql.py
def test_ci_fast_from_the_command_line_and_measured_again(
    tmp_path: Path, model: str, reads_as: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    reads_as(lambda text: called(text) if sum(map(ord, text)) % 2 else (f"答{text}", ()))
    path = tmp_path / "run"
    code, out, err = run(
        capsys,
        *(
            "train",
            "sql",
            "--agent",
            AGENT,
            "--ci-fast",
            "--model",
            model,
            "device=cpu",
            "lora.r=2",
        ),
        *(f"out={path}", "max_completion_length=6"),
    )
    assert code == 0, err
    assert "on 168 questions about medical-sample-" in out
    assert f"2 held out, {AGENT}, on cpu" in out
    (row,) = RunFolder.open(path).read_metrics()
    assert set(row["rewards"]) == {"execution", "evidence", "valid_sql"}
    assert row["sampler_gap"] < 1e-3
    measured = json.loads((path / "sql.json").read_text())
    assert [one["measure"] for one in measured["measures"]] == list(MEASURES)
    assert {one["n"] for one in measured["measures"]} == {2}
    store = TraceStore(f"sqlite:///{path / 'traces.db'}")
    kept = store.rollouts(state="finished")
    assert len(kept) == 2 + 2 + 2  # held out, trained, held out
    calls = [call for record in kept for call in store.calls(record.id)]
    [named] = {call.agent for call in calls}  # by the first words of its system prompt
    assert named.startswith("你是医学数据库助手")
    assert all(call.prompt_ids and call.choices[0].logprobs for call in calls)
    assert any(call.messages[-1]["role"] == "tool" for call in calls)

    code, _, err = run(capsys, "evaluate", "--run", str(path))
    assert code == 0, err
    again = json.loads((path / "sql.json").read_text())
    assert again["measures"] == measured["measures"]


@pytest.mark.parametrize(
    ("how", "error"),
    quick(
        [
            (called, "MaxTurnsExceeded"),
            (lambda text: called(text, "no_such_tool"), "ModelBehaviorError"),
        ],
        (1,),
    ),
)
def test_an_agent_that_never_answers_is_over_and_earns_what_its_trace_earns(
    tmp_path: Path, model: str, reads_as: Any, how: Any, error: str
) -> None:
    reads_as(how)
    out = train(config(tmp_path, model))
    (row,) = RunFolder.open(out).read_metrics()
    assert row["stop_reasons"]["error"] == 2
    assert row["rewards"] == {"execution": 0.0, "evidence": 0.0, "valid_sql": 0.0}
    kept = TraceStore(f"sqlite:///{out / 'traces.db'}").rollouts()
    assert {record.state for record in kept} == {"finished"}
    assert all(str(record.error).startswith(error) for record in kept)


@pytest.mark.slow
def test_a_conversation_that_is_full_is_over_too(
    tmp_path: Path, model: str, reads_as: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "STATEMENTS", ("SELECT * FROM drugs_info",) * 2)
    reads_as(called)
    out = train(config(tmp_path, model))
    kept = TraceStore(f"sqlite:///{out / 'traces.db'}").rollouts()
    assert {record.state for record in kept} == {"finished"}
    assert all("tiny takes 4096" in str(record.error) for record in kept)


@pytest.mark.slow
def test_a_learned_reward_stands_beside_the_others(
    tmp_path: Path, model: str, reads_as: Any
) -> None:
    judge = tmp_path / "judge"
    AutoModelForSequenceClassification.from_pretrained(model, num_labels=1).save_pretrained(judge)
    AutoTokenizer.from_pretrained(model).save_pretrained(judge)
    reads_as(lambda text: (f"答{text}", ()))
    rewards = f'{DEFAULT_REWARDS},reward_model(path="{judge}"):0.2'
    out = train(config(tmp_path, model).model_copy(update={"rewards": rewards}))
    (row,) = RunFolder.open(out).read_metrics()
    assert set(row["rewards"]) == {"execution", "evidence", "valid_sql", "reward_model"}
    assert row["reward_mean"] == pytest.approx(0.2 * row["rewards"]["reward_model"])
    assert row["reward_mean"] != 0


def test_an_agent_that_is_not_there_is_found_before_the_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no agent file"):
        train(
            SqlTrainConfig(
                model="no/such", out=tmp_path / "run", served=ServedConfig(agent="gone.py:run")
            )
        )
    assert not (tmp_path / "run").exists()
