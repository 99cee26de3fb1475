"""What a job on rows says before it trains: its rewards, and the rows that it leaves out.

Invariant: every row that is left out is in `dropped.jsonl` of the run folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from memograd.rewards import WeightedReward
from memograd.tasks.text.rows import Dropped

SHOWN_IDS = 5


def describe_rewards(rewards: Sequence[WeightedReward], console: Console) -> None:
    """Print every reward with where it comes from and its weight."""
    for reward in rewards:
        module = str(getattr(reward.function, "__module__", ""))
        own = not reward.reads_messages or module.startswith("memograd.")
        origin = "built in" if own else "yours"
        console.print(f"reward {reward.name} ({origin}), weight {reward.weight:g}")


def describe_dropped(
    dropped: Sequence[Dropped], limit: int, folder: Path, console: Console
) -> None:
    """Write the rows that were left out for their length into `folder`, and print how many."""
    lines = [json.dumps({"id": row.id, "tokens": row.tokens, "limit": limit}) for row in dropped]
    (folder / "dropped.jsonl").write_text("".join(f"{line}\n" for line in lines))
    if dropped:
        ids = ", ".join(row.id for row in dropped[:SHOWN_IDS])
        more = ", ..." if len(dropped) > SHOWN_IDS else ""
        console.print(
            f"left out {len(dropped)} prompts of more than {limit} tokens: "
            f"{ids}{more} (listed in {folder / 'dropped.jsonl'})"
        )
