"""The reward of single operations: asked about alone; runs, resuming and evaluation know it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from memograd.cli import main
from memograd.data.lifelog import LifelogSettings, generate_lifelogs, read_lifelogs
from memograd.errors import BadInput, Stopped
from memograd.memory.manager.trained.files import load_head
from memograd.memory.manager.trained.observation import ADD, NONE, SLOTS, operation_of
from memograd.memory.records.operations import OpKind
from memograd.rewards.compose import RewardError
from memograd.tasks.memory_ops.baselines.deciders import ByHead
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.evaluate import evaluate_run
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs
from memograd.tasks.memory_ops.recipe import train
from memograd.tasks.memory_ops.rewards import RetrievedFact, opportunity_cost
from memograd.tasks.memory_ops.settings import OperationsConfig, OperationsEvaluation
from memograd.tasks.memory_ops.walk import Walk

OWN = """
def numbers(action, new_fact, retrieved_facts):
    wanted = "ADD" if any(c.isdigit() for c in new_fact) else "NONE"
    return 1.0 if action == wanted else 0.0

def no_numbers(action, new_fact, retrieved_facts):
    wanted = "NONE" if any(c.isdigit() for c in new_fact) else "ADD"
    return 1.0 if action == wanted else 0.0

def two(action, new_fact): return 1
def text(action, new_fact, retrieved_facts): return "much"
def nan(action, new_fact, retrieved_facts): return float("nan")
def fails(action, new_fact, retrieved_facts): return 1 / 0
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "my_rewards.py"
    path.write_text(OWN)
    return path


@pytest.fixture
def settings(log_files: tuple[Path, Path], tmp_path: Path) -> OperationsConfig:
    return OperationsConfig(
        data=[log_files[0]],
        eval_data=[log_files[1]],
        out=tmp_path / "run",
        embedder="trigram",
        steps=14,
        logs_per_step=2,
        learning_rate=1e-2,
        save_steps=4,
        width=16,
        layers=1,
        heads=2,
    )


def with_reward(settings: OperationsConfig, reward: str, **more: object) -> OperationsConfig:
    return settings.model_copy(update={"reward": reward, **more})


def rewarded(run: Path, logs: Path, embedder, name: str) -> float:
    """How often the head of a run chooses what the reward of that name prefers, on unseen logs."""
    right = []
    for log in embed_logs(read_lifelogs(logs), embedder):
        walk, head = Walk(log, AnswerStandard(), asks=False), ByHead(load_head(run))
        while not walk.over:
            action = head.decide(walk)
            fact = walk.point.fact
            if not fact.retracts:
                has = any(letter.isdigit() for letter in fact.text)
                wanted = has if name == "numbers" else not has
                right.append(action == (0 if wanted else 1))
            walk.take(action)
    return float(np.mean(right))


@pytest.mark.slow
def test_the_policy_moves_to_what_the_reward_prefers(
    settings: OperationsConfig, log_files, own: Path, trigrams, tmp_path: Path
) -> None:
    embedder = trigrams(dimension=64)
    for name in ("numbers", "no_numbers"):
        config = with_reward(settings, f"{own}:{name}", out=tmp_path / name)
        run = train(config, embedder=embedder)
        assert rewarded(run, log_files[1], embedder, name) > 0.9
        table = json.loads((run / "methods-all.json").read_text())
        earned = {one["name"]: one["totals"]["reward"] for one in table["methods"]}
        assert earned["trained head"] > 0.85
        assert earned["trained head"] > earned["keep everything (recent first)"]
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        assert lines[-1]["reward_mean"] > lines[0]["reward_mean"] + 0.2


def test_opportunity_cost_by_name(settings: OperationsConfig, trigrams) -> None:
    """It pays for ADD, so a policy that learns from it writes nearly everything down."""
    config = with_reward(settings, "opportunity_cost", steps=6)
    run = train(config, embedder=trigrams(dimension=64))
    assert json.loads((run / "config.json").read_text())["reward"] == "opportunity_cost"
    table = json.loads((run / "methods-all.json").read_text())
    earned = {one["name"]: one["totals"]["reward"] for one in table["methods"]}
    assert earned["trained head"] >= earned["rules"]


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_other_algorithms_take_it_too(
    settings: OperationsConfig, own: Path, trigrams, stopped_in_step, algorithm: str
) -> None:
    config = with_reward(settings, f"{own}:numbers", algorithm=algorithm)
    with stopped_in_step(1), pytest.raises(Stopped):
        train(config, embedder=trigrams(dimension=64))
    [line] = map(json.loads, (config.out / "metrics.jsonl").read_text().splitlines())
    assert 0 <= line["reward_mean"] <= 1


def test_it_goes_on_with_the_same_code_only(
    settings: OperationsConfig, own: Path, trigrams, stopped_in_step
) -> None:
    embedder = trigrams(dimension=64)
    config = with_reward(settings, f"{own}:numbers", steps=2, save_steps=1)
    with stopped_in_step(2), pytest.raises(Stopped):
        train(config, embedder=embedder)
    own.write_text(OWN + "\n# another idea\n")
    with pytest.raises(BadInput, match="file of the reward changed"):
        train(OperationsConfig(resume=config.out), embedder=embedder)


@pytest.mark.slow
def test_resumed_to_the_bit_with_the_same_code_only_and_measured(
    settings: OperationsConfig, own: Path, trigrams, stopped_in_step, tmp_path: Path, monkeypatch
) -> None:
    embedder = trigrams(dimension=64)
    config = with_reward(settings, f"{own}:numbers", steps=3, save_steps=1)
    whole = train(config, embedder=embedder)

    broken = config.model_copy(update={"out": tmp_path / "broken"})
    with stopped_in_step(2), pytest.raises(Stopped):
        train(broken, embedder=embedder)
    again = OperationsConfig(resume=tmp_path / "broken")
    own.write_text(OWN + "\n# another idea\n")
    with pytest.raises(BadInput, match="file of the reward changed"):
        train(again, embedder=embedder)
    own.write_text(OWN)
    monkeypatch.chdir(own.parent)
    relative = OperationsConfig(resume=tmp_path / "broken", reward="my_rewards.py:numbers")
    resumed = train(relative, embedder=embedder)
    assert load_head(whole).version == load_head(resumed).version
    with pytest.raises(BadInput, match="keeps its settings, but reward"):
        train(OperationsConfig(resume=whole, reward="opportunity_cost"), embedder=embedder)

    # The evaluation measures it, and says when the file is gone.
    options = OperationsEvaluation(out=tmp_path / "tables", budgets=[1.0], limit_logs=1)
    folder = evaluate_run(whole, options, embedder=embedder)
    table = json.loads((folder / "methods-all.json").read_text())
    assert all(0 <= one["totals"]["reward"] <= 1 for one in table["methods"])
    assert "| reward |" in (folder / "evaluation.md").read_text()
    own.unlink()
    with pytest.raises(BadInput, match=r"no reward file .*my_rewards\.py"):
        evaluate_run(whole, options, embedder=embedder)


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        ("delta", 'no operation reward "delta"; use delta_qa, opportunity_cost, or a file'),
        ("none.py", "There is no reward file"),
        ("my_rewards.py", 'has no reward function "calculate_reward"'),
        ("my_rewards.py:other", 'has no reward function "other"'),
        ("my_rewards.py:two", "two in .*takes .*which does not fit"),
    ],
)
def test_what_cannot_be_loaded_is_one_sentence_and_leaves_nothing(
    settings: OperationsConfig, own: Path, monkeypatch, capsys, reward: str, said: str
) -> None:
    monkeypatch.chdir(own.parent)
    arguments = ["train", "memory-ops", f"data={settings.data[0]}", "out=run", f"reward={reward}"]
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert re.search(said, error), error
    assert len(error.splitlines()) == 1
    assert not (own.parent / "run").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("text", "returned 'much' for .* not a finite number"),
        ("nan", "returned nan for .* not a finite number"),
        ("fails", r"raised ZeroDivisionError: .*my_rewards\.py line \d+"),
    ],
)
def test_what_is_no_number_stops_the_run(
    settings: OperationsConfig, own: Path, trigrams, name: str, said: str
) -> None:
    with pytest.raises(RewardError, match=said):
        train(with_reward(settings, f"{own}:{name}"), embedder=trigrams(dimension=64))


@pytest.mark.parametrize(
    "more",
    [{"algorithm": "supervised"}, {"credit": "trajectory"}, {"credit": "mem_alpha_original"}],
)
def test_what_would_ignore_it_is_refused(more: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="leave one of them out"):
        OperationsConfig(reward="opportunity_cost", **more)  # type: ignore[arg-type]


def test_kinds_of_operations_are_texts_to_the_function() -> None:
    assert OpKind.ADD == "ADD" and {"ADD": 1}[OpKind.ADD] == 1


@pytest.fixture(scope="module", params=["en", "zh"])
def log(request: pytest.FixtureRequest, trigrams) -> EmbeddedLog:
    settings = LifelogSettings(
        language=request.param, sessions=4, statements_per_session=6, forgets=0.2
    )
    [embedded] = embed_logs(generate_lifelogs(1, 7, settings), trigrams(dimension=64))
    return embedded


def test_every_action_earns_what_the_function_says_of_it(log: EmbeddedLog) -> None:
    asked: list[tuple[OpKind, str, str | None]] = []

    def recorded(action, new_fact, retrieved_facts):
        [target] = [fact.id for fact in retrieved_facts if fact.is_target] or [None]
        asked.append((action, new_fact, target))
        return opportunity_cost(action, new_fact, retrieved_facts)

    walk = Walk(log, AnswerStandard(), asks=False, reward=recorded)
    seen = set()
    while not walk.over:
        point = walk.point
        asked.clear()
        rewards_A = walk.rewards()
        allowed = np.flatnonzero(point.observation.allowed_A)
        ops = [operation_of(int(action), point.fact, point.hits) for action in allowed]
        assert asked == [
            (op.kind, point.fact.text, op.item_id if op.kind is not OpKind.NONE else None)
            for op in ops
        ]
        for action, op in zip(allowed, ops, strict=True):
            found = [
                RetrievedFact(
                    hit.record.id, hit.record.text, hit.why.similarity, hit.record.id == op.item_id
                )
                for hit in point.hits
            ]
            assert rewards_A[action] == opportunity_cost(op.kind, point.fact.text, found)
            seen.add(op.kind)
        assert (rewards_A[~point.observation.allowed_A] == 0).all()
        walk.take(ADD if point.observation.allowed_A[ADD] else NONE)
    assert seen == set(OpKind)


def test_a_request_to_forget_is_never_scored_as_a_fact(log: EmbeddedLog) -> None:
    kinds = set()

    def noted(action, new_fact, retrieved_facts):
        kinds.add(str(action))
        return 1.0

    walk = Walk(log, AnswerStandard(), asks=False, reward=noted)
    while not walk.over:
        if walk.point.fact.retracts:
            kinds.clear()
            rewards_A = walk.rewards()
            assert kinds <= {"NONE", "DELETE"}
            assert rewards_A[ADD] == 0 and not rewards_A[2 : 2 + SLOTS].any()
            return
        walk.take(ADD if walk.point.observation.allowed_A[ADD] else NONE)
    pytest.fail("this log has no request to forget")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "0.5", [1.0]])
def test_what_is_no_number_stops_with_its_place(log: EmbeddedLog, bad) -> None:
    walk = Walk(log, AnswerStandard(), asks=False, reward=lambda action, fact, found: bad)
    with pytest.raises(RewardError, match=rf"{log.log.id}, statement 1.*not a finite number"):
        walk.rewards()
