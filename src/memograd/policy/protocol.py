"""`Policy`: what the trainer, the evaluation and the running memory ask of anything that chooses.

The trainer knows policies by this protocol alone, so a remote sampler or a small network can take
the language model's place. `LanguageModel` in `memograd.policy.language_model` is the one that
exists.

Invariant: `sample` returns the token ids that were drawn and `logprobs` scores exactly these ids;
no text is tokenised in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Message

if TYPE_CHECKING:
    import torch

    from memograd.policy.token_logprobs import BranchLogprobs
    from memograd.policy.verify import Agreement
    from memograd.rollout.lockstep import Sampler


@dataclass(frozen=True)
class SampledGroup:
    """G answers to one prompt.

    `tree` holds the token ids, `logprobs[i]` [C_i] the sampler's log-probabilities of branch i,
    `texts[i]` the decoded answer without end tokens, `stop_reasons[i]` `"end"` or `"length"`. Of
    the prompt, the first `reused_tokens` were not run, because an earlier call had.
    """

    tree: TokenTree
    logprobs: tuple[np.ndarray, ...]
    texts: tuple[str, ...]
    stop_reasons: tuple[str, ...]
    reused_tokens: int = 0


class Policy(Protocol):
    """Something that samples answers, scores them with gradients, and can be saved."""

    forward: str
    """`"tree"` or `"rows"`: how tokens are computed; a policy may settle for rows by itself."""

    @property
    def device(self) -> torch.device:
        """Where `logprobs` computes."""
        ...

    def encode(self, prompt: str | Sequence[Message]) -> list[int]:
        """Token ids of a chat, ready to be answered, or of a text, ready to be continued."""
        ...

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """The text that each token adds, special tokens included; for the rollout log."""
        ...

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None,
    ) -> list[SampledGroup]:
        """Draw `num_generations` answers to each prompt, or to each its own number of them;
        temperature 0 is greedy."""
        ...

    def in_turns(self) -> Sampler:
        """What samples as `sample` does, for one batch of episodes: prompts of a call may go on
        from answers of the one before."""
        ...

    def microbatches(self, trees: Sequence[TokenTree]) -> list[list[int]]:
        """Cut `trees` into pieces that `logprobs` can take at once; indices into `trees`."""
        ...

    def logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float, entropy_gradient: bool = False
    ) -> BranchLogprobs:
        """Log-probabilities of every branch under the current weights, with gradients."""
        ...

    def reference_logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float
    ) -> BranchLogprobs:
        """The same under the weights before training, without gradients."""
        ...

    def verify(self, trees: Sequence[TokenTree], *, temperature: float) -> Agreement | None:
        """Check the fast way of computing `logprobs` against the plain one, and settle for the
        plain one, with a warning, if they differ."""
        ...

    def parameters(self) -> list[torch.nn.Parameter]:
        """The weights that training moves."""
        ...

    def save(self, folder: Path) -> None:
        """Write everything that is needed to load this policy again."""
        ...
