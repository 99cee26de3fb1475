"""Folders of runs as training leaves them, with hostile texts in all places."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

HOSTILE = "<script>alert(1)</script>"


def rollout(reward: float, advantage: float) -> dict[str, Any]:
    return {
        "id": "r",
        "completion": "Boston",
        "stop_reason": "eos",
        "reward": reward,
        "rewards": {"exact": reward, "judge": None},
        "advantage": advantage,
        "rows": [
            {
                "prompt_ids": None,
                "ids": [1, 2, 3, 4],
                "texts": ["Bos", "ton", HOSTILE, "波"],
                "scored": [True, True, False, True],
                "logprobs": [math.log(0.9), math.log(0.3), None, math.log(0.01)],
            }
        ],
    }


def example_runs(folder: Path) -> Path:
    """Two runs: one that is finished, one that is damaged; and a folder that is none."""
    runs = folder / "runs"
    (runs / "no-run").mkdir(parents=True)
    good = runs / "good"
    (good / "rollouts").mkdir(parents=True)
    (good / "config.json").write_text('{"steps": 3, "model": "smollm2", "seed": 0}')
    (good / "run.json").write_text('{"task": "memory-qa"}')
    (good / "state.json").write_text('{"state": "finished"}')
    (good / ".lock").touch()
    rows = [
        {"step": step, "reward_mean": step / 10, "loss": 0.5, "kl": None if step == 1 else 0.1}
        for step in (1, 2, 3)
    ]
    (good / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    group = {
        "step": 1,
        "group": 0,
        "id": "q0",
        "columns": {"question": HOSTILE, "answer": "Boston"},
    }
    chat = [{"role": "user", "content": HOSTILE}]
    groups = [
        {**group, "prompt": chat, "rollouts": [rollout(1.0, 0.7), rollout(0.0, -0.7)]},
        {
            **group,
            "id": "q1",
            "prompt": "Where?",
            "rollouts": [rollout(0.5, 0.0), rollout(0.5, 0.0)],
        },
    ]
    (good / "rollouts" / "step-0001.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in groups)
    )
    answers = [
        {
            "id": str(number),
            "question": f"Question {number}? {HOSTILE}",
            "gold": "gold",
            "answers": {"memory, untrained": "old", "oracle": "x", "memory, trained": "new"},
        }
        for number in range(30)
    ]
    (good / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in answers))
    (good / "evaluation.md").write_text(
        f"# {HOSTILE}\n\n**rules**: in points\n\n"
        f"| method | F1 |\n| --- | ---: |\n| {HOSTILE} | 21.5 |\n"
    )
    (runs / "broken").mkdir()
    (runs / "broken" / "config.json").write_text("{}")
    (runs / "broken" / "metrics.jsonl").write_text("no json\n{}\n")
    return runs
