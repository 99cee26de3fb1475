"""Where rollouts are kept: samples in `rollouts/`, and in `failures/` those that stopped the run.

Invariant: when a reward cannot be computed or a number is not finite, the groups that it came from
are on disk, token ids included, before the run ends, and the message names the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memograd.errors import MemogradError
from memograd.grpo.experience import Experience
from memograd.grpo.not_finite import NotFinite
from memograd.grpo.rollout_log import group_records, render_records
from memograd.grpo.run_folder import RunFolder, plain_json
from memograd.grpo.sampler_gap import SamplerGapTooWide
from memograd.policy.protocol import Policy
from memograd.rewards.compose import RewardError
from memograd.rollout.types import Group

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
