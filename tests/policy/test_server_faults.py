"""Servers that die, break off, are slow, refuse or forget: nothing lost, nothing twice, no hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import torch
from tests.policy.scripted_vllm import Broken, ScriptedVllm

from memograd.errors import BadInput
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import SamplingFailed, VllmServer

DRAW = "/v1/completions"


@pytest.fixture
def sampler(servers, tiny_policy, tmp_path) -> Iterator[RemoteSampler]:
    clients = [VllmServer(one.url, seconds=60, load_seconds=60) for one in servers]
    pool = ServerPool(clients, tmp_path / "adapters", patience=0.5, connections=2)
    made = RemoteSampler(tiny_policy, pool)
    yield made
    made.close()


@pytest.fixture
def silence() -> Iterator[threading.Event]:
    """What a silent server waits for; it comes when the test is over."""
    over = threading.Event()
    yield over
    over.set()


def impatient(sampler: RemoteSampler, server: ScriptedVllm) -> None:
    """Wait for this server no longer than tests can."""
    for place in sampler.pool._places:
        if place.server.url == server.url:
            place.server._seconds = place.server._load_seconds = 0.3


def draw(sampler: RemoteSampler, count: int = 6):
    prompts = [[2 + number, 9, 17] for number in range(count)]
    return sampler.sample(
        prompts,
        num_generations=2,
        temperature=0.9,
        max_completion_length=3,
        generator=torch.Generator().manual_seed(5),
    )


def ids(groups) -> list[list[tuple[int, ...]]]:
    return [[group.tree.branch(row) for row in range(2)] for group in groups]


def test_work_is_shared_and_both_know_the_version(sampler, servers):
    sampler.publish(0)
    draw(sampler)
    assert all(one.answered > 0 and len(one.loaded) == 1 for one in servers)
    assert sum(one.answered for one in servers) == 6


@pytest.mark.parametrize("how", ["breaks off", "is killed", "fails", "is silent"])
def test_a_server_that_goes_in_mid_step_loses_nothing(how, sampler, servers, silence):
    sampler.publish(0)
    expected = ids(draw(sampler))
    first, second = servers
    met = threading.Event()

    def plan(path, body):
        if path in (DRAW, "/health") and (path == DRAW or met.is_set()):
            met.set()
            if how == "fails":
                return 500, "EngineDeadError"
            if how == "is silent":
                silence.wait(60)
            raise Broken
        return None

    first.plan = plan
    if how == "is silent":
        impatient(sampler, first)
    before = second.answered
    assert ids(draw(sampler)) == expected  # the very same draws, whoever made them
    assert met.is_set() and list(sampler.pool.away) == [first.url]
    assert second.answered - before == 6  # each piece once


def test_a_server_that_comes_back_gets_what_it_missed(sampler, servers):
    sampler.publish(0)
    first, second = servers
    first.stop()
    sampler.publish(1)
    draw(sampler)
    assert list(sampler.pool.away) == [first.url]
    first.start()  # without any adapter
    published = sampler.publish(2)
    draw(sampler)
    assert not sampler.pool.away and first.loaded == second.loaded == [published.name]
    assert first.answered > 0


def test_a_server_that_restarted_unseen_is_given_the_adapter_again(sampler, servers):
    published = sampler.publish(0)
    expected = ids(draw(sampler))
    servers[0].stop()
    servers[0].start()
    assert ids(draw(sampler)) == expected
    assert servers[0].loaded in ([], [published.name])  # away for a moment, or told again


def test_no_server_left_ends_with_what_was_said(sampler, servers):
    sampler.publish(0)
    for one in servers:
        one.stop()
    started = time.monotonic()
    with pytest.raises(SamplingFailed, match=r"No sampling server came back within 0\.5 s"):
        draw(sampler)
    assert time.monotonic() - started < 30  # it ends at all
    with pytest.raises(SamplingFailed):
        sampler.publish(1)


def test_a_half_written_adapter_is_told_again_and_then_refused(sampler, servers):
    refusals = []

    def once(path, body):
        if path == "/v1/load_lora_adapter" and not refusals:
            refusals.append(body)
            return 400, "safetensors header is incomplete"
        return None

    servers[0].plan = once
    sampler.publish(0)  # the second time it is there
    assert all(len(one.loaded) == 1 for one in servers) and refusals
    for one in servers:
        one.plan = lambda path, body: (400, "incomplete") if "load_lora" in path else None
    with pytest.raises(SamplingFailed, match=r"could load mg-.*incomplete"):
        sampler.publish(1)


@pytest.mark.slow
def test_a_slow_load_leaves_that_server_out(sampler, servers, silence):
    def slow(path, body):
        if path == "/v1/load_lora_adapter":
            silence.wait(60)
        if path == "/health":
            raise Broken
        return None

    impatient(sampler, servers[0])
    servers[0].plan = slow
    sampler.publish(0)
    draw(sampler)
    assert servers[0].answered == 0 and servers[1].answered == 6


@pytest.mark.slow
def test_a_deleted_folder_is_written_again(sampler, servers):
    import shutil

    published = sampler.publish(0)
    expected = ids(draw(sampler))
    shutil.rmtree(sampler.pool.folder)
    for one in servers:
        one.stop()
        one.start()
    for place in sampler.pool._places:
        place.loaded.clear()
    assert ids(draw(sampler)) == expected
    assert (sampler.pool.folder / published.name / "adapter_model.safetensors").is_file()


def test_a_prompt_that_is_refused_ends_the_step_at_once(sampler, servers):
    for one in servers:
        one.plan = lambda path, body: (400, "too long") if path == DRAW else None
    sampler.publish(0)
    with pytest.raises(SamplingFailed, match="refused with 400: too long"):
        draw(sampler)


def test_servers_of_two_models_and_none_at_all(servers, tmp_path, tiny_model_folder):
    other = ScriptedVllm(tiny_model_folder, name="other")
    try:
        with pytest.raises(BadInput, match="must serve one model"):
            ServerPool([VllmServer(servers[0].url), VllmServer(other.url)], tmp_path)
    finally:
        other.stop()
    with pytest.raises(BadInput, match="start the server"):
        ServerPool([VllmServer(other.url)], tmp_path)
    with pytest.raises(BadInput, match="no URL"):
        VllmServer("localhost:8000")
