"""The demonstration shows what it measured in this very run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memograd.data.lifelog import LifelogSettings, generate_lifelogs, write_lifelogs
from memograd.memory.manager.trained.files import load_head
from memograd.memory.records.operations import OpKind
from memograd.tasks.memory_ops import demo as memory_ops_demo
from memograd.tasks.memory_ops.baselines.deciders import ByHead
from memograd.tasks.memory_ops.baselines.measure import measure
from memograd.tasks.memory_ops.logs import evaluation_logs
from memograd.tasks.memory_ops.material import embed_logs
from memograd.tasks.memory_ops.recipe import standard_of, train
from memograd.tasks.memory_ops.settings import OperationsConfig


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
    measured = measure("head", lambda: ByHead(head), unseen, standard_of(config))
    [line] = [line for name, line in rows.items() if name.startswith("trained head")]
    numbers = [float(number) for number in re.findall(r"\d+\.\d", line)]
    assert numbers[0] == pytest.approx(100 * sum(measured.scores) / len(measured.scores), abs=0.06)
    assert any(name.startswith("untrained head") for name in rows)
    found = memory_ops_demo.examples_of(head, unseen, config)
    assert list(found) == list(OpKind)
    for examples in found.values():
        assert all(example in shown for example in examples)
