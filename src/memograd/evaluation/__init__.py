"""Evaluation: how good are the answers, how sure is that, and how does it look.

Scores (`score_answers`, `answer_scores`) come from the reward functions themselves or from a judge,
operations are held against gold ones (`confusion`), intervals come from the bootstrap, reports and
tables derive everything else from scores per question.
"""

from memograd.evaluation.bootstrap import bootstrap_interval, paired_bootstrap_difference
from memograd.evaluation.confusion import (
    ChosenOp,
    Confusion,
    compare_operations,
    confusion_to_markdown,
    plot_confusion,
)
from memograd.evaluation.judge import AnsweredQuestion, Judge, response_quality
from memograd.evaluation.memory_table import MethodResult, compare_methods, write_table
from memograd.evaluation.metrics import ANSWER_METRICS, METRICS, answer_scores, score_answers
from memograd.evaluation.plots import plot_comparison, plot_curves
from memograd.evaluation.report import (
    Comparison,
    Estimate,
    EvaluationReport,
    compare_reports,
    print_reports,
    reports_to_json,
    reports_to_markdown,
)

__all__ = [
    "ANSWER_METRICS",
    "METRICS",
    "AnsweredQuestion",
    "ChosenOp",
    "Comparison",
    "Confusion",
    "Estimate",
    "EvaluationReport",
    "Judge",
    "MethodResult",
    "answer_scores",
    "bootstrap_interval",
    "compare_methods",
    "compare_operations",
    "compare_reports",
    "confusion_to_markdown",
    "paired_bootstrap_difference",
    "plot_comparison",
    "plot_confusion",
    "plot_curves",
    "print_reports",
    "reports_to_json",
    "reports_to_markdown",
    "response_quality",
    "score_answers",
    "write_table",
]
