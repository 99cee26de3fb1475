"""Answers of the gateway drawn by sampling servers: ids are sent, and ids come back.

It does what `memograd.gateway.engine` does, without a model here: the servers batch. The gateway
tokenises as ever, so a conversation that goes on goes on from the very ids that were drawn. Text
comes whole, when the answer is there.

Invariants: a job's future is always settled; all jobs between a `resume` and the next `rest` are
drawn by one version of the weights; a job that a rest ended is never settled by what comes later.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from memograd.errors import MemogradError
from memograd.gateway.engine import DrawnSample, EngineJob
from memograd.policy.remote.sampler import RemoteSampler, RemoteSampling
from memograd.policy.remote.server import AnswersWanted, ServedAnswer

logger = logging.getLogger(__name__)

AT_ONCE = 256


class RemoteEngine:
    """Draws jobs from the servers of `sampler`, `AT_ONCE` of them together.

    end_ids: tokens that end an answer.
    """

    def __init__(self, sampler: RemoteSampler, end_ids: frozenset[int]) -> None:
        self._sampler = sampler
        self._end_ids = tuple(sorted(end_ids))
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="memograd-remote-engine")
        self._live: set[EngineJob] = set()
        self._changed = threading.Condition()
        self._asked: RemoteSampling | None = None
        self._resting = self._closed = False

    def submit(self, *jobs: EngineJob) -> None:
        """Draw jobs; raises MemogradError if the engine is closed."""
        with self._changed:
            if self._closed:
                raise MemogradError("The engine is closed: it takes no more requests.")
            self._live.update(jobs)
        for job in jobs:
            self._threads.submit(self._work, job)

    def rest(self) -> None:
        """End all jobs: the weights may change now. Resting twice is one rest."""
        with self._changed:
            self._resting, self._asked = True, None
            ended, self._live = self._live, set()
        for job in ended:
            job.future.set_exception(MemogradError("The weights are about to change: ask again."))

    def resume(self) -> None:
        """Serve again, by whoever speaks now, whatever is published while it does."""
        asked = self._sampler.speaking()
        with self._changed:
            self._resting, self._asked = False, asked
            self._changed.notify_all()

    @property
    def version(self) -> int | None:
        """The version that all jobs are drawn by; None: what training began with, or resting."""
        asked = self._asked
        return None if asked is None or asked.version < 0 else asked.version

    def close(self) -> None:
        """End all jobs. Closing twice is harmless."""
        with self._changed:
            self._closed = True
            ended, self._live = self._live, set()
            self._changed.notify_all()
        for job in ended:
            job.future.set_exception(MemogradError("The engine was closed."))
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _work(self, job: EngineJob) -> None:
        try:
            with self._changed:
                while self._resting and not self._closed and job in self._live:
                    self._changed.wait()
                if job not in self._live:
                    return
                if job.cancelled:
                    raise MemogradError("Nobody wants the answer any more.")
                if self._asked is None:
                    self._asked = self._sampler.speaking()
                asked = self._asked
            drawn = self._drawn(job, self._answer(job, asked))
        except Exception as error:  # of this job: nobody else can tell who waits for it
            if not isinstance(error, MemogradError):
                logger.exception("a job of the sampling servers failed")
            if self._settles(job):
                job.future.set_exception(error)
            return
        if self._settles(job):
            job.future.set_result(drawn)

    def _settles(self, job: EngineJob) -> bool:
        """Whether the job is still this thread's to settle."""
        with self._changed:
            mine = job in self._live
            self._live.discard(job)
            return mine

    def _answer(self, job: EngineJob, asked: RemoteSampling) -> ServedAnswer:
        request = job.request
        wanted = AnswersWanted(
            model=asked.name,
            prompt=tuple(request.prompt),
            count=1,
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            seed=request.seed % 2**31,
            end_ids=self._end_ids,
            stop=job.text.stops,
            top_p=request.top_p,
            top_logprobs=request.top_logprobs,
        )
        answer = self._sampler.pool.answer(wanted).answers[0]
        if any(name != asked.name for name, _ in answer.spans):
            raise MemogradError(
                "The weights were exchanged in the middle of an answer, and calls of an agent are "
                "drawn by one version: use sampler.max_staleness=0."
            )
        return answer

    def _drawn(self, job: EngineJob, answer: ServedAnswer) -> DrawnSample:
        """The answer as the gateway knows them; says its text."""
        # The end token has a text of its own in some tokenizers; it is no part of the answer.
        ended = answer.ids[-1] in self._end_ids
        for token in answer.ids[:-1] if ended else answer.ids:
            job.say(job.text.push(token))
        if not job.text.stopped:
            job.say(job.text.finish())
        return DrawnSample(
            ids=answer.ids,
            logprobs=tuple(float(value) for value in answer.logprobs),
            tops=tuple(list(one) for one in answer.tops),
            text="".join(job.said),
            stop_reason="stop" if job.text.stopped else answer.stop_reason,
        )
