"""Sampling by servers: what the policy draws from while this process only learns.

Before anything is drawn, what the learner trains is *published*: an adapter, or all weights, under
a new name, loaded on every server that is there, and only then asked for. The older version goes
when no work in flight can be at it: unloaded first, deleted afterwards. The weights of the versions
that may still have drawn something are kept, so that the learner can score what they drew under
what they were.

Token ids are sent, and token ids come back; nothing is tokenised on the way. All answers to a
prompt are one request, which the server prefills once; of a prompt that goes on from earlier turns
its prefix cache has the rest.

Invariants: every answer carries the version that drew it; seeds come from the caller's generator in
the order of the prompts, so the same generator asks for the same draws, whichever servers are
there.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol

import torch

from memograd.errors import BadInput
from memograd.policy.protocol import Published, SampledGroup
from memograd.policy.remote.adapters import ServedVersion, remove_version
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.server import (
    AnswersWanted,
    SamplingFailed,
    ServedAnswer,
    ServedAnswers,
    VllmServer,
)
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import VersionSpan, each, one_span

SEEDS = 2**31
"""Seeds are below this; those of one request's answers follow each other."""

Speaker = Literal["trained", "base", "start"]
"""Who answers: the adapter in training, the model without one, or what training began with."""


class Learner(Protocol):
    """What a remote sampler needs of the policy whose tokens it draws."""

    name: str
    stop: Sequence[str]

    @property
    def end_ids(self) -> frozenset[int]: ...
    @property
    def context_length(self) -> int: ...
    @property
    def vocabulary_size(self) -> int: ...
    @property
    def speaker(self) -> Speaker: ...
    def decode(self, ids: Sequence[int]) -> str: ...

    def prepared(self, speaker: Speaker, *, keep: bool) -> Callable[[int, str], ServedVersion]:
        """What makes a version of this number and name from the weights as they are now. All
        processes ask for it, and one makes the version. `keep`: with the learner's own weights."""
        ...

    def followed(self, published: Published, *, keep: bool) -> ServedVersion:
        """The version that another process made of the weights that are these, too."""
        ...


@dataclass(frozen=True)
class RemoteSampling:
    """What was drawn from: the name asked for, and its version."""

    name: str
    version: int


class RemoteSampler:
    """Draws for `learner` from the servers of `pool`.

    max_staleness: how many versions behind the newest one may still be drawing. sleeps: servers
    give their device's memory back between `rest` and the next draw.
    """

    def __init__(
        self, learner: Learner, pool: ServerPool, *, max_staleness: int = 0, sleeps: bool = False
    ) -> None:
        self.pool = pool
        self._learner = learner
        self._max_staleness = max_staleness
        self._run = secrets.token_hex(3)
        self._versions: list[ServedVersion] = []
        self._start: ServedVersion | None = None
        self._current: RemoteSampling | None = None
        self._own: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._loaded = False
        self._before: ServedVersion | None = None
        self._sleeps = sleeps
        self._asleep = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let the servers forget what they were given, delete it, and close the connections."""
        with suppress(SamplingFailed):  # servers that are gone have forgotten it already
            self._wake()
        for adapter in [*self._versions, *([self._start] if self._start else [])]:
            self.forget(adapter)
        self._versions, self._start, self._current = [], None, None
        if self._loaded:
            self.pool.restore()
        self.pool.close()
        with suppress(OSError):  # another run's versions are in it, or nothing ever was
            self.pool.folder.rmdir()

    @property
    def version(self) -> int:
        """The version that is drawn from; -1 before any was published."""
        return self._current.version if self._current else -1

    def snapshot(
        self, version: int, *, speaker: Speaker = "trained", label: str = ""
    ) -> ServedVersion:
        """The learner's weights as they are now, under a name that nothing had before."""
        made = self._learner.prepared(speaker, keep=self.keeps_older)
        return made(version, self._name(label or str(version)))

    def publisher(self, version: int) -> Callable[[], Published]:
        """What publishes the learner's weights as they are now as `version`; all processes ask for
        it, and one calls it.

        Versions more than `max_staleness` older are forgotten then. It raises `SamplingFailed`
        where no server takes it.
        """
        current = self._current
        if current is not None and current.version == version:
            return lambda: Published(version, current.name)
        made = self._learner.prepared("trained", keep=self.keeps_older)

        def publish() -> Published:
            new = made(version, self._name(str(version)))
            self.load(new)
            self._take(new)
            return Published(version, new.name)

        return publish

    def publish(self, version: int) -> Published:
        """From here on the learner's weights as they are now draw, and are called `version`; for
        one process by itself."""
        return self.publisher(version)()

    @property
    def keeps_older(self) -> bool:
        """Whether older versions may still have drawn what is learnt from."""
        return self._max_staleness > 0

    def _name(self, label: str) -> str:
        return f"mg-{self._run}-{label}"

    def follow(self, published: Published) -> None:
        """Draw from what another process published, of weights that are this one's too."""
        if self._current is not None and self._current.name == published.name:
            return
        version = self._learner.followed(published, keep=self.keeps_older)
        self.pool.know(version)
        self._take(version)

    def _take(self, new: ServedVersion) -> None:
        with self._lock:
            self._versions.append(new)
            self._numbers[new.name] = new.version
            self._current = RemoteSampling(new.name, new.version)
            oldest = new.version - self._max_staleness
            gone = [one for one in self._versions if one.version < oldest]
            self._versions = [one for one in self._versions if one.version >= oldest]
            self._before = gone[-1] if gone else self._before
        for one in gone:
            self.forget(one)

    def rest(self) -> None:
        """The learner needs the device now, if it shares it with the servers."""
        if self._sleeps and not self._asleep:
            self.pool.each(VllmServer.sleep)
            self._asleep = True

    def _wake(self) -> None:
        if self._asleep:
            self.pool.each(VllmServer.wake_up)
            self._asleep = False

    def newest_first(self) -> list[ServedVersion]:
        """The version that is drawn from, those that may be, and the last one that was."""
        with self._lock:
            kept = [*([self._before] if self._before else []), *self._versions]
        return kept[::-1]

    def load(self, version: ServedVersion) -> None:
        """Have it on every server that is there; raises `SamplingFailed` if none takes it."""
        self._wake()
        self._own.add(version.name)
        # Known before: what is under way may end with it while other servers are still loading.
        self._numbers[version.name] = version.version
        self._loaded = True
        self.pool.load(version)

    def forget(self, version: ServedVersion) -> None:
        """Let the servers forget a version, and delete it where it was loaded from here."""
        if version.name not in self._own:
            self.pool.forget(version.name)
            return
        self._own.discard(version.name)
        self.pool.unload(version.name)
        remove_version(self.pool.folder, version.name)

    def weights_of(self, version: int) -> Mapping[str, torch.Tensor] | None:
        """The learner's weights under `version`, if they are still kept."""
        with self._lock:
            return next((one.weights for one in self._versions if one.version == version), None)

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None,
    ) -> list[SampledGroup]:
        """Draw answers, as `memograd.policy.protocol.Sampler.sample` says.

        Raises `SamplingFailed` where no server can, and `BadInput` for a prompt that leaves no room
        for an answer.
        """
        self._wake()
        return self.sample_as(
            self.speaking(),
            prompts,
            num_generations=num_generations,
            temperature=temperature,
            max_completion_length=max_completion_length,
            generator=generator,
        )

    def sample_as(
        self,
        asked: RemoteSampling,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None,
    ) -> list[SampledGroup]:
        """As `sample`, from `asked`, whatever was published since."""
        self._check_room(prompts, max_completion_length)
        counts = each(num_generations, len(prompts))
        pieces = [
            AnswersWanted(
                model=asked.name,
                prompt=tuple(prompt),
                count=count,
                temperature=temperature,
                max_tokens=max_completion_length,
                seed=seed,
                end_ids=tuple(sorted(self._learner.end_ids)),
                stop=tuple(self._learner.stop),
                vocabulary=self._learner.vocabulary_size,
            )
            for prompt, count, seed in zip(
                prompts, counts, seeds(len(prompts), generator), strict=True
            )
        ]
        found = self.pool.answer_all(pieces)
        return [
            self._group(piece, answers, asked.version)
            for piece, answers in zip(pieces, found, strict=True)
        ]

    def speaking(self) -> RemoteSampling:
        """Who is asked now, and under which version what it says is."""
        speaker = self._learner.speaker
        if speaker == "base":
            return RemoteSampling(self.pool.model, -1)
        if speaker == "start":
            if self._start is None:
                self._start = self.snapshot(-1, speaker="start", label="start")
                self.load(self._start)
            return RemoteSampling(self._start.name, -1)
        if self._current is None:
            self.publish(0)
        assert self._current is not None
        return self._current

    @property
    def room(self) -> int:
        """The most tokens that a prompt with its answer may have."""
        return min(self._learner.context_length, self.pool.longest or self._learner.context_length)

    def _check_room(self, prompts: Sequence[Sequence[int]], longest_answer: int) -> None:
        room = self.room
        for index, prompt in enumerate(prompts):
            if len(prompt) + longest_answer > room:
                raise BadInput(
                    f"prompt {index} has {len(prompt)} tokens; with {longest_answer} for the "
                    f"answer it exceeds the {room} tokens that the sampling server takes; start it "
                    "with a larger --max-model-len, or lower max_prompt_length or "
                    "max_completion_length"
                )

    def _group(self, piece: AnswersWanted, found: ServedAnswers, version: int) -> SampledGroup:
        answers = found.answers
        return SampledGroup(
            tree=TokenTree.from_branches(piece.prompt, [answer.ids for answer in answers]),
            logprobs=tuple(answer.logprobs for answer in answers),
            texts=tuple(self._learner.decode(answer.ids) for answer in answers),
            stop_reasons=tuple(answer.stop_reason for answer in answers),
            reused_tokens=found.reused_tokens,
            versions=tuple(self._spans(answer, version) for answer in answers),
        )

    def _spans(self, answer: ServedAnswer, asked: int) -> tuple[VersionSpan, ...]:
        """Who drew the tokens: who was asked, unless the server says more exactly."""
        if not answer.spans:
            return one_span(asked, len(answer.ids)) if asked >= 0 else ()
        return tuple(VersionSpan(self._numbers[name], tokens) for name, tokens in answer.spans)


class PinnedSampler:
    """Draws the actions of one batch of episodes, all from the version that began them."""

    def __init__(self, sampler: RemoteSampler) -> None:
        self._sampler = sampler
        self._asked = sampler.speaking()

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None,
    ) -> list[SampledGroup]:
        """Draw answers; raises what `RemoteSampler.sample` raises."""
        return self._sampler.sample_as(
            self._asked,
            prompts,
            num_generations=num_generations,
            temperature=temperature,
            max_completion_length=max_completion_length,
            generator=generator,
        )


def seeds(count: int, generator: torch.Generator | None) -> list[int]:
    """A seed for each of `count` requests, from the generator; zeros where nothing is drawn."""
    if generator is None:
        return [0] * count
    drawn = torch.randint(0, SEEDS, (count,), generator=generator, device=generator.device)
    return [int(seed) for seed in drawn.tolist()]
