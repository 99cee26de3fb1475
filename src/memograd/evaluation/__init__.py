"""Evaluation: how good are the answers, how sure is that, and how does it look.

Scores (`score_answers`) come from the reward functions themselves, intervals from the bootstrap,
reports derive everything else from per-question scores. May import the rooms below it (here:
errors, rewards, rollout, the policy protocol); no trainer internals. Tests: `tests/evaluation/`.
"""

from memograd.evaluation.bootstrap import bootstrap_interval, paired_bootstrap_difference
from memograd.evaluation.metrics import METRICS, score_answers
from memograd.evaluation.plots import plot_comparison, plot_curves
from memograd.evaluation.report import (
    Comparison,
    Estimate,
    EvaluationReport,
    compare_reports,
)
from memograd.evaluation.tables import print_reports, reports_to_json, reports_to_markdown

__all__ = [
    "METRICS",
    "Comparison",
    "Estimate",
    "EvaluationReport",
    "bootstrap_interval",
    "compare_reports",
    "paired_bootstrap_difference",
    "plot_comparison",
    "plot_curves",
    "print_reports",
    "reports_to_json",
    "reports_to_markdown",
    "score_answers",
]
