"""`Policy`: what the trainer, the evaluation and the running memory ask of anything that chooses.

The trainer knows policies by this protocol alone, so a remote sampler or a small network can take
the language model's place. `LanguageModel` in `memograd.policy.language_model` is the one that
exists.

Invariant: `sample` returns the token ids that were drawn and `logprobs` scores exactly these ids;
no text is tokenised in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Message, VersionSpan

if TYPE_CHECKING:
    import torch

    from memograd.policy.forward_choice import Agreement
    from memograd.policy.token_logprobs import BranchLogprobs
    from memograd.rollout.lockstep import Sampler


@dataclass(frozen=True)
class SampledGroup:
    """G answers to one prompt.

    `tree` holds the token ids, `logprobs[i]` [C_i] the sampler's log-probabilities of branch i,
    `texts[i]` the decoded answer without end tokens, `stop_reasons[i]` `"end"` or `"length"`. Of
    the prompt, the first `reused_tokens` were not run, because an earlier call had. `versions[i]`
    are the spans of the versions that drew branch i.
    """

    tree: TokenTree
    logprobs: tuple[np.ndarray, ...]
    texts: tuple[str, ...]
    stop_reasons: tuple[str, ...]
    reused_tokens: int = 0
    versions: tuple[tuple[VersionSpan, ...], ...] = ()


@dataclass(frozen=True)
class Published:
    """Weights that are drawn from: the number training gives them, and the name servers know them
    by, if there are servers."""

    version: int
    name: str = ""


class PolicySampler(Protocol):
    """The half of a policy that draws: prompts in, answers with their versions out."""

    @property
    def version(self) -> int:
        """The version of the weights that draw."""
        ...

    @property
    def context_length(self) -> int:
        """The most tokens that a prompt with its answer may have."""
        ...

    def publish(self, version: int) -> Published:
        """From here on the weights as they are now draw, under this version."""
        ...

    def publisher(self, version: int) -> Callable[[], Published]:
        """What publishes the weights as they are now. Every process calls this; one of them calls
        what it gets."""
        ...

    def follow(self, published: Published) -> None:
        """Draw from what another process published; the weights here are the same."""
        ...

    def rest(self) -> None:
        """Nothing is drawn until the learner has moved: who draws may let go of the device."""
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


class PolicyLearner(Protocol):
    """The half of a policy that learns: trees in, log-probabilities with gradients out."""

    forward: str
    """How tokens are computed (`auto`, `packed`, `tree` or `rows`); a policy may settle for rows by
    itself."""

    @property
    def token_bytes(self) -> float:
        """What a token was measured to take in learning, by which trees are cut; 0: not measured.
        It is kept in checkpoints."""
        ...

    @token_bytes.setter
    def token_bytes(self, measured: float) -> None: ...

    @property
    def device(self) -> torch.device:
        """Where `logprobs` computes."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """The number type that the model computes in."""
        ...

    def microbatches(self, trees: Sequence[TokenTree]) -> list[list[int]]:
        """Cut `trees` into pieces that `logprobs` can take at once; indices into `trees`."""
        ...

    def cut(self, tree: TokenTree) -> list[list[int]]:
        """The branches of `tree`, in order, in parts that `logprobs` can take as trees of their
        own; one part, if it can take the tree."""
        ...

    def logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float, entropy_gradient: bool = False
    ) -> BranchLogprobs:
        """Log-probabilities of every branch under the current weights, with gradients."""
        ...

    @property
    def has_reference(self) -> bool:
        """Whether the weights before training are at hand, for `reference_logprobs`."""
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

    def saver(self) -> Callable[[Path], None]:
        """What writes everything that is needed to load this policy again, as it is now, into a
        folder. Every process calls this; one of them calls what it gets."""
        ...

    def why_gap(self, prompt: Sequence[int], *, temperature: float, limit: float) -> str:
        """Why the sampler's log-probabilities differ from the learner's by more than `limit`, as
        far as asking it again shows."""
        ...

    def logprobs_of(
        self, version: int, trees: Sequence[TokenTree], *, temperature: float
    ) -> BranchLogprobs | None:
        """Scores under an older version, without gradients; None if its weights are not kept."""
        ...


class Policy(PolicySampler, PolicyLearner, Protocol):
    """Something that draws answers, scores them with gradients, and can be saved."""

    def encode(self, prompt: str | Sequence[Message]) -> list[int]:
        """Token ids of a chat, ready to be answered, or of a text, ready to be continued."""
        ...

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """The text that each token adds, special tokens included; for the rollout log."""
        ...
