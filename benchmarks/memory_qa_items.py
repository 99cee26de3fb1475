"""Does the answer stand in what memory-qa shows: raw turns against items, at equal budgets.

    python benchmarks/memory_qa_items.py                                  # a generated life
    python benchmarks/memory_qa_items.py --data locomo10.json --conversation conv-30
    python benchmarks/memory_qa_items.py --policy runs/head/final --embedder minilm

No model answers anything: a question counts if its gold answer stands word for word in the lines
shown, as far as the budget of (estimated) tokens goes. One JSON line a budget, with 95% intervals
over questions, the difference paired by question. Rules keep the items, or `--policy`.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import fmean

from rich.console import Console

from memograd.data import Conversation, select_conversations
from memograd.evaluation import bootstrap_interval, paired_bootstrap_difference
from memograd.memory import load_embedder
from memograd.memory.language import estimate_tokens
from memograd.rewards.matching import has_phrase
from memograd.tasks.memory_qa.keepers import keeper_of
from memograd.tasks.memory_qa.scenarios import ItemMemory, KeptItem
from memograd.tasks.memory_qa.settings import MemoryConfig
from memograd.tasks.memory_qa.setup import available_conversations

console = Console(highlight=False, soft_wrap=True, markup=False)


def main() -> None:
    """Keep, ask, print."""
    given = _arguments()
    embedder = load_embedder(given.embedder)
    config = MemoryConfig(keep="items", policy=given.policy, embedder=given.embedder)
    keeper = keeper_of(config, embedder, "auto")
    available = available_conversations(given.data, given.seed)
    named = given.conversation or [available[-1].id]
    for conversation in select_conversations(available, named):
        began = time.perf_counter()
        [items] = keeper.keep([conversation])
        seconds = time.perf_counter() - began
        turns = [KeptItem(f"{turn.speaker}: {turn.text}", turn.time) for turn in conversation.turns]
        line = {
            "conversation": conversation.id,
            "keeper": keeper.name,
            "turns": [len(turns), _tokens(turns)],
            "items": [len(items), _tokens(items)],
            "seconds": round(seconds, 1),
        }
        console.print(json.dumps(line))
        memories = ItemMemory(turns, embedder), ItemMemory(items, embedder)
        for budget in given.budgets:
            by_turns, by_items = (_stands(conversation, one, budget) for one in memories)
            line = {
                "budget": budget,
                "questions": len(by_turns),
                "turns": _points(by_turns),
                "items": _points(by_items),
                "difference": [
                    round(100 * x, 1) for x in paired_bootstrap_difference(by_turns, by_items)
                ],
                "turns and items by category": _by_category(conversation, by_turns, by_items),
            }
            console.print(json.dumps(line))


def _by_category(
    conversation: Conversation, by_turns: list[float], by_items: list[float]
) -> dict[str, list[float]]:
    categories = [question.category for question in conversation.questions]
    return {
        name: [
            round(100 * fmean(x for x, c in zip(scores, categories, strict=True) if c == name), 1)
            for scores in (by_turns, by_items)
        ]
        for name in dict.fromkeys(categories)
    }


def _stands(conversation: Conversation, memory: ItemMemory, budget: int) -> list[float]:
    """1 for every question whose answer is shown, else 0."""
    questions = conversation.questions
    found = memory.search_many(
        [question.text for question in questions],
        top_k=len(memory.items),
        token_budget=budget,
        count_tokens=estimate_tokens,
    )
    return [
        float(has_phrase("\n".join(item.render() for item in shown), question.answer))
        for question, shown in zip(questions, found, strict=True)
    ]


def _tokens(items: list[KeptItem]) -> int:
    return sum(estimate_tokens(item.render()) for item in items)


def _points(scores: list[float]) -> list[float]:
    low, high = bootstrap_interval(scores)
    return [round(100 * value, 1) for value in (sum(scores) / len(scores), low, high)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="conversations; none: generated lives")
    parser.add_argument("--conversation", nargs="*", help="ids; none: the last")
    parser.add_argument("--policy", type=Path, help="who keeps items; none: rules")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--seed", type=int, default=0, help="of generated lives")
    parser.add_argument("--budgets", type=int, nargs="+", default=[100, 200, 400, 20_000])
    return parser.parse_args()


if __name__ == "__main__":
    main()
