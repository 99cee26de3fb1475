"""Asking a server: what is tried again, what is not, and that no answer is ever made up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from served import Lengths, serving

from memograd.errors import BadInput, MemogradError
from memograd.reward_model import reward as client_module
from memograd.reward_model.api import Item
from memograd.reward_model.reward import ITEMS, RemoteRewardModel
from memograd.reward_model.server import make_app


class Scripted:
    """A server that gives the answers of a list in turn, the last one forever."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = [(200, "{}")]
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                status, text = outer.answers[min(outer.asked, len(outer.answers) - 1)]
                outer.asked += 1
                if status == 0:  # hang up without an answer
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *arguments: object) -> None:
                """Stay quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def scripted(monkeypatch) -> Iterator[Scripted]:
    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.001)
    made = Scripted()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


GOOD = (200, json.dumps({"scores": [1.5]}))
ONE = [Item("q", "a")]


def test_scores_come_back_in_order_over_several_requests() -> None:
    scorer = Lengths()
    items = [Item("q", "x" * (n % 7)) for n in range(2 * ITEMS + 5)]
    with serving(make_app(scorer, name="l")) as url:
        found = RemoteRewardModel(url + "/").score(items)
        assert found == [float(n % 7) for n in range(2 * ITEMS + 5)]
        assert RemoteRewardModel(url).length_slope() == 0.5
        assert RemoteRewardModel(url).score([]) == []


def test_the_key_of_the_environment_is_sent(monkeypatch) -> None:
    with serving(make_app(Lengths(), name="l", api_key="geheim")) as url:
        with pytest.raises(MemogradError, match="status 401"):
            RemoteRewardModel(url).score(ONE)
        monkeypatch.setenv("MEMOGRAD_REWARD_MODEL_KEY", "geheim")
        assert RemoteRewardModel(url).score(ONE) == [1.0]


@pytest.mark.parametrize("failure", [(503, "busy"), (500, "oops"), (429, "slow down"), (0, "")])
def test_a_failure_that_may_pass_is_tried_again(scripted, failure) -> None:
    scripted.answers = [failure, failure, GOOD]
    assert RemoteRewardModel(scripted.url, retries=2).score(ONE) == [1.5]
    assert scripted.asked == 3


def test_when_the_tries_are_used_up_it_raises(scripted) -> None:
    scripted.answers = [(503, "busy")]
    with pytest.raises(MemogradError, match=r"did not answer /score-batch \(tries: 3; status 503"):
        RemoteRewardModel(scripted.url, retries=2).score(ONE)
    assert scripted.asked == 3


def test_a_refusal_is_not_tried_again(scripted) -> None:
    scripted.answers = [(422, "no such field")]
    with pytest.raises(MemogradError, match="no such field"):
        RemoteRewardModel(scripted.url).score(ONE)
    assert scripted.asked == 1


@pytest.mark.parametrize(
    "text", ["{}", "not JSON", '{"scores": [null]}', '{"scores": ["high"]}', '{"scores": [NaN]}']
)
def test_an_answer_that_is_no_score_is_an_error(scripted, text) -> None:
    scripted.answers = [(200, text)]
    with pytest.raises(MemogradError, match="no reward model's server"):
        RemoteRewardModel(scripted.url).score(ONE)


def test_a_wrong_number_of_scores_is_an_error(scripted) -> None:
    scripted.answers = [(200, json.dumps({"scores": [1.0, 2.0]}))]
    with pytest.raises(MemogradError, match="gave 2 scores for 1 answers"):
        RemoteRewardModel(scripted.url).score(ONE)


def test_a_server_that_does_not_answer_in_time(scripted) -> None:
    lock = threading.Event()

    class Slow(Lengths):
        def score(self, items):
            lock.wait(30)
            return super().score(items)

    with serving(make_app(Slow(), name="slow")) as url:
        with pytest.raises(MemogradError, match="timed out"):
            RemoteRewardModel(url, timeout=0.05, retries=1).score(ONE)
        lock.set()


def test_an_address_must_be_one() -> None:
    with pytest.raises(BadInput, match="must begin with http"):
        RemoteRewardModel("localhost:8200")


def test_a_batch_of_too_many_bytes_is_asked_for_in_parts() -> None:
    scorer = Lengths()
    items = [Item("问" * 300, "x" * n) for n in range(20)]
    with serving(make_app(scorer, name="l", max_body_bytes=5000)) as url:
        assert RemoteRewardModel(url).score(items) == [float(n) for n in range(20)]
        with pytest.raises(MemogradError, match="status 413"):
            RemoteRewardModel(url).score([Item("问" * 3000, "x")])


def test_half_a_character_cannot_be_sent() -> None:
    with pytest.raises(MemogradError, match="half a character"):
        RemoteRewardModel("http://127.0.0.1:9").score([Item("q", "\ud83d")])


@pytest.mark.parametrize("url", ["http://", "http://x:port", "http:///score"])
def test_an_address_without_a_host_is_none(url: str) -> None:
    with pytest.raises(BadInput, match="is no address"):
        RemoteRewardModel(url)
