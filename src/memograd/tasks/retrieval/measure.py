"""What a ranker finds of the evidence, beside rank fusion; and whether it may be adopted.

Recall at k: the mean over questions of the share of a question's evidence turns that the first k
candidates show. The guard: weights are adopted where their recall over all held-out questions is
above that of fusion. Invariant: both rank the same candidates of the same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memograd.evaluation import bootstrap_interval
from memograd.memory.search.ranker.linear import Linear
from memograd.tasks.retrieval.learning import Part
from memograd.tasks.retrieval.material import Candidates, Row


def recalls(rows: Sequence[Row], part: Part, linear: Linear | None, k: int) -> np.ndarray:
    """float64 `[answerable questions]`; linear: None for rank fusion."""
    return np.array([recall(row, part(row), linear, k) for row in rows if row.evidence])


def recall(row: Row, found: Candidates | None, linear: Linear | None, k: int) -> float:
    """The share of one question's evidence among the first k."""
    if found is None:
        return 0.0
    scores = found.fused if linear is None else linear.scores(found.features)
    best = np.argsort(-scores, kind="stable")[:k]
    return len({turn for at in best for turn in found.sources[at]}) / row.evidence


def guard(rows: Sequence[Row], part: Part, linear: Linear, k: int) -> dict[str, Any]:
    """Recall of fusion and of the ranker on held-out rows, the gain with its interval, by set."""
    fused, trained = recalls(rows, part, None, k), recalls(rows, part, linear, k)
    if not len(fused):
        return {"questions": 0, "adopted": False}
    low, high = bootstrap_interval((trained - fused).tolist())
    names = np.array([row.set for row in rows if row.evidence])
    return {
        "questions": len(fused),
        f"fusion_recall_at_{k}": round(float(fused.mean()), 4),
        f"trained_recall_at_{k}": round(float(trained.mean()), 4),
        "gain": round(float((trained - fused).mean()), 4),
        "gain_interval": [round(low, 4), round(high, 4)],
        "sets": {
            str(name): [
                round(float(fused[names == name].mean()), 4),
                round(float(trained[names == name].mean()), 4),
            ]
            for name in sorted(set(names.tolist()))
        },
        "adopted": bool(trained.mean() > fused.mean()),
    }
