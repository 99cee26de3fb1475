"""What each prompt and each adapter is worth on held-out questions, in one table.

A row is a prompt (untouched, or of a program's file) on a model (alone, or with a run's adapter);
where a row has several seeds, a question counts with their mean, and the lowest and highest mean of
a seed stand beside it. Calls and tokens are those of finding it, not of measuring it.

Invariant: all rows answer the same questions, greedily, through programs loaded from their files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

import dspy

from memograd.evaluation import AnsweredQuestion, Judge, MethodResult, compare_methods, write_table
from memograd.evaluation.memory_table import table_to_markdown
from memograd.evaluation.metrics import PolicyAnswers, scored_answers
from memograd.memory.language import language_of
from memograd.optimize.endpoints import Caller, Spent, quiet
from memograd.optimize.program import MemoryQAProgram, examples
from memograd.rollout.types import Scenario

UNTRAINED = "untrained"
GRPO = "GRPO"
METRIC = "locomo_f1"


@dataclass
class TableRow:
    """A prompt on a model: the answers of each seed, and what finding them cost.

    `calls`, `proposals`, `unread`: of the search of each seed, empty where nothing was searched
    here; unread are proposals in no form that could be read. `rollouts`: those that GRPO drew.
    """

    name: str
    answered: list[PolicyAnswers] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    proposals: list[Spent] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    rollouts: list[int] = field(default_factory=list)


def answers_of(
    program: MemoryQAProgram,
    scenarios: Sequence[Scenario],
    asked: Caller,
    *,
    method: str,
    threads: int,
) -> PolicyAnswers:
    """What the program says to every question; a call that fails is an error, not an answer."""
    start = time.perf_counter()

    def answer(example: dspy.Example) -> str:
        with dspy.context(lm=asked.lm):
            return str(program(**example.inputs()).answer)

    with quiet(), ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(answer, examples(scenarios)))
    seconds = time.perf_counter() - start
    return scored_answers(answers, scenarios, method=method, seconds=seconds)


def write_results(
    rows: Sequence[TableRow], scenarios: Sequence[Scenario], judge: Judge | None, folder: Path
) -> str:
    """Write `comparison.md`, `.json` and `.png` and `answers.jsonl`; gives the Markdown."""
    table = compare_methods([_result(row, scenarios, judge) for row in rows], baseline=UNTRAINED)
    write_table(table, folder)
    with (folder / "answers.jsonl").open("w", encoding="utf-8") as file:
        for place, scenario in enumerate(scenarios):
            record = {
                "id": scenario.id,
                "question": scenario.columns["question"],
                "gold": scenario.columns["answer"],
                "answers": {row.name: [one.answers[place] for one in row.answered] for row in rows},
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return table_to_markdown(table)


def _result(row: TableRow, scenarios: Sequence[Scenario], judge: Judge | None) -> MethodResult:
    per_seed = [dict(one.report.scores) for one in row.answered]
    if judge is not None:
        for scores, one in zip(per_seed, row.answered, strict=True):
            scores[judge.name] = judge.scores(_judged(one, scenarios))
    per_item = {
        metric: [mean(values) for values in zip(*(one[metric] for one in per_seed), strict=True)]
        for metric in per_seed[0]
    }
    means = [100 * mean(one[METRIC]) for one in per_seed]
    totals: dict[str, float] = {
        "seeds": len(per_seed),
        "lowest seed": min(means),
        "highest seed": max(means),
    }
    if row.calls:
        totals["calls"] = mean(row.calls)
        totals["proposer's calls"] = mean(one.calls for one in row.proposals)
        totals["its tokens in"] = mean(one.tokens_in for one in row.proposals)
        totals["its tokens out"] = mean(one.tokens_out for one in row.proposals)
        totals["unread proposals"] = mean(row.unread)
    if row.rollouts:
        totals["GRPO's rollouts"] = mean(row.rollouts)
    groups = {metric: row.answered[0].report.groups for metric in per_item}
    return MethodResult(row.name, per_item, totals, groups)


def _judged(one: PolicyAnswers, scenarios: Sequence[Scenario]) -> list[AnsweredQuestion]:
    judged = []
    for answer, example, scenario in zip(one.answers, examples(scenarios), scenarios, strict=True):
        question = str(scenario.columns["question"])
        judged.append(
            AnsweredQuestion(scenario.id, question, example.answer, answer, language_of(question))
        )
    return judged
