"""Asking what a policy says under each method, and writing the comparison down.

A *method* is what the prompt shows (retrieved turns, the last turns, no memory) and whether the
trained adapter is on. Invariant: all methods of a table answer the same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memograd.data import Conversation
from memograd.data.record_files import as_lines, json_lines
from memograd.evaluation import (
    compare_reports,
    print_reports,
    reports_to_json,
    reports_to_markdown,
)
from memograd.evaluation.metrics import PolicyAnswers, evaluate_policy
from memograd.policy.model_policy import ModelPolicy
from memograd.tasks.base.progress import console, counting_progress
from memograd.tasks.memory_qa.scenarios import MemoryView
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.memory_qa.setup import MemoryQASetup

UNTRAINED = "retrieved memory, untrained"
WARM_START = "retrieved memory, warm start"
TRAINED = "retrieved memory, trained"
VIEWS = {
    "no memory, untrained": MemoryView.NONE,
    "last turns, untrained": MemoryView.LAST,
    UNTRAINED: MemoryView.RETRIEVED,
    WARM_START: MemoryView.RETRIEVED,
    "no memory, trained": MemoryView.NONE,
    TRAINED: MemoryView.RETRIEVED,
}
"""Method name -> what the prompt shows."""
EVERY = tuple(name for name in VIEWS if name != WARM_START)
"""The methods of a table with baselines."""
WITH_ADAPTER = ("no memory, trained", TRAINED)

EXAMPLES = 5


def ask(
    policy: ModelPolicy,
    setup: MemoryQASetup,
    conversations: Sequence[Conversation],
    config: MemoryQATrainConfig,
    method: str,
) -> PolicyAnswers:
    """Put all questions about `conversations` to the policy as it is, under one of `VIEWS`."""
    scenarios = setup.scenarios(conversations, VIEWS[method])
    with counting_progress(f"asking: {method}", total=len(scenarios)) as on_progress:
        return evaluate_policy(
            policy,
            scenarios,
            method=method,
            max_completion_length=config.max_completion_length,
            batch_size=config.eval_batch_size,
            on_progress=on_progress,
        )


def report_results(
    answered: Sequence[PolicyAnswers],
    conversations: Sequence[Conversation],
    folder: Path,
    *,
    compared_with: str,
) -> None:
    """Print what was measured and write it into `folder` (Markdown, JSON, every answer).

    compared_with: the method that the trained one is compared with.
    """
    reports = [entry.report for entry in answered]
    by_method = {entry.report.method: entry for entry in answered}
    comparison = compare_reports(by_method[compared_with].report, by_method[TRAINED].report)
    print_reports(reports, [comparison], console=console)
    files = {
        "evaluation.md": reports_to_markdown(reports, [comparison]),
        "evaluation.json": reports_to_json(reports, [comparison]),
        "answers.jsonl": _answers(answered, conversations),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def print_examples(folder: Path) -> None:
    """Show the first questions with what was said before and after training, good or bad."""
    records = [one for _, one in json_lines(folder / "answers.jsonl", "answers")][:EXAMPLES]
    console.print(f"the first {len(records)} questions:")
    for record in records:
        console.print(f"  {record['question']}")
        console.print(f"    gold    {record['gold']}")
        console.print(
            f"    before  {record['answers'].get(WARM_START, record['answers'].get(UNTRAINED))}"
        )
        console.print(f"    after   {record['answers'][TRAINED]}")


def _answers(answered: Sequence[PolicyAnswers], conversations: Sequence[Conversation]) -> str:
    """Every question with its gold answer and what each method said, one JSON line each."""
    questions = [question for conversation in conversations for question in conversation.questions]
    records = [
        {
            "id": question.id,
            "question": question.text,
            "gold": question.answer,
            "answers": {entry.report.method: entry.answers[row] for entry in answered},
        }
        for row, question in enumerate(questions)
    ]
    return as_lines(records)
