"""The demonstration shows what it measured in this very run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from memograd.data.lifelog import LifelogSettings, generate_lifelogs, write_lifelogs
from memograd.memory import Memory
from memograd.memory.manager.trained.files import load_head
from memograd.memory.records.operations import OpKind
from memograd.serve.page import run_files
from memograd.tasks.memory_ops import demo as memory_ops_demo
from memograd.tasks.memory_ops.baselines.deciders import ByHead
from memograd.tasks.memory_ops.baselines.measure import measure
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import embed_logs, evaluation_logs
from memograd.tasks.memory_ops.recipe import train
from memograd.tasks.memory_ops.settings import OperationsConfig


@pytest.mark.slow
def test_before_and_after_are_those_of_this_run(
    trigrams, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for split, count in (("train", 3), ("test", 2)):
        settings = LifelogSettings(split=split, sessions=3, statements_per_session=6)
        paths.append(tmp_path / f"{split}.jsonl")
        write_lifelogs(generate_lifelogs(count, 1, settings), paths[-1])
    config = OperationsConfig(
        data=[paths[0]],
        eval_data=[paths[1]],
        out=tmp_path / "run",
        steps=3,
        width=16,
        layers=1,
        heads=2,
    )
    embedder = trigrams(dimension=64)
    run = train(config, embedder=embedder)
    capsys.readouterr()
    memory_ops_demo.show(run, config, embedder)
    shown = capsys.readouterr().out
    rows = {line.split("  ")[0].strip(" │"): line for line in shown.splitlines()}
    head = load_head(run / "final")
    unseen = embed_logs(evaluation_logs(config), embedder)
    measured = measure("head", lambda: ByHead(head), unseen, AnswerStandard.of(config))
    [line] = [line for name, line in rows.items() if name.startswith("trained head")]
    numbers = [float(number) for number in re.findall(r"\d+\.\d", line)]
    assert numbers[0] == pytest.approx(100 * sum(measured.scores) / len(measured.scores), abs=0.06)
    assert any(name.startswith("untrained head") for name in rows)
    found = memory_ops_demo.examples_of(head, unseen, config)
    assert list(found) == list(OpKind)
    for examples in found.values():
        assert all(example in shown for example in examples)
    assert_remembered(run, config, embedder)


def assert_remembered(run: Path, config: OperationsConfig, embedder: Any) -> None:
    """One unseen life stands in a real memory twice, and the page can show what changed."""
    memory_ops_demo.remember(run, config, embedder)
    [log, _] = evaluation_logs(config)
    head = load_head(run / "final")
    with Memory.open(run / "memory", embedder=embedder, ranking="fusion") as memory:
        owners = memory.store.journal.owners()
        names = [f"{log.speakers[0]}, {name}" for name in ("untrained head", "trained head")]
        assert sorted(owners) == sorted(f"user:{name}" for name in names)
        events = memory.store.journal.tail(f"user:{names[1]}")
        decided = [event for event in events if event.kind.value in ("ADD", "UPDATE", "DELETE")]
        assert decided and all(head.version in event.actor for event in decided)
        assert memory.store.journal.count_added([f"user:{names[0]}"]) > 0
    answered, more = run_files.answers(run, 0)
    assert not more or len(answered) == run_files.ANSWERS_ON_A_PAGE
    assert {one.question for one in answered} <= {probe.question.text for probe in log.probes}
    assert all(set(one.said) == {"untrained head", "trained head"} for one in answered)
    line = memory_ops_demo.curve(run)
    assert re.fullmatch(r"reward [▁▂▃▄▅▆▇█]{3} \d\.\d{3} → \d\.\d{3}", line)
