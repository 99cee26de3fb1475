"""How much of the evidence reaches the prompts of memory-qa, by the earlier and the present search.

    python benchmarks/memory_qa_retrieval.py --data locomo.json [--conversation conv-30]

For every question the share of its evidence turns among the best 5, 10 and 20, with 95% bootstrap
intervals over questions. One JSON line a way of finding.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import mean

from memograd.data import load_any, select_conversations
from memograd.evaluation.bootstrap import bootstrap_interval
from memograd.memory import TurnMemory, load_embedder
from memograd.memory.reader import RuleReader

WAYS = {"dense, minilm": ("minilm", False), "dense, e5": ("e5", False), "ranked, e5": ("e5", True)}


def main() -> None:
    """Measure each way on the same conversations."""
    asks = argparse.ArgumentParser(description=__doc__)
    asks.add_argument("--data", type=Path, required=True)
    asks.add_argument("--conversation", action="append", default=[])
    told = asks.parse_args()
    available = load_any(told.data)
    chosen = select_conversations(available, told.conversation or [one.id for one in available])
    for name, (embedder, ranked) in WAYS.items():
        shares: dict[int, list[float]] = {5: [], 10: [], 20: []}
        with (
            tempfile.TemporaryDirectory() as folder,
            TurnMemory.open(Path(folder) / "m", load_embedder(embedder)) as memory,
        ):
            for one in chosen:
                memory.add_turns(one.id, one.turns, reader=RuleReader() if ranked else None)
                questions = [question for question in one.questions if question.evidence]
                found = memory.search_many(
                    [question.text for question in questions],
                    scope=one.id,
                    top_k=20,
                    token_budget=10**9,
                    count_tokens=len,
                    ranked=ranked,
                )
                for question, turns in zip(questions, found, strict=True):
                    best = sorted(turns, key=lambda turn: turn.rank)
                    for depth, of in shares.items():
                        ids = {turn.turn.id for turn in best[:depth]}
                        of.append(len(ids & set(question.evidence)) / len(question.evidence))
        line = {"what": "share of the evidence in the prompt", "way": name}
        for depth, of in shares.items():
            low, high = bootstrap_interval(of)
            line[f"at_{depth}"] = [round(mean(of), 3), round(low, 3), round(high, 3)]
        print(json.dumps({**line, "questions": len(shares[5])}))


if __name__ == "__main__":
    main()
