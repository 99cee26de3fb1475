"""All weights to servers: every token under the version that drew it, whatever happens to them."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.policy.scripted_vllm import WHOLE_FAULTS, Broken
from tests.quick import quick

from memograd.errors import BadInput
from memograd.policy.full_model import FullModel
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.probe import probe
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import AnswersWanted, SamplingFailed
from memograd.policy.remote.weights_server import WeightsServer

GENERATE, RELOAD = "/inference/v1/generate", "/collective_rpc"
TEMPERATURE = 0.8
LIMIT = 2e-3


@pytest.fixture
def policy(tiny_model_folder) -> FullModel:
    return FullModel.open(str(tiny_model_folder), reference=False, device="cpu")


@pytest.fixture
def remote(servers, policy, tmp_path) -> Iterator[RemoteSampler]:
    yield from sampling(servers, policy, tmp_path)


@pytest.fixture
def stale(servers, policy, tmp_path) -> Iterator[RemoteSampler]:
    yield from sampling(servers[:1], policy, tmp_path, max_staleness=1)


def sampling(servers, policy, folder: Path, **settings) -> Iterator[RemoteSampler]:
    clients = [WeightsServer(one.url, seconds=60, load_seconds=60) for one in servers]
    pool = ServerPool(clients, folder / "versions", patience=1, connections=2)
    policy.remote = RemoteSampler(policy, pool, **settings)
    yield policy.remote
    policy.remote.close()
    policy.remote = None


def move(policy: FullModel, seed: int = 7, scale: float = 0.05) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * scale)


def draw(policy: FullModel, *, count: int = 4, tokens: int = 6, seed: int = 0):
    return policy.sample(
        [[2 + number, 9, 17, 30] for number in range(count)],
        num_generations=2,
        temperature=TEMPERATURE,
        max_completion_length=tokens,
        generator=torch.Generator().manual_seed(seed),
    )


def gap(policy: FullModel, groups) -> float:
    with torch.no_grad():
        scores = policy.logprobs([group.tree for group in groups], temperature=TEMPERATURE)
    rows = [row for group in groups for row in group.logprobs]
    return max(
        float((scores.logprobs_RT[place, : len(row)] - torch.from_numpy(row)).abs().max())
        for place, row in enumerate(rows)
    )


def ids(groups) -> list[list[tuple[int, ...]]]:
    return [[group.tree.branch(row) for row in range(2)] for group in groups]


def versions(groups) -> set[int]:
    return {span.version for group in groups for spans in group.versions for span in spans}


def test_every_version_is_what_the_learner_scores_and_only_the_newest_is_kept(
    remote, servers, policy
):
    for version in range(3):
        published = policy.publish(version)
        groups = draw(policy, seed=version)
        assert gap(policy, groups) < 1e-4 and versions(groups) == {version}
        assert [one.weights for one in servers] == [published.name] * 2
        assert all(one.answered > 0 for one in servers)
        folders = [path.name for path in remote.pool.folder.iterdir() if path.is_dir()]
        assert folders == [published.name]
        move(policy, seed=version)
    assert gap(policy, groups) > 1e-2  # unpublished weights are seen


@pytest.mark.slow
def test_servers_are_left_as_they_were_found(servers, policy, tmp_path):
    asked = AnswersWanted("tiny", (2, 9, 17, 30), 2, TEMPERATURE, 6, seed=5)

    def said() -> list[tuple[int, ...]]:
        client = WeightsServer(servers[0].url)
        try:
            return [one.ids for one in client.answer(asked).answers]
        finally:
            client.close()

    before = said()
    for _ in sampling(servers, policy, tmp_path):
        move(policy, scale=0.5)
        policy.publish(0)
        draw(policy)
        assert said() != before
    assert said() == before
    assert [one.weights for one in servers] == ["default"] * 2
    assert not (tmp_path / "versions").exists()


def test_a_server_that_restarted_is_found_by_its_name_and_told_again(remote, servers, policy):
    move(policy)
    published = policy.publish(3)
    expected = ids(draw(policy))
    servers[0].stop()
    servers[0].start()  # it answers, from the weights of its folder
    assert servers[0].weights == "default"
    groups = draw(policy)
    assert ids(groups) == expected and versions(groups) == {3}
    assert servers[0].weights in ("default", published.name)
    draw(policy)
    assert gap(policy, draw(policy)) < 1e-4


@pytest.mark.slow
def test_a_server_that_somebody_else_told_to_load_is_told_again(remote, servers, policy):
    move(policy)
    policy.publish(0)
    expected = ids(draw(policy))
    for one in servers:
        other = WeightsServer(one.url)
        other.load("mg-another-5", str(one.folder))
        other.close()
    groups = draw(policy)
    assert ids(groups) == expected and versions(groups) == {0}


@pytest.mark.slow
def test_a_server_that_loads_nothing_but_its_own_ends_the_run_by_name(remote, servers, policy):
    policy.publish(0)

    def another(path, body):
        if path == GENERATE:
            for one in servers:
                one.weights = "mg-another-5"
        return None

    for one in servers:
        one.plan = another
    with pytest.raises(SamplingFailed, match=r"drew from 'mg-another-5' where mg-.*-0 was asked"):
        draw(policy)


def test_a_server_that_dies_while_it_loads_gets_the_version_when_it_is_back(
    remote, servers, policy
):
    first, second = servers
    policy.publish(0)
    move(policy)

    def broken(path, body):
        if path == RELOAD:
            first.stop()
            raise Broken
        return None

    first.plan = broken
    published = policy.publish(1)
    groups = draw(policy)
    assert gap(policy, groups) < 1e-4 and versions(groups) == {1}
    assert list(remote.pool.away) == [first.url] and second.weights == published.name
    first.plan = lambda path, body: None
    first.start()
    move(policy)
    published = policy.publish(2)
    assert gap(policy, draw(policy)) < 1e-4
    assert [one.weights for one in servers] == [published.name] * 2


@pytest.mark.slow
def test_a_failed_load_leaves_a_name_that_nobody_asks_for(remote, servers, policy):
    policy.publish(0)
    move(policy)
    for one in servers:
        one.plan = lambda path, body: (500, "header incomplete") if path == RELOAD else None
    with pytest.raises(SamplingFailed, match=r"could load mg-.*-1 .*header incomplete"):
        policy.publish(1)
    assert all(one.weights.startswith("loading mg-") for one in servers)


@pytest.mark.slow
def test_a_deleted_folder_ends_the_run_when_a_server_needs_it(remote, servers, policy):
    policy.publish(0)
    shutil.rmtree(remote.pool.folder)
    draw(policy)  # those that have it loaded go on
    for one in servers:
        one.stop()
        one.start()
    with pytest.raises(SamplingFailed, match="was deleted while servers were loading"):
        draw(policy)


def test_what_it_was_not_started_for_is_refused_before(servers, policy, tmp_path):
    servers[0].scale_out = False
    with pytest.raises(BadInput, match=r"cannot take all weights.*--enable-scale-out"):
        next(sampling(servers[:1], policy, tmp_path))
    servers[0].scale_out = True
    servers[0].plan = lambda path, body: (404, "Not Found") if path == "/weight_info" else None
    with pytest.raises(BadInput, match="start it with VLLM_SERVER_DEV_MODE=1"):
        next(sampling(servers[:1], policy, tmp_path))


SAYS = {
    "stale prefix": "stale prefix cache",
    "old weights": "it answers from older weights than those that it was told to load",
    "old output layer": "did not load all weights.*keeps the old output layer where",
}


@pytest.mark.parametrize("fault", quick(WHOLE_FAULTS, (1,)))
def test_a_planted_fault_is_refused_by_name(fault, remote, servers, policy):
    servers[1].fault = fault
    with pytest.raises(BadInput, match=SAYS[fault]):
        probe(policy, remote, policy.encode("What is kept?"), limit=LIMIT)
    servers[1].fault = None


@pytest.mark.slow
def test_a_server_that_is_right_passes_and_nothing_counts_as_trained(remote, policy):
    before = [weight.detach().clone() for weight in policy.parameters()]
    assert probe(policy, remote, policy.encode("What is kept?"), limit=LIMIT) < 1e-4
    for was, weight in zip(before, policy.parameters(), strict=True):
        assert torch.equal(was, weight)
    with policy.at_start():
        assert policy.remote is remote  # nothing has moved: servers have what training began with
    move(policy)
    trained = policy.model
    with policy.at_start():
        assert policy.remote is None and policy.model is not trained
        (group, *_) = draw(policy)
        assert group.versions == ((), ())
    assert policy.remote is remote and policy.model is trained


def test_weights_exchanged_in_the_middle_of_an_answer_have_their_own_tokens(stale, servers, policy):
    """An answer goes on under the newer weights, and each of its tokens is scored by its own."""
    policy.publish(0)
    begun, moved = threading.Event(), threading.Event()
    drawn: list = []

    def between() -> None:
        if not begun.is_set():
            begun.set()
            assert moved.wait(60)

    servers[0].between = between
    thread = threading.Thread(target=lambda: drawn.extend(draw(policy, count=1, tokens=12)))
    thread.start()
    assert begun.wait(60)
    move(policy, scale=0.2)
    policy.publish(1)
    moved.set()
    thread.join(60)
    (group,) = drawn
    spans = group.versions[0]
    assert [span.version for span in spans] == [0, 1]
    now = policy.logprobs([group.tree], temperature=TEMPERATURE).logprobs_RT[0].detach()
    then = policy.logprobs_of(0, [group.tree], temperature=TEMPERATURE).logprobs_RT[0]
    said = torch.from_numpy(group.logprobs[0])
    cut = spans[0].tokens
    assert (then[:cut] - said[:cut]).abs().max() < 1e-4
    assert (now[cut : len(said)] - said[cut:]).abs().max() < 1e-4
    assert (then[cut : len(said)] - said[cut:]).abs().max() > 1e-2  # and by no other


def test_an_answer_that_ends_before_all_servers_have_the_new_weights_names_them(
    servers, policy, tmp_path
):
    """One server draws on with the new weights while another one is still told to load them."""
    begun, told, ended = (threading.Event() for _ in range(3))
    drawn: list = []

    def between() -> None:
        if not begun.is_set():
            begun.set()
            assert told.wait(60)

    def quick(path, body):
        if path == "/resume":
            told.set()
        return None

    def slow(path, body):
        if path == RELOAD:
            assert ended.wait(60)
        return None

    def draws() -> None:
        try:
            drawn.extend(draw(policy, count=1, tokens=12))
        finally:
            ended.set()

    for _ in sampling(servers, policy, tmp_path, max_staleness=1):
        policy.publish(0)
        servers[0].between, servers[0].plan, servers[1].plan = between, quick, slow
        thread = threading.Thread(target=draws)
        thread.start()
        assert begun.wait(60)
        move(policy, scale=0.2)
        publishing = threading.Thread(target=policy.publish, args=(1,))
        publishing.start()
        thread.join(60)
        publishing.join(60)
        assert versions(drawn) == {0, 1}
        assert [one.weights for one in servers] == [policy.remote.speaking().name] * 2
