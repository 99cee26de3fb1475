"""The engine's thread: every job is settled, whatever happens to the model or to the asker."""

from __future__ import annotations

import threading

import pytest
import torch

from memograd.errors import MemogradError
from memograd.gateway.engine import Engine, EngineJob, TextStream
from memograd.policy.continuous import SampleRequest


@pytest.fixture
def engine(tiny_policy):
    engine = Engine(tiny_policy, max_batch=3)
    yield engine
    engine.close()


def job(engine: Engine, seed: int = 0, *, tokens: int = 8, **given) -> EngineJob:
    decode = engine.policy.tokenizer.decode
    request = SampleRequest((5, 6, 7, seed + 2), max_tokens=tokens, seed=seed)
    return EngineJob(request, TextStream(lambda ids: str(decode(ids))), **given)


def test_more_jobs_than_places_are_all_answered(engine) -> None:
    jobs = [job(engine, seed) for seed in range(10)]
    for one in jobs:
        engine.submit(one)
    alone = Engine(engine.policy, max_batch=1)
    for one in jobs:
        again = job(engine, one.request.seed)
        alone.submit(again)
        assert one.future.result(60).ids == again.future.result(60).ids
    alone.close()


def test_a_cancelled_job_leaves_the_batch(engine) -> None:
    said = threading.Event()
    endless = job(engine, tokens=100_000, on_text=lambda _: said.set())
    endless.request = SampleRequest((5, 6), max_tokens=4000, temperature=0.0)
    engine.submit(endless)
    assert said.wait(60)
    endless.cancelled = True
    with pytest.raises(MemogradError, match="Nobody wants"):
        endless.future.result(60)
    after = job(engine)
    engine.submit(after)
    assert after.future.result(60).ids


def test_while_it_rests_nothing_is_drawn_and_new_weights_count(engine) -> None:
    first = job(engine)
    engine.submit(first)
    before = first.future.result(60)
    running = job(engine, 1, tokens=4000)
    engine.submit(running)
    engine.rest()
    # It was ended by the rest, unless it had ended by itself.
    assert running.future.done()
    with torch.no_grad():
        for parameter in engine.policy.parameters():
            parameter.mul_(3)
    waiting = job(engine)
    engine.submit(waiting)
    assert not waiting.future.done()
    engine.resume()
    fresh = Engine(engine.policy)
    expected = job(engine)
    fresh.submit(expected)
    after = waiting.future.result(60)
    assert after.logprobs == pytest.approx(expected.future.result(60).logprobs, abs=1e-5)
    assert after.logprobs[0] != pytest.approx(before.logprobs[0], abs=1e-3)
    fresh.close()


def test_closing_settles_what_waits(tiny_policy) -> None:
    engine = Engine(tiny_policy)
    engine.rest()
    waiting = job(engine)
    engine.submit(waiting)
    engine.close()
    with pytest.raises(MemogradError, match="closed"):
        waiting.future.result(60)
    with pytest.raises(MemogradError, match="closed"):
        engine.submit(job(engine))


def test_weights_that_are_no_numbers_fail_their_jobs_only(engine) -> None:
    saved = [parameter.detach().clone() for parameter in engine.policy.parameters()]
    engine.rest()
    with torch.no_grad():
        for parameter in engine.policy.parameters():
            parameter.fill_(float("nan"))
    engine.resume()
    broken = job(engine)
    engine.submit(broken)
    with pytest.raises(MemogradError, match="not numbers"):
        broken.future.result(60)
    engine.rest()
    with torch.no_grad():
        for parameter, value in zip(engine.policy.parameters(), saved, strict=True):
            parameter.copy_(value)
    engine.resume()
    whole = job(engine)
    engine.submit(whole)
    assert whole.future.result(60).ids


def test_a_model_that_a_batch_does_not_fit_is_not_served(tiny_policy, monkeypatch) -> None:
    """A head that is not all there is between states and logits: the engine would draw from
    another distribution than the model's."""
    from memograd.policy import continuous

    monkeypatch.setattr(
        continuous, "head_of", lambda model: lambda states: 0.3 * model.lm_head(states)
    )
    engine = Engine(tiny_policy)
    asked = job(engine)
    engine.submit(asked)
    with pytest.raises(MemogradError, match="cannot be served from this process"):
        asked.future.result(60)
    engine.close()


@pytest.mark.parametrize("tokens", [1, 4])
def test_a_check_that_fails_settles_its_job_and_the_engine_goes_on(
    tiny_policy, monkeypatch, tokens: int
) -> None:
    """The row forward of a long sample may find no memory left."""
    from memograd.gateway import engine as module

    def no_memory(*_, **__):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(module, "sampling_error", no_memory)
        engine = Engine(tiny_policy)
        try:
            failing = job(engine, tokens=tokens)
            engine.submit(failing)
            with pytest.raises(RuntimeError, match="out of memory"):
                failing.future.result(60)
            after = job(engine, tokens=tokens)
            engine.submit(after)
            assert after.future.result(60).ids  # shorter than what was to be checked
        finally:
            engine.close()
