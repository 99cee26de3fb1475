"""Rollouts as a person reads them: what was asked, what was answered, what it earned.

Pure: text out of experience. The trainer writes it into `rollouts/step-N.txt`. Tested in
`tests/grpo/test_rollout_log.py`.
"""

from __future__ import annotations

from memograd.grpo.batch import Experience


def render_experience(step: int, experience: Experience) -> str:
    """All groups of one step: prompt, columns, and each rollout with rewards and advantage."""
    lines = [f"step {step}: {len(experience.groups)} groups", ""]
    row = 0
    for index, group in enumerate(experience.groups):
        lines.append(f"=== {group.scenario.id} ===")
        for message in group.scenario.messages:
            lines.append(f"[{message['role']}] {message['content']}")
        lines.extend(f"{name}: {value}" for name, value in group.scenario.columns.items())
        for column, rollout in enumerate(group.rollouts):
            rewards = "  ".join(
                f"{name} {values[row]:.3f}" for name, values in experience.rewards.by_name.items()
            )
            advantage = experience.advantages.advantages_BG[index, column]
            turn = rollout.turns[-1]
            lines.append(
                f"  {column}: advantage {advantage:+.2f}  {rewards}  "
                f"({rollout.tokens} tokens, {turn.stop_reason})  {rollout.completion!r}"
            )
            row += 1
        lines.append("")
    return "\n".join(lines)
