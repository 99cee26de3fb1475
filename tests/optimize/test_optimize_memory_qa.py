"""Optimisers over the gateway on a tiny model: programs, calls, proposals, table, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memograd.cli import main
from memograd.data import write_conversations_jsonl
from memograd.errors import BadInput, MemogradError
from memograd.gateway.store import TraceStore
from memograd.optimize.memory_qa import optimize
from memograd.optimize.program import MemoryQAProgram, load_program
from memograd.optimize.settings import OptimizeConfig
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.registry import train

ADVICE = "Say one letter."


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory, lives) -> Path:
    """Two lives, each with eight questions and the turns that answer them."""
    path = tmp_path_factory.mktemp("talks") / "talks.jsonl"
    write_conversations_jsonl(lives(2, 7, most=8), path)
    return path


@pytest.fixture
def given(talks: Path, tiny_model_folder: Path, tmp_path: Path) -> dict[str, object]:
    return {
        "data": talks,
        "model": str(tiny_model_folder),
        "device": "cpu",
        "seeds": [0],
        "max_eval": 3,
        "max_completion_length": 4,
        "memory": {"top_k": 1, "embedder": "minilm"},
        # A random model says nothing that an F1 would reward; BLEU-1 sees single characters.
        "rewards": "mem0_bleu1",
        "out": tmp_path / "found",
    }


def test_programs_calls_and_table(
    given: dict[str, object], talks: Path, tiny_model_folder: Path, tmp_path: Path
) -> None:
    """Two optimisers at one budget, without a proposer, beside a trained adapter."""
    run = train(
        MemoryQATrainConfig.model_validate(
            {
                **{"data": talks, "model": str(tiny_model_folder), "device": "cpu", "steps": 1},
                **{"prompts_per_step": 2, "num_generations": 2, "max_completion_length": 4},
                **{"memory": {"top_k": 1, "embedder": "minilm"}, "lora": {"r": 2}, "max_eval": 3},
                **{"rewards": "mem0_bleu1", "out": tmp_path / "run"},
            }
        )
    )
    out = optimize(OptimizeConfig(optimizer=["bootstrap", "simba"], budget=44, run=[run], **given))
    table = json.loads((out / "comparison.json").read_text())
    rows = {row["name"]: row for row in table["methods"]}
    assert list(rows) == [
        *("untrained", "bootstrap", "simba", "GRPO", "GRPO + bootstrap", "GRPO + simba")
    ]
    store = TraceStore(f"sqlite:///{out / 'traces.db'}", idle_seconds=None)
    counted = {record.metadata["purpose"]: store.calls(record.id) for record in store.rollouts()}
    for name in ("bootstrap", "simba"):
        assert 12 <= rows[name]["totals"]["calls"] == len(counted[name]) <= 44
        assert rows[name]["totals"]["proposer's calls"] == 0
        assert len(counted[f"measure {name}"]) == 3
    assert rows["GRPO"]["totals"]["GRPO's rollouts"] == 4
    assert {record.state for record in store.rollouts()} == {"finished"}
    store.close()
    # What is measured is what the file says.
    saved = json.loads((out / "programs" / "bootstrap-0.json").read_text())
    loaded = load_program(out / "programs" / "bootstrap-0.json")
    assert [dict(demo) for demo in loaded.answer.demos] == saved["answer"]["demos"]
    held_out = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    asked = [call.messages for call in counted["measure bootstrap"]]
    demos = 2 * len(saved["answer"]["demos"])
    for row, messages in zip(held_out, asked, strict=True):
        assert len(messages) == 2 + demos
        assert row["question"] in messages[-1]["content"]
        assert all(row["question"] not in one["content"] for one in messages[:-1])


def test_the_untouched_program_is_the_prompt_that_grpo_trains(
    given: dict[str, object],
    talks: Path,
    tiny_model_folder: Path,
    chat_server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its answers are, to the letter, those of the untrained model in memory-qa's own table, and
    an evaluation model judges them."""
    chat_server.answer = lambda messages: '{"reason": "It says so.", "correct": true}'
    monkeypatch.setenv("MEMOGRAD_EVALUATION_KEY", "its key")
    judge = {"model": "grader", "url": chat_server.url}
    run = train(
        MemoryQATrainConfig.model_validate(
            {
                **{"data": talks, "model": str(tiny_model_folder), "device": "cpu", "steps": 1},
                **{"prompts_per_step": 1, "num_generations": 2, "max_completion_length": 4},
                **{"memory": {"top_k": 1, "embedder": "minilm"}, "lora": {"r": 2}, "max_eval": 3},
                **{"rewards": "mem0_bleu1", "out": Path(str(given["out"])).with_name("plain")},
            }
        )
    )
    out = optimize(OptimizeConfig.model_validate({**given, "run": [run], "evaluation": judge}))
    table = json.loads((out / "comparison.json").read_text())
    for row in table["methods"]:
        assert row["metrics"]["judge strict, grader"]["mean"] == 1.0
    assert set(chat_server.keys) == {"its key"}
    ours = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    theirs = [json.loads(line) for line in (run / "answers.jsonl").read_text().splitlines()]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine["id"] == other["id"]
        assert mine["answers"]["untrained"] == [other["answers"]["retrieved memory, untrained"]]
        assert mine["answers"]["GRPO"] == [other["answers"]["retrieved memory, trained"]]


def test_saved_programs_of_all_seeds_are_one_row(given: dict[str, object], tmp_path: Path) -> None:
    """As a search names its files; one whose other seeds are not there is a row by itself."""
    files = {}
    for name in ("found-1", "found-0", "other-0", "found-7"):
        program = MemoryQAProgram()
        program.answer.signature = program.answer.signature.with_instructions(f"By {name}.")
        files[name] = tmp_path / f"{name}.json"
        program.save(str(files[name]))
    settings = {**given, "seeds": [0, 1], "max_eval": 2, "program": list(files.values())}
    out = optimize(OptimizeConfig.model_validate(settings))
    table = json.loads((out / "comparison.json").read_text())
    assert {row["name"]: row["totals"]["seeds"] for row in table["methods"]} == {
        **{"untrained": 1, "found": 2, "other-0": 1, "found-7": 1},
    }
    store = TraceStore(f"sqlite:///{out / 'traces.db'}", idle_seconds=None)
    asked = {
        record.metadata["seed"]: store.calls(record.id)[0].messages[0]["content"]
        for record in store.rollouts()
        if record.metadata["purpose"] == "measure found"
    }
    store.close()
    assert asked == {0: "By found-0.", 1: "By found-1."}


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["miprov2", "gepa", "simba"])
def test_proposals_of_any_endpoint_are_used_and_counted(
    given: dict[str, object],
    optimizer: str,
    chat_server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The endpoint is scripted: it writes each optimiser's form, and always the same advice."""

    def answer(messages: list[dict[str, str]]) -> str:
        outputs = re.findall(
            r"`(\w+)` \(", str(messages[0]["content"]).partition("output fields")[2]
        )
        said = {
            name: '{"answer": "Say one letter."}' if name == "module_advice" else ADVICE
            for name in outputs
        }
        if "JSON object" in str(messages):  # GEPA's proposer asks for it so
            return json.dumps(said)
        sections = "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in said.items())
        return f"{sections}\n\n[[ ## completed ## ]]"

    chat_server.answer = answer
    monkeypatch.setenv("MEMOGRAD_PROMPT_KEY", "the key")
    # What a random model says differs in this, so that there is better and worse.
    reward = tmp_path / "letters.py"
    reward.write_text(
        "def share(completions, **columns):\n"
        "    said = [chat[0]['content'] for chat in completions]\n"
        "    return [sum(map(str.isascii, text)) / (len(text) or 1) for text in said]\n"
    )
    out = optimize(
        OptimizeConfig.model_validate(
            {
                **given,
                "optimizer": [optimizer],
                "budget": 60,
                "rewards": f"{reward}:share",
                "prompt": {"model": "writer", "url": chat_server.url},
            }
        )
    )
    table = json.loads((out / "comparison.json").read_text())
    totals = {row["name"]: row for row in table["methods"]}[optimizer]["totals"]
    assert totals["proposer's calls"] == len(chat_server.requests) > 0
    assert set(chat_server.keys) == {"the key"}
    assert {request["model"] for request in chat_server.requests} == {"writer"}
    assert totals["calls"] <= 60 and totals["unread proposals"] == 0
    store = TraceStore(f"sqlite:///{out / 'traces.db'}", idle_seconds=None)
    (searched,) = (one for one in store.rollouts() if one.metadata["purpose"] == optimizer)
    systems = {call.messages[0]["content"] for call in store.calls(searched.id)}
    store.close()
    assert any(ADVICE in system for system in systems)


@pytest.mark.slow
def test_a_failed_call_ends_the_optimisation(given: dict[str, object], chat_server) -> None:
    """An optimiser would count it as a bad answer and go on."""
    chat_server.status = 500
    with pytest.raises(MemogradError, match="calls failed"):
        optimize(
            OptimizeConfig.model_validate(
                {
                    **given,
                    "optimizer": ["gepa"],
                    "budget": 60,
                    "prompt": {"model": "writer", "url": chat_server.url},
                }
            )
        )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"optimizer": ["gepa"]}, "gepa needs a model that writes proposals"),
        ({}, "name an optimizer, a saved program or a run"),
        ({"optimizer": ["simba"], "run": ["a", "b"]}, "2 runs for 1 seeds"),
    ],
)
def test_settings_that_do_not_fit(
    given: dict[str, object], change: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        OptimizeConfig.model_validate({**given, **change})


def test_what_is_wrong_is_said_before_there_is_a_folder(
    given: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput, match="needs at least 40 calls and 8 questions"):
        optimize(OptimizeConfig(optimizer=["bootstrap"], budget=10, **given))
    other = tmp_path / "simba.json"
    other.write_text('{"another": {}}')
    with pytest.raises(BadInput, match="is no saved program of memory-qa"):
        optimize(OptimizeConfig(program=[other], **given))
    with pytest.raises(BadInput, match="name of two"):
        optimize(OptimizeConfig(program=[other, other], **given))
    assert not Path(str(given["out"])).exists()
    with pytest.raises(SystemExit) as ended:
        main(["optimize", "memory-qa", "--optimizer", "miprov2"])
    assert ended.value.code == 2
    assert "prompt.model" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:  # an option that is given twice means both
        main(["optimize", "memory-qa", "--run", "a", "--run", "b", "--program", "c", "seeds=0"])
    assert ended.value.code == 2
    assert "2 runs for 1 seeds" in capsys.readouterr().err


@pytest.mark.slow
def test_demonstrations_found_with_the_packaged_model(tmp_path: Path) -> None:
    """What runs without a proposer, on a real model: both find demonstrations within the budget."""
    out = optimize(
        OptimizeConfig.model_validate(
            {
                **{"optimizer": ["bootstrap", "simba"], "budget": 48, "seeds": [0]},
                **{"max_train": 16, "max_eval": 4, "memory": {"top_k": 2}, "device": "cpu"},
                **{"max_completion_length": 12, "out": tmp_path / "found"},
            }
        )
    )
    table = json.loads((out / "comparison.json").read_text())
    rows = {row["name"]: row["totals"] for row in table["methods"]}
    for name in ("bootstrap", "simba"):
        assert 16 <= rows[name]["calls"] <= 48
        assert load_program(out / "programs" / f"{name}-0.json").answer.demos
