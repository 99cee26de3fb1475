"""One thread owns the model; requests from an event loop join its running batch and leave it.

    event loop                      worker thread
    submit(job) ──────────────────> waits in line until the batch has room
                                    prefill with others that wait, then a token a step with all
    on_text, future <────────────── text as it becomes certain; the finished sample

Text is certain (`TextStream`) when no further token can change it: a byte-level token may hold a
part of a character only, and the beginning of a stop string may turn out to be ordinary text, so
both are held back. Of several stop strings the one that is complete first ends the text, since
nothing is drawn after it.

Invariants: a job's future is always settled (answered, failed or cancelled), also when the model
fails or the engine is closed; a cancelled job leaves the batch before the next step; while the
engine rests, nothing touches the model, and nothing that was computed before a rest is used after
it. The pieces of a text, put together, are the text of all tokens up to the stop string, however
they were cut.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch

from memograd.errors import MemogradError
from memograd.policy.continuous import ContinuousSampler, Sample, SampleRequest
from memograd.policy.forward_choice import TOLERANCES, sampling_error
from memograd.policy.model_policy import ModelPolicy
from memograd.policy.sampler import SampledTree
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import TokenMasks

MAX_BATCH: Final = 64
"""Samples that are decoded together; further ones wait in line."""


@dataclass(frozen=True)
class DrawnSample:
    """A finished sample: `text` ends before the stop string, `ids` do not; `stop_reason` is `end`,
    `length` or `stop`; `allowed` is empty where no grammar was followed."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    tops: tuple[list[tuple[int, float]], ...]
    text: str
    stop_reason: str
    allowed: TokenMasks = ()


@dataclass(eq=False)
class EngineJob:
    """One sample wanted; `on_text` is called in the worker thread."""

    request: SampleRequest
    text: TextStream
    on_text: Callable[[str], None] | None = None
    future: Future[DrawnSample] = field(default_factory=Future)
    said: list[str] = field(default_factory=list)
    cancelled: bool = False
    """Set by whoever no longer wants the answer; the worker sees it before the next step."""

    def __post_init__(self) -> None:
        # From here on only the worker settles the future: no race with a cancellation.
        self.future.set_running_or_notify_cancel()

    def say(self, piece: str) -> None:
        """Pass on text that is certain."""
        if piece:
            self.said.append(piece)
            if self.on_text is not None:
                self.on_text(piece)


class Engine:
    """Continuous batching over a `ModelPolicy`, in a thread of its own."""

    def __init__(self, policy: ModelPolicy, *, max_batch: int = MAX_BATCH) -> None:
        self.policy = policy
        self._sampler = ContinuousSampler(policy.model, policy.end_ids)
        self._max_batch = max_batch
        self._waiting: deque[EngineJob] = deque()
        self._live: dict[Sample, EngineJob] = {}
        self._changed = threading.Condition()
        self._resting = self._closed = self._busy = False
        self._checked_length = 0
        self._distrust: MemogradError | None = None
        self._thread = threading.Thread(target=self._work, name="memograd-engine", daemon=True)
        self._thread.start()

    def submit(self, *jobs: EngineJob) -> None:
        """Put jobs in line, at once; raises MemogradError if the engine is closed."""
        with self._changed:
            if self._closed:
                raise MemogradError("The engine is closed: it takes no more requests.")
            self._waiting.extend(jobs)
            self._changed.notify_all()

    def rest(self) -> None:
        """End all jobs and let go of the model: the weights may change now. Resting twice is one
        rest."""
        with self._changed:
            self._resting = True
            while self._busy:
                self._changed.wait()
            self._drop_all(MemogradError("The weights are about to change: ask again."))
            self._sampler.forget()

    def resume(self) -> None:
        """Serve again, with the weights as they are now."""
        with self._changed:
            self._resting = False
            self._changed.notify_all()

    def close(self) -> None:
        """End all jobs and the thread. Closing twice is harmless."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        torch.set_grad_enabled(False)
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                while not self._closed and (
                    self._resting or not (self._waiting or self._sampler.samples)
                ):
                    self._changed.wait()
                if self._closed:
                    self._drop_all(MemogradError("The engine was closed."))
                    return
                self._busy = True
                room = self._max_batch - len(self._live)
                newcomers = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
            self._one_step(newcomers)

    def _one_step(self, newcomers: list[EngineJob]) -> None:
        for sample, job in list(self._live.items()):
            if job.cancelled:
                self._sampler.remove(sample)
                del self._live[sample]
                job.future.set_exception(MemogradError("Nobody wants the answer any more."))
        if not self._live:
            self.policy.prepare_to_sample()  # training may have switched the adapter's dropout on
        while newcomers:
            places = set(self._sampler.together([job.request for job in newcomers]))
            self._join([newcomers[place] for place in sorted(places)])
            newcomers = [job for place, job in enumerate(newcomers) if place not in places]
        try:
            for sample in self._sampler.step():
                self._advance(sample)
        except Exception as error:  # of all jobs in the batch: nobody else can tell them
            logger.exception("a decoding step failed")
            for job in self._live.values():
                job.future.set_exception(error)
            self._live.clear()
            self._sampler = ContinuousSampler(self.policy.model, self.policy.end_ids)

    def _join(self, jobs: list[EngineJob]) -> None:
        """Let jobs into the batch, together; what is wrong with one of them is that one's alone."""
        for job in jobs:
            if job.cancelled:
                job.future.set_exception(MemogradError("Nobody wants the answer any more."))
        jobs = [job for job in jobs if not job.future.done()]
        if not jobs:
            return
        try:
            samples = self._sampler.add([job.request for job in jobs])
        except Exception as error:  # the job's, whatever it is
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
            else:
                for job in jobs:
                    self._join([job])
            return
        self._live |= zip(samples, jobs, strict=True)
        for sample in samples:
            self._advance(sample)

    def _advance(self, sample: Sample) -> None:
        """A sample has one more token: pass its text on, and settle the job if it is over."""
        job = self._live[sample]
        over = sample.stop_reason is not None
        # The end token has a text of its own in some tokenizers; it is no part of the answer.
        if sample.stop_reason != "end":
            job.say(job.text.push(sample.ids[-1]))
        if over and not job.text.stopped:
            job.say(job.text.finish())
        if job.text.stopped and not over:
            self._sampler.remove(sample)
        if not over and not job.text.stopped:
            return
        del self._live[sample]
        try:
            self._check(sample)
        except Exception as error:  # a distrusted model, or no memory left for the row forward
            job.future.set_exception(error)
            return
        stop_reason = "stop" if job.text.stopped else str(sample.stop_reason)
        drawn = DrawnSample(
            tuple(sample.ids),
            tuple(sample.logprobs),
            tuple(sample.tops),
            "".join(job.said),
            stop_reason,
            tuple(sample.allowed),
        )
        job.future.set_result(drawn)

    def _check(self, sample: Sample) -> None:
        """Compare the log-probabilities of a sample longer than any before with the row forward.

        An architecture that this way of batching does not fit (limited attention, scaled logits)
        is noticed here, and nothing is served from it.
        """
        if self._distrust is None:
            length = len(sample.request.prompt) + len(sample.ids)
            if length < 2 * self._checked_length:
                return
            self._checked_length = length
            held = [tuple(sample.allowed)] if sample.allowed else None
            tree = TokenTree.from_branches(sample.request.prompt, [sample.ids], allowed=held)
            drawn = (np.asarray(sample.logprobs, dtype=np.float32),)
            error_nats = sampling_error(
                self.policy.model,
                [SampledTree(tree, drawn, ("end",))],
                temperature=sample.request.temperature or 1.0,
            )
            if error_nats <= TOLERANCES.get(self.policy.model.dtype, (5e-4, 0))[0]:
                return
            self._distrust = MemogradError(
                f"{self.policy.name} computes other probabilities in a batch than alone (they "
                f"differ by {error_nats:.2g} nats), so it cannot be served from this process; put "
                "a server such as vLLM behind the gateway."
            )
        raise self._distrust

    def _drop_all(self, error: MemogradError) -> None:
        """Settle whatever waits or runs; the worker is not busy."""
        for sample, job in self._live.items():
            self._sampler.remove(sample)
            job.future.set_exception(error)
        self._live.clear()
        while self._waiting:
            self._waiting.popleft().future.set_exception(error)


UNFINISHED = "\ufffd"
LONGEST_CHARACTER = 8
"""Tokens after which what is still no character is taken for broken bytes."""


class TextStream:
    """One answer's text; `decode` gives the text of any stretch of tokens, `stops` end it."""

    def __init__(self, decode: Callable[[list[int]], str], stops: Sequence[str] = ()) -> None:
        self._decode = decode
        self._stops = tuple(stops)
        self._ids: list[int] = []
        self._begin = self._whole = 0  # the last stretch that ended with a whole character
        self._held = ""
        self.stopped = False

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that end it."""
        return self._stops

    def push(self, token: int) -> str:
        """Take a token; returns the text that is certain now: often nothing, and nothing any more
        after a stop string."""
        if self.stopped:
            return ""
        self._ids.append(token)
        before = self._decode(self._ids[self._begin : self._whole])
        now = self._decode(self._ids[self._begin :])
        unfinished = len(self._ids) - self._whole < LONGEST_CHARACTER and now.endswith(UNFINISHED)
        if unfinished:
            return ""
        self._begin, self._whole = self._whole, len(self._ids)
        return self._release(now[len(before) :], last=False)

    def finish(self) -> str:
        """The rest, once there are no more tokens."""
        if self.stopped:
            return ""
        before = self._decode(self._ids[self._begin : self._whole])
        now = self._decode(self._ids[self._begin :])
        return self._release(now[len(before) :], last=True)

    def _release(self, piece: str, *, last: bool) -> str:
        text = self._held + piece
        places = [(text.find(stop), len(stop)) for stop in self._stops]
        found = [(place + length, place) for place, length in places if place >= 0]
        if found:
            self.stopped, self._held = True, ""
            _, begin = min(found)
            return text[:begin]
        keep = 0 if last else max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of `text` may begin `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if stop.startswith(text[-n:])), 0)


logger = logging.getLogger(__name__)
