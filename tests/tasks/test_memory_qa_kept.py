"""memory-qa over items that rules, a head or a language model kept; found, resumed, refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from construct_cases import LetterEmbedder
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st

from memograd.config import RunSettings
from memograd.data import load_conversations_jsonl, write_conversations_jsonl
from memograd.data.record_files import as_lines
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.memory import TurnMemory
from memograd.memory.manager.trained.files import save_head
from memograd.policy.language_model import LanguageModel
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.memory_construct import recipe as memory_construct
from memograd.tasks.memory_construct.settings import ConstructTrainConfig
from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.memory_qa import keepers as memory_qa_keepers
from memograd.tasks.memory_qa import recipe as memory_qa
from memograd.tasks.memory_qa import setup as memory_qa_setup
from memograd.tasks.memory_qa.keepers import CONSTRUCT, OPERATIONS, KeptFile, trained_on
from memograd.tasks.memory_qa.measure import EVERY, TRAINED, UNTRAINED, print_examples
from memograd.tasks.memory_qa.scenarios import (
    ItemMemory,
    KeptItem,
    MemoryView,
    PromptMemory,
    memory_qa_scenarios,
)
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.memory_qa.setup import MemoryQASetup
from memograd.tasks.registry import train


@pytest.fixture(autouse=True)
def small_embedder(monkeypatch: pytest.MonkeyPatch, trigrams) -> None:
    for module in (memory_construct, memory_qa_keepers, memory_qa_setup):
        monkeypatch.setattr(module, "load_embedder", lambda name: trigrams(384, name))


@pytest.fixture
def settings(tiny_model_folder: Path, small_data: Path, tmp_path: Path) -> dict[str, Any]:
    letters = tmp_path / "letters.py"  # of what a random model says, no answer is right
    letters.write_text(
        "def letters(completions, **columns):\n"
        "    return [sum(map(ord, said[0]['content'])) % 7 / 7 for said in completions]\n"
    )
    return {
        "data": str(small_data),
        "model": str(tiny_model_folder),
        "device": "cpu",
        "steps": 2,
        "prompts_per_step": 2,
        "num_generations": 2,
        "max_completion_length": 4,
        "save_steps": 1,
        "memory": {"keep": "items", "top_k": 3, "embedder": "minilm"},
        "lora": {"r": 2},
        "eval_batch_size": 64,
        "rewards": f"{letters}:letters",
    }


def kept(run: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "items.jsonl").read_text().splitlines()]
    assert len({row["conversation"] for row in rows}) == len(rows)
    return {row["conversation"]: row for row in rows}


def numbers(run: Path) -> list[dict[str, Any]]:
    rows = RunFolder.open(run).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def shown(run: Path, settings: dict[str, Any], tmp_path: Path) -> list[list[str]]:
    """The memory lines of the prompts about the held-out conversation."""
    config = MemoryQATrainConfig(**settings)
    policy = LanguageModel.load(config.model, lora=config.lora, device="cpu")
    setup = MemoryQASetup(config, policy, run / "memory.db")
    held_out = load_conversations_jsonl(config.data)[-1]
    setup.remember([held_out])
    texts = [one.messages[-1]["content"] for one in setup.scenarios([held_out])]
    return [t.split("Memory:\n")[1].split("\n\nQuestion:")[0].splitlines() for t in texts]


def test_rules_keep_items_and_a_stopped_run_goes_on_to_the_bit(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys, lives
) -> None:
    whole = train(MemoryQATrainConfig(out=tmp_path / "whole", **settings))
    assert "items of" in capsys.readouterr().out
    assert any(row["grad_norm"] > 0 for row in numbers(whole))  # or nothing would be compared
    rows = kept(whole)
    assert set(rows) == {"life-7-0", "life-7-1", "life-7-2"}
    assert {row["keeper"] for row in rows.values()} == {"rules"}
    lines = {item["text"] for item in rows["life-7-2"]["items"]}
    for of_prompt in shown(whole, settings, tmp_path):
        assert 1 <= len(of_prompt) <= 3
        assert all(line.partition("] ")[2] in lines for line in of_prompt)

    # Stopped while the items of the second conversation are made, then in the middle of training.
    cut, real = tmp_path / "cut", memory_qa_keepers.ManagerKeeper._kept

    def breaks(self: Any, store: Any, conversation: Any) -> Any:
        if conversation.id == "life-7-1":
            raise MemogradError("out of luck")
        return real(self, store, conversation)

    with monkeypatch.context() as broken:
        broken.setattr(memory_qa_keepers.ManagerKeeper, "_kept", breaks)
        with pytest.raises(MemogradError, match="out of luck"):
            train(MemoryQATrainConfig(out=cut, **settings))
    assert set(kept(cut)) == {"life-7-0"}
    with (cut / "items.jsonl").open("a") as file:
        file.write('{"conversation": "life-7-1", "it')
    train(MemoryQATrainConfig(resume=cut, steps=1))
    with monkeypatch.context() as broken:
        broken.setattr(memory_qa_keepers.ManagerKeeper, "_kept", breaks)  # what is there is read
        train(MemoryQATrainConfig(resume=cut, steps=2))
    assert numbers(cut) == numbers(whole)
    assert kept(cut) == rows
    name = "final/adapter_model.safetensors"
    assert (cut / name).read_bytes() == (whole / name).read_bytes()

    for other in ({"keep": "turns"}, {"keep": "items", "policy": tmp_path}):
        with pytest.raises(BadInput, match=r"keeps its settings, but memory\."):
            train(MemoryQATrainConfig(resume=cut, memory=other))

    memory_qa.evaluate(whole, Evaluation(None, [], True))
    report = json.loads((whole / "evaluation.json").read_text())
    assert [entry["method"] for entry in report["reports"]] == list(EVERY)
    write_conversations_jsonl(lives(1, 99, most=4), tmp_path / "other.json")
    memory_qa.evaluate(whole, Evaluation(tmp_path / "other.json", [], False))
    assert set(kept(whole / "evaluation-other")) == {"life-99-0"}


@pytest.mark.slow
def test_a_trained_head_keeps_what_it_decides(
    tmp_path: Path, settings: dict[str, Any], make_head
) -> None:
    settings["steps"] = 1
    for name, logits in (("all", {"add": 9.0}), ("nothing", {"none": 9.0})):
        save_head(make_head("minilm", 384, **logits), tmp_path / name / "final")
        settings["memory"] = {"keep": "items", "policy": tmp_path / name, "embedder": "minilm"}
        run = train(MemoryQATrainConfig(out=tmp_path / f"{name}-run", **settings))
        row = kept(run)["life-7-2"]
        assert row["keeper"].startswith("policy:")
        assert bool(row["items"]) == (name == "all")
    assert shown(run, settings, tmp_path)[0] == ["(empty)"]
    save_head(make_head("trigram", 32), tmp_path / "other" / "final")
    settings["memory"] = {"keep": "items", "policy": tmp_path / "other"}
    with pytest.raises(BadInput, match=r"set memory\.embedder=trigram"):
        train(MemoryQATrainConfig(out=tmp_path / "refused", **settings))
    assert not (tmp_path / "refused").exists()


@pytest.mark.slow
def test_a_memory_construct_run_keeps_what_it_writes(
    tmp_path: Path,
    settings: dict[str, Any],
    tiny_model_folder: Path,
    warmed: Path,
) -> None:
    built = train(
        ConstructTrainConfig.model_validate(
            {
                "data": settings["data"],
                "adapter": warmed,
                "out": tmp_path / "construct",
                "device": "cpu",
                "steps": 1,
                "prompts_per_step": 1,
                "num_generations": 2,
                "max_completion_length": 6,
                "build": {"chunks": 2, "turns_per_chunk": 2},
            }
        )
    )
    settings |= {"steps": 1, "memory": {"keep": "items", "policy": built}}
    run = train(MemoryQATrainConfig(out=tmp_path / "run", **settings))
    row = kept(run)["life-7-2"]
    assert row["keeper"] == "construct/final"
    assert row["items"] and all("time" in item for item in row["items"])
    stored = json.loads((run / "config.json").read_text())["memory"]
    assert stored["policy"] == str(built.resolve())

    # It was trained on life-7-0 and life-7-1, and held life-7-2 out.
    with pytest.raises(BadInput, match="was trained on life-7-0"):
        swapped = {"train": ["life-7-2"], "eval": ["life-7-0"]}
        train(MemoryQATrainConfig(out=tmp_path / "leaks", **settings, **swapped))
    assert not (tmp_path / "leaks").exists()
    settings["memory"] = {"keep": "items", "policy": run}
    with pytest.raises(BadInput, match="run of memory-qa, which builds no memory"):
        train(MemoryQATrainConfig(out=tmp_path / "wrong", **settings))


@pytest.mark.parametrize(
    "task, settings_of",
    [
        (OPERATIONS, lambda data: OperationsConfig(data=[data])),
        (CONSTRUCT, lambda data: ConstructTrainConfig(data=data)),
    ],
)
def test_what_a_policy_was_trained_on_is_known_by_its_words_too(
    task: str, settings_of: Callable[[Path], RunSettings], tmp_path: Path, lives
) -> None:
    seen, held_out = lives(2, 7)
    write_conversations_jsonl([seen, held_out], tmp_path / "lives.jsonl")
    run = RunFolder.create(
        tmp_path / "run", settings_of(tmp_path / "lives.jsonl").model_dump_json(), task=task
    )
    [stranger] = lives(1, 99)
    asked = [replace(seen, id="another name"), stranger]
    assert trained_on(run.path, asked) == ["another name"]
    (tmp_path / "lives.jsonl").unlink()
    assert trained_on(run.path, asked) is None


def test_what_does_not_fit_is_refused(tmp_path: Path, settings: dict[str, Any], lives) -> None:
    settings["memory"] = {"keep": "items", "policy": tmp_path / "nowhere"}
    with pytest.raises(BadInput, match="no trained head"):
        train(MemoryQATrainConfig(out=tmp_path / "run", **settings))
    with pytest.raises(ValueError, match=r"set memory\.keep=items too"):
        MemoryQATrainConfig.model_validate({"memory": {"policy": "somewhere"}})
    first, second = lives(2, 1)
    path = tmp_path / "items.jsonl"
    row = {"conversation": first.id, "turns": "other", "keeper": "rules", "items": []}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(BadInput, match="another conversation"):
        KeptFile(path).missing([second, first])


@pytest.mark.parametrize("line", ["[1]", "5", '{"conversation": "a"}', "{"])
def test_a_damaged_file_of_items_is_one_sentence(line: str, tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(
        BadInput, match=r"Line 1 of the items of .*items.jsonl is damaged: remove it"
    ):
        KeptFile(path)


MAY = datetime(2023, 5, 7, 18)
times = st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1))
items = st.builds(KeptItem, st.text(st.characters(exclude_categories=["Cs"]), min_size=1), times)


def test_the_nearest_are_shown_in_the_order_in_which_they_were_learnt() -> None:
    known = [
        KeptItem("Tom has a dog called Ziggy.", MAY),
        KeptItem("Ann plays chess."),
        KeptItem("The dog Ziggy eats fish."),
    ]
    memory = ItemMemory(known, LetterEmbedder())
    [found] = memory.search_many(["dog Ziggy"], top_k=2, token_budget=99, count_tokens=len_words)
    assert [item.render() for item in found] == [
        "[7 May 2023] Tom has a dog called Ziggy.",
        "The dog Ziggy eats fish.",
    ]
    assert ItemMemory([], LetterEmbedder()).search_many(
        ["dog"], top_k=2, token_budget=99, count_tokens=len_words
    ) == [[]]


@tried(deadline=None, max_examples=50)
@given(st.lists(items, max_size=8), st.text(max_size=20), st.integers(1, 5), st.integers(0, 200))
def test_number_and_budget_are_kept_and_a_line_is_one_line(
    known: list[KeptItem], query: str, top_k: int, budget: int
) -> None:
    memory = ItemMemory(known, LetterEmbedder())
    query = query.encode("utf-8", "ignore").decode()
    [found] = memory.search_many([query], top_k=top_k, token_budget=budget, count_tokens=len)
    assert len(found) <= top_k
    assert sum(len(item.render() + "\n") for item in found) <= budget
    places = [next(i for i, one in enumerate(known) if one is item) for item in found]
    assert places == sorted(places)
    assert all(len(item.render().splitlines()) <= 1 for item in known)
    assert [KeptItem.from_json(item.to_json()) for item in known] == known


def test_a_question_is_shown_items_and_the_baselines_show_turns(tmp_path, lives) -> None:
    [conversation] = lives(1, 5)
    kept = ItemMemory([KeptItem("某人喜欢下棋。", MAY)], LetterEmbedder())
    with TurnMemory.open(tmp_path / "memory.db", LetterEmbedder()) as turns:
        turns.add_turns(conversation.id, conversation.turns)
        shown = {
            view: memory_qa_scenarios(
                conversation, PromptMemory(turns, 2, 1000, len_words, kept), view
            )[0].messages[-1]["content"]
            for view in MemoryView
        }
    assert "Memory:\n[7 May 2023] 某人喜欢下棋。\n\nQuestion" in shown[MemoryView.RETRIEVED]
    assert conversation.turns[-1].render() in shown[MemoryView.LAST]
    assert "(empty)" in shown[MemoryView.NONE]


def len_words(text: str) -> int:
    return len(text.split())


def test_examples_are_shown_whole_where_an_answer_has_a_sign_that_ends_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {UNTRAINED: "no\u2028idea", TRAINED: "Porto"}
    answers = [{"id": "q", "question": "Where?", "gold": "Porto", "answers": said}]
    (tmp_path / "answers.jsonl").write_text(as_lines(answers), encoding="utf-8")
    print_examples(tmp_path)
    assert "the first 1 questions" in capsys.readouterr().out
