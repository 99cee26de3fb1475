"""Rollouts on disk: samples in `rollouts/`, and in `failures/` those that stopped the run.

They are written as text for people (step-N.txt) and as JSON with every token for tools
(step-N.jsonl). A record is one group:

    step, group, id, prompt (text or messages, with what an episode's `reset` added), columns,
    prompt_ids, and `rollouts`, each with id, prompt (only where it opened otherwise than the
    group's first), completion, stop_reason, reward, rewards (by name), advantage, and its `rows`:
        prompt_ids   what stands before the row; null where it is the group's prompt
        ids, texts   the tokens after it, and the text that each adds
        scored       which of them the model chose itself and is trained on
        logprobs     of the scored ones under the sampler (nats); null for the others

A turn that continues the tokens before it stays in its row, what it observed unscored; a turn that
starts a row of its own begins another.

Invariants: `prompt_ids` + `ids` of a row are exactly what the model saw, and the scored ones are
exactly the rollout's actions; when a reward cannot be computed or a number is not finite, the
groups that it came from are on disk before the run ends, and the message names the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memograd.errors import MemogradError
from memograd.grpo.experience import Experience, NotFinite
from memograd.grpo.run_folder import RunFolder, plain, plain_json
from memograd.grpo.sampler_gap import SamplerGapTooWide
from memograd.policy.protocol import Policy
from memograd.rewards import RewardTable
from memograd.rewards.compose import RewardError
from memograd.rollout.types import Group, Rollout

TokenTexts = Callable[[Sequence[int]], list[str]]

SHOWN = 3
"""How many groups a message names."""


class RolloutFiles:
    """Writes the groups of a step into a run folder."""

    def __init__(self, run: RunFolder, policy: Policy) -> None:
        self._run = run
        self._policy = policy

    def write(
        self,
        step: int,
        groups: Sequence[Group],
        experience: Experience | None,
        *,
        only: Sequence[int] | None = None,
        folder: str = "rollouts",
    ) -> Path:
        """Write down all groups, or those in the places `only`; returns the readable file.

        Rewards and advantages come from `experience`, which is of the same groups, if there is one.
        """
        records = group_records(
            step,
            groups,
            self._policy.token_texts,
            None if experience is None else experience.rewards,
            None if experience is None else experience.advantages.advantages_K,
        )
        records = records if only is None else [records[place] for place in only]
        lines = [plain_json(record) for record in records]
        return self._run.write_rollouts(step, render_records(records), lines, folder=folder)

    @contextmanager
    def kept_on_failure(
        self, step: int, groups: Sequence[Group], experience: Experience | None = None
    ) -> Iterator[None]:
        """Writes the groups that a failure within it came from into `failures`, and says so.

        Raises:
            RewardError: as it came, with the file in its message.
            SamplerGapTooWide: as it came, with the file in its message.
            MemogradError: in the place of `NotFinite`, with the groups and the file.
        """
        try:
            yield
        except SamplerGapTooWide as error:
            file = self.write(step, groups, experience, folder="failures")
            raise SamplerGapTooWide(f"{error} (step {step}: see {file})", error.gaps) from error
        except (NotFinite, RewardError) as error:
            places = _places(error, groups)
            file = self.write(step, groups, experience, only=places, folder="failures")
            names = [groups[place].scenario.id for place in places]
            more = f" and {len(names) - SHOWN} more groups" if len(names) > SHOWN else ""
            where = f"{', '.join(names[:SHOWN])}{more} of step {step}"
            message = f"{str(error).rstrip('.')} ({where}): see {file}"
            if isinstance(error, RewardError):
                raise RewardError(message, error.rollout_id) from error
            raise MemogradError(message) from error


def _places(error: NotFinite | RewardError, groups: Sequence[Group]) -> Sequence[int]:
    """The groups that a failure came from; all of them where it does not say."""
    if isinstance(error, NotFinite):
        return error.groups
    found = [
        place
        for place, group in enumerate(groups)
        if any(rollout.id == error.rollout_id for rollout in group.rollouts)
    ]
    return found or range(len(groups))


def group_records(
    step: int,
    groups: Sequence[Group],
    token_texts: TokenTexts,
    rewards: RewardTable | None = None,
    advantages_K: np.ndarray | None = None,
) -> list[dict[str, Any]]:
    """One record a group, with rewards and advantages as far as there are any yet."""
    records: list[dict[str, Any]] = []
    row = 0
    for index, group in enumerate(groups):
        prompt_ids = group.rollouts[0].turns[0].observation_ids
        # What `reset` added to the scenario's prompt is in the opening of an episode only.
        opening = group.rollouts[0].opening
        rollouts = []
        for rollout in group.rollouts:
            rollouts.append(
                {
                    "id": rollout.id,
                    **({} if rollout.opening == opening else {"prompt": rollout.opening}),
                    "completion": rollout.completion,
                    "stop_reason": rollout.stop_reason,
                    "reward": rewards and rewards.total[row],
                    "rewards": {
                        name: values[row]
                        for name, values in (rewards.by_name if rewards else {}).items()
                    },
                    "advantage": None if advantages_K is None else advantages_K[row],
                    "rows": _rows(rollout, prompt_ids, token_texts),
                }
            )
            row += 1
        record = {
            "step": step,
            "group": index,
            "id": group.scenario.id,
            "prompt": list(opening) or group.scenario.prompt,
            "columns": group.scenario.columns,
            "prompt_ids": prompt_ids,
            "rollouts": rollouts,
        }
        records.append(plain(record))
    return records


def render_records(records: Sequence[Mapping[str, Any]]) -> str:
    """All groups of one step: prompt, columns, and each rollout with rewards and advantage."""
    lines = [f"step {records[0]['step']}: {len(records)} groups", ""]
    for record in records:
        lines.append(f"=== {record['id']} ===")
        lines += _said(record["prompt"])
        lines += [f"{name}: {value}" for name, value in record["columns"].items()]
        for place, rollout in enumerate(record["rollouts"]):
            rewards = "  ".join(f"{name} {_number(v)}" for name, v in rollout["rewards"].items())
            tokens = sum(sum(row["scored"]) for row in rollout["rows"])
            lines.append(
                f"  {place}: advantage {_number(rollout['advantage'], '+.2f')}  {rewards}  "
                f"({tokens} tokens, {rollout['stop_reason']})  {rollout['completion']!r}"
            )
            lines += [f"     {line}" for line in _said(rollout.get("prompt", ()))]
        lines.append("")
    return "\n".join(lines)


def _said(prompt: str | Sequence[Mapping[str, str]]) -> list[str]:
    if isinstance(prompt, str):
        return [prompt]
    return [f"[{one['role']}] {one['content']}" for one in prompt]


def _number(value: float | str | None, form: str = ".3f") -> str:
    """A number, a dash for none, or the text that stands for one that is not finite."""
    return format(value, form) if isinstance(value, int | float) else str(value or "-")


def _rows(
    rollout: Rollout, group_prompt_ids: tuple[int, ...], token_texts: TokenTexts
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for turn in rollout.turns:
        heard: tuple[int, ...] = ()
        if rows and not turn.starts_row:
            heard = turn.observation_ids
        else:
            shared = turn.observation_ids == group_prompt_ids
            prompt_ids = None if shared else turn.observation_ids
            rows.append({"prompt_ids": prompt_ids, "ids": [], "scored": [], "logprobs": []})
        row = rows[-1]
        row["ids"] += [*heard, *turn.action_ids]
        row["scored"] += [False] * len(heard) + [True] * len(turn.action_ids)
        row["logprobs"] += [None] * len(heard) + turn.logprobs.tolist()
    for row in rows:
        row["texts"] = token_texts(row["ids"])
    return rows
