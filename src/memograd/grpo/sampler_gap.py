"""How far the sampler's log-probabilities are from the learner's, and what is done about it.

Where another engine draws, its log-probability of a token differs from the learner's of the same
token under the same version: by rounding if all is well, by more if the server uses another
temperature, prefix, adapter or prompt. The *gap* of a token is the absolute difference in nats.

A ladder decides by thresholds, from one rung to the next:

    gap of a token  <= exact    the learner's number counts as the sampler's: ratio 1
    gap of a token   > exact    the token weighs min(learner / sampler, cap)
                                (truncated importance sampling, Yao et al. 2025)
    mean of an answer > mask    the answer is dropped, and counted
    mean of the step  > stop    the run ends before the weights move, and the cause is looked for

Defaults go by the learner's number type: in 32 bits engines agree to about 1e-4 nats; in 16 bits
single tokens differ by tenths, and means by hundredths.

Invariants: with a gap within `exact` everywhere, the loss is the one of a sampler without a gap; a
token is compared under the version that drew it, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from memograd.config.settings import SamplerConfig
from memograd.errors import MemogradError


class SamplerGapTooWide(MemogradError):
    """The sampler draws from another distribution than the learner scores; `gaps` says how far."""

    def __init__(self, message: str, gaps: SamplerGaps) -> None:
        super().__init__(message)
        self.gaps = gaps


@dataclass(frozen=True)
class GapLimits:
    """The thresholds of the ladder, in nats; `cap` is a ratio."""

    exact: float
    cap: float
    mask: float
    stop: float

    @classmethod
    def of(cls, config: SamplerConfig, dtype: torch.dtype) -> GapLimits:
        """Those of the settings, and for what they leave open those of the number type."""
        whole = torch.finfo(dtype).bits >= 32
        exact, mask, stop = (1e-3, 1e-2, 2e-3) if whole else (5e-2, 2.5e-1, 1e-1)
        return cls(
            exact=exact if config.gap_exact is None else config.gap_exact,
            cap=config.gap_cap,
            mask=mask if config.gap_mask is None else config.gap_mask,
            stop=stop if config.gap_stop is None else config.gap_stop,
        )


@dataclass(frozen=True)
class Rungs:
    """What the ladder says of R answers of up to T tokens: `importance_RT` is the weight of each
    token, `masked_R` which answers are dropped."""

    importance_RT: torch.Tensor
    masked_R: torch.Tensor


def climb(
    learner_RT: torch.Tensor,
    sampler_RT: torch.Tensor,
    known_RT: torch.Tensor,
    limits: GapLimits,
) -> Rungs:
    """Put every token and answer on its rung; tokens that are not `known_RT` weigh 1.

    `learner_RT` are scores under the versions that drew, without gradients.
    """
    difference_RT = torch.where(known_RT, learner_RT - sampler_RT, 0.0)
    gap_RT = difference_RT.abs()
    truncated_RT = difference_RT.exp().clamp(max=limits.cap)
    importance_RT = torch.where(gap_RT > limits.exact, truncated_RT, torch.ones_like(gap_RT))
    means_R = gap_RT.sum(dim=1) / known_RT.sum(dim=1).clamp_min(1)
    return Rungs(importance_RT, means_R > limits.mask)


@dataclass(frozen=True)
class SamplerGaps:
    """The gaps of a step's tokens [N], float32, and what was done about them."""

    gaps_N: np.ndarray
    corrected: int = 0
    masked: int = 0
    unknown: int = 0

    @property
    def mean(self) -> float:
        """Mean gap in nats; 0 of no tokens."""
        return float(self.gaps_N.mean()) if len(self.gaps_N) else 0.0

    @property
    def largest(self) -> float:
        """Largest gap in nats; 0 of no tokens."""
        return float(self.gaps_N.max()) if len(self.gaps_N) else 0.0

    def metrics(self) -> dict[str, Any]:
        """What a line of `metrics.jsonl` says of them."""
        count = len(self.gaps_N)
        return {
            "sampler_gap_mean": self.mean,
            "sampler_gap_p99": float(np.quantile(self.gaps_N, 0.99)) if count else 0.0,
            "sampler_corrected_fraction": self.corrected / count if count else 0.0,
            "sampler_masked_answers": self.masked,
            "sampler_unknown_tokens": self.unknown,
        }

    def check(self, limits: GapLimits) -> None:
        """Raises `SamplerGapTooWide` where the mean is above `limits.stop`."""
        if self.mean > limits.stop:
            raise SamplerGapTooWide(
                f"the sampler's log-probabilities differ from the learner's by {self.mean:.3g} "
                f"nats on average ({self.largest:.3g} at most), and {limits.stop:g} is allowed "
                "(sampler.gap_stop)",
                self,
            )


def joined_gaps(parts: Sequence[SamplerGaps]) -> SamplerGaps:
    """All of `parts` as one."""
    nothing = np.zeros(0, dtype=np.float32)
    return SamplerGaps(
        np.concatenate([nothing, *(part.gaps_N for part in parts)]),
        corrected=sum(part.corrected for part in parts),
        masked=sum(part.masked for part in parts),
        unknown=sum(part.unknown for part in parts),
    )
