"""What a server must get right before it is learnt from, and the name of what it gets wrong.

Wrong log-probabilities do not look wrong: training goes on, towards nothing. So before the first
step the server is tried with two versions that do something (an adapter in training begins by
adding nothing, and would hide every mistake about adapters; of a whole model the embedding is
moved, on which all keys and values depend), at T = 0.5, where a distribution before temperature
shows:

    first version      two answers to a short prompt and to one of several cache blocks: ids as
                       sent, gap small
    second version     the same prompts, whose beginning the server now has in its prefix cache

Of a long prompt the first token counts too little for a gap to show that it was dropped, of a short
one no cache block is kept.

Where a gap is too wide, `diagnose` asks which single mistake explains the server's numbers. The
drawn tokens are scored as if it had used another temperature, another version, or a prompt without
its first token; and the server is asked again under a fresh cache salt. What remains is that it saw
another prompt.

Invariant: a cause is named only if it brings the gap down to a tenth of what it was, and it is the
one that brings it lowest; what is left otherwise is another prompt, or other weights.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import torch

from memograd.errors import BadInput
from memograd.policy.remote.adapters import ServedVersion
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import AnswersWanted, SamplingFailed, ServedAnswers
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import UNSAID

TEMPERATURE: Final = 0.5
ANSWERS, TOKENS, PROMPT_TOKENS = 2, 12, 272
"""Of the probe; the prompt, where there is room for it, is longer than two of vLLM's cache blocks,
which have 16 tokens on a GPU and 128 on a CPU: of a shorter one nothing is reused."""
WANTED_MOVE: Final = 0.3
"""Mean nats by which a probe's adapter moves the probe's tokens, at least."""
EXPLAINS: Final = 0.1
"""Share of the gap that may be left where a cause explains it."""
FINEST: Final = 0.01
"""Steps in which a temperature is looked for."""
SMALLEST_MOVE: Final = 0.01
"""Standard deviation of what is added to the adapter's weights, at first."""

TIED: Final = (
    "vLLM's build for CPUs keeps the old output layer where it is the embedding: use a model whose "
    "config.json has tie_word_embeddings false, or a GPU"
)

ADVICE: Final = {
    "raw": "it reports log-probabilities at temperature 1, whatever was asked for: start it with "
    "--logprobs-mode processed_logprobs",
    "temperature": "it draws at another temperature, about {detail}: take away what overrides the "
    "request's",
    "adapter": "it answers from {detail} and not from the adapter that was asked for: load every "
    "version under a name of its own, and start it with enough --max-loras",
    "prefix": "it used keys and values that another adapter computed (stale prefix cache): never "
    "load an adapter in place, or start it with --no-enable-prefix-caching",
    "bos": "it dropped the first token of the prompt (BOS): let it take token ids as they are",
    "prompt": "it saw another prompt than was sent (a chat template, another tokenizer), or serves "
    "other weights or another number type (--dtype) than the learner's",
    "weights": "it answers from older weights than those that it was told to load, and says that "
    f"it loaded them; {TIED}",
    "half": "it did not load all weights, saw another prompt than was sent, or has another number "
    f"type (--dtype) than the learner; {TIED}",
    "gone": "asked again it gave the learner's numbers, so no cause can be named",
}
"""What is said of each cause."""


class ProbeLearner(Protocol):
    """What the probe needs of the policy whose tokens a server draws."""

    name: str

    @property
    def vocabulary_size(self) -> int:
        """How many tokens it knows."""
        ...

    def logprobs(self, trees: Sequence[TokenTree], *, temperature: float) -> BranchLogprobs:
        """Scores of all branches."""
        ...

    def probed(self) -> dict[str, torch.Tensor]:
        """Copies of the weights, by name, that a server is tried with other values of."""
        ...

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> AbstractContextManager[None]:
        """Within this block the weights of these names are these."""
        ...

    def untrained(self) -> AbstractContextManager[None]:
        """Within this block the policy is what it was trained from."""
        ...


Named = tuple[str, Mapping[str, torch.Tensor]]
"""A version's name and weights."""


@dataclass(frozen=True)
class Cause:
    """Why a server's log-probabilities are wrong, as a key of `ADVICE`."""

    key: str
    detail: str = ""

    def __str__(self) -> str:
        return ADVICE[self.key].format(detail=self.detail)


@dataclass(frozen=True)
class Drawn:
    """What the server at `url` answered to what was asked, and the weights that should have
    answered; None: those that the policy has."""

    url: str
    asked: AnswersWanted
    found: ServedAnswers
    weights: Mapping[str, torch.Tensor] | None


def probe(
    policy: ProbeLearner, sampler: RemoteSampler, prompt: Sequence[int], *, limit: float
) -> float:
    """Try every server; returns the largest mean gap, in nats.

    `prompt` is asked as it is and repeated to some length. Raises `BadInput` with the cause where a
    mean gap is above `limit`.
    """
    repeated = (list(prompt) * PROMPT_TOKENS)[: min(PROMPT_TOKENS, sampler.room - TOKENS)]
    widest = 0.0
    made: list[ServedVersion] = []
    older: list[Named] = []
    try:
        for number in (1, 2):
            weights = _moved(policy, repeated, seed=number)
            with policy.with_weights(weights):
                version = sampler.snapshot(UNSAID, label=f"probe-{number}")
                made.append(version)
                sampler.load(version)
            for asks in (list(prompt)[: len(repeated)], repeated):
                asked = _question(policy, version.name, asks, TEMPERATURE)
                for url, found in sampler.pool.answer_everywhere(asked):
                    drawn = Drawn(url, asked, found, weights)
                    gap = mean_gap(policy, drawn)
                    widest = max(widest, gap)
                    if gap > limit:
                        cause = diagnose(policy, sampler, drawn, older=older, gap=gap)
                        raise BadInput(
                            f"the sampling server {url} cannot be learnt from: its "
                            f"log-probabilities differ from the learner's by {gap:.3g} nats on "
                            f"average, where {limit:g} is allowed (sampler.gap_stop); {cause}."
                        )
            older.append((version.name, weights))
    finally:
        for version in made:
            sampler.forget(version)
    return widest


def explain(
    policy: ProbeLearner,
    sampler: RemoteSampler,
    prompt: Sequence[int],
    *,
    temperature: float,
    limit: float,
) -> Cause:
    """Why what the newest version draws differs from what the learner says, as far as asking again
    shows it."""
    newest, *before = sampler.newest_first()
    older = [(one.name, one.weights) for one in before if one.weights is not None]
    asked = _question(policy, newest.name, prompt, temperature)
    cause = Cause("gone")
    for url, found in sampler.pool.answer_everywhere(asked):
        drawn = Drawn(url, asked, found, newest.weights)
        gap = mean_gap(policy, drawn)
        if gap > limit:
            cause = diagnose(policy, sampler, drawn, older=older, gap=gap)
    return cause


def diagnose(
    policy: ProbeLearner,
    sampler: RemoteSampler,
    drawn: Drawn,
    *,
    older: Sequence[Named],
    gap: float,
) -> Cause:
    """The one mistake that explains most of a gap that is too wide.

    `older`: versions that the server may have answered from instead.
    """
    whole = sampler.pool.holds_one
    tried: list[tuple[float, Cause]] = []
    asked_at = drawn.asked.temperature
    at = _likeliest_temperature(policy, drawn)
    if abs(at - asked_at) > FINEST:
        cause = Cause("raw") if abs(at - 1.0) <= FINEST else Cause("temperature", f"{at:.2f}")
        tried.append((mean_gap(policy, drawn, temperature=at), cause))
    with policy.untrained():
        named = Cause("weights") if whole else Cause("adapter", "the model alone")
        tried.append((mean_gap(policy, drawn, as_it_is=True), named))
    for name, weights in older:
        named = Cause("weights") if whole else Cause("adapter", f"an older one ({name})")
        tried.append((mean_gap(policy, replace(drawn, weights=weights)), named))
    if len(drawn.asked.prompt) > 1:
        shorter = replace(drawn.asked, prompt=drawn.asked.prompt[1:])
        tried.append((mean_gap(policy, replace(drawn, asked=shorter)), Cause("bos")))
    try:
        salted = replace(drawn.asked, cache_salt=secrets.token_hex(8))
        for url, found in sampler.pool.answer_everywhere(salted):
            if url == drawn.url:
                tried.append((mean_gap(policy, replace(drawn, found=found)), Cause("prefix")))
    except SamplingFailed:
        pass  # it knows no salts, so this question stays open
    left, cause = min(tried, key=lambda one: one[0])
    return cause if left <= EXPLAINS * gap else Cause("half" if whole else "prompt")


def mean_gap(
    policy: ProbeLearner,
    drawn: Drawn,
    *,
    temperature: float | None = None,
    as_it_is: bool = False,
) -> float:
    """Mean |learner - server| of the drawn tokens in nats, as if drawn at `temperature`, under the
    weights that should have answered, or the policy `as_it_is`."""
    answers = drawn.found.answers
    tree = TokenTree.from_branches(drawn.asked.prompt, [one.ids for one in answers])
    weights = None if as_it_is else drawn.weights
    under = nullcontext() if weights is None else policy.with_weights(weights)
    with torch.no_grad(), under:
        scores = policy.logprobs([tree], temperature=temperature or drawn.asked.temperature or 1.0)
    rows = scores.logprobs_RT.float().cpu().numpy()
    gaps = [
        np.abs(row[: len(one.ids)] - one.logprobs) for row, one in zip(rows, answers, strict=True)
    ]
    return float(np.mean(np.concatenate(gaps)))


def _likeliest_temperature(policy: ProbeLearner, drawn: Drawn) -> float:
    """The temperature, to two digits, whose scores are nearest to the server's."""
    best = drawn.asked.temperature
    for step, width in ((0.1, 2.0), (FINEST, 0.1)):
        around = np.arange(max(best - width, step), best + width + step / 2, step)
        candidates = {float(one) for one in around} | {best, 1.0}
        best = min(candidates, key=lambda at: mean_gap(policy, drawn, temperature=at))
    return best


def _question(
    policy: ProbeLearner, name: str, prompt: Sequence[int], temperature: float
) -> AnswersWanted:
    return AnswersWanted(
        model=name,
        prompt=tuple(prompt),
        count=ANSWERS,
        temperature=temperature,
        max_tokens=TOKENS,
        seed=secrets.randbelow(2**31 - ANSWERS),
        vocabulary=policy.vocabulary_size,
    )


def _moved(policy: ProbeLearner, prompt: Sequence[int], *, seed: int) -> Mapping[str, torch.Tensor]:
    """What is trained, moved at random until it says something else of the prompt."""
    own = policy.probed()
    tree = TokenTree.from_branches(prompt[:1], [prompt[1:]])
    before = policy_scores(policy, tree, own)
    scale, moved = SMALLEST_MOVE, own
    while np.abs(policy_scores(policy, tree, moved) - before).mean() < WANTED_MOVE:
        generator = torch.Generator().manual_seed(seed)
        moved = {
            name: weight + scale * torch.randn(weight.shape, generator=generator).to(weight.dtype)
            for name, weight in own.items()
        }
        scale *= 1.5
        if scale > 10:
            raise BadInput(
                f"what is trained of {policy.name} changes nothing that the model says, whatever "
                "its weights are; check lora.target_modules"
            )
    return moved


def policy_scores(
    policy: ProbeLearner, tree: TokenTree, weights: Mapping[str, torch.Tensor]
) -> np.ndarray:
    """The learner's log-probabilities of the first branch under `weights`, without gradients."""
    with torch.no_grad(), policy.with_weights(weights):
        return policy.logprobs([tree], temperature=TEMPERATURE).logprobs_RT[0].float().cpu().numpy()
