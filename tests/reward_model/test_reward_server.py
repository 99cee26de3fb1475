"""The server as a client sees it, over HTTP on a real port."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from served import Lengths, serving

from memograd.errors import BadInput
from memograd.reward_model.api import Item
from memograd.reward_model.model import RewardModel
from memograd.reward_model.server import check_binding, make_app

CHAT = [{"role": "user", "content": "药怎么吃？"}]

# Without certificates: reading them for every request would take longer than the requests.
LIMITS = httpx.Limits(max_keepalive_connections=0)  # a port may be another server's the next time
PLAIN = httpx.Client(verify=False, timeout=60, limits=LIMITS)


@pytest.fixture
def scorer() -> Lengths:
    return Lengths()


@pytest.fixture
def client(scorer: Lengths) -> Iterator[httpx.Client]:
    app = make_app(scorer, name="lengths", max_body_bytes=2000)
    with serving(app) as url, httpx.Client(base_url=url, verify=False, timeout=60) as opened:
        yield opened


def test_health(client) -> None:
    answer = client.get("/health")
    assert answer.json() == {"status": "ok", "model": "lengths", "length_slope": 0.5}


def test_score(client, scorer) -> None:
    answer = client.post("/score", json={"prompt": CHAT, "answer": "饭后服用"})
    assert (answer.status_code, answer.json()) == (200, {"score": 4.0})
    assert scorer.asked == [Item(CHAT, "饭后服用")]
    controlled = {"prompt": "q", "answer": "饭后服用", "length_control": True}
    assert client.post("/score", json=controlled).json() == {"score": 2.0}


def test_score_pair(client) -> None:
    found = client.post("/score-pair", json={"prompt": "q", "first": "a", "second": "abc"}).json()
    assert found.pop("probability") == pytest.approx(1 / (1 + math.exp(2)))
    assert found == {"first": 1.0, "second": 3.0, "margin": -2.0, "better": "second"}
    tie = client.post("/score-pair", json={"prompt": "q", "first": "a", "second": "b"}).json()
    assert (tie["better"], tie["probability"]) == ("tie", 0.5)


def test_score_batch(client) -> None:
    items = [{"prompt": "q", "answer": "x" * n} for n in (3, 1, 2)]
    answer = client.post("/score-batch", json={"items": items})
    assert answer.json() == {"scores": [3.0, 1.0, 2.0]}


@pytest.mark.parametrize(
    "path, body",
    [
        ("/score", {"prompt": "q"}),
        ("/score", {"prompt": [], "answer": "a"}),
        ("/score", {"prompt": [{"role": "wizard", "content": "q"}], "answer": "a"}),
        ("/score", {"prompt": "q", "answer": "a", "answers": "b"}),
        ("/score-pair", {"prompt": "q", "first": "a"}),
        ("/score-batch", {"items": []}),
        ("/score-batch", {"items": [{"prompt": "q", "answer": 3}]}),
    ],
)
def test_what_does_not_fit_reaches_no_model(client, scorer, path, body) -> None:
    assert client.post(path, json=body).status_code == 422
    assert not scorer.asked


def test_too_many_answers_are_refused() -> None:
    with serving(make_app(Lengths(), name="l")) as url:
        items = [{"prompt": "q", "answer": "a"}] * 257
        assert PLAIN.post(f"{url}/score-batch", json={"items": items}).status_code == 422


def test_a_failure_is_an_error_with_its_sentence(client) -> None:
    answer = client.post("/score", json={"prompt": "q", "answer": "broken"})
    assert (answer.status_code, answer.json()) == (500, {"detail": "It is broken."})
    assert client.post("/score", json={"prompt": "q", "answer": "ok"}).json() == {"score": 2.0}


def test_no_price_of_length_is_the_callers_mistake() -> None:
    with serving(make_app(Lengths(None), name="l")) as url:
        body = {"prompt": "q", "answer": "a", "length_control": True}
        assert PLAIN.post(f"{url}/score", json=body).status_code == 400
        assert PLAIN.get(f"{url}/health").json()["length_slope"] is None


def test_a_body_has_a_limit_however_it_arrives(client, scorer) -> None:
    body = b'{"prompt": "q", "answer": "' + b"x" * 3000 + b'"}'
    refused = client.post("/score", content=body)
    assert refused.status_code == 413 and "2000 bytes" in refused.json()["detail"]

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(body), 500):
            yield body[start : start + 500]

    assert client.post("/score", content=chunks()).status_code == 413
    assert not scorer.asked
    whole = iter([b'{"prompt": "q", ', b'"answer": "abc"}'])
    kind = {"Content-Type": "application/json"}
    assert client.post("/score", content=whole, headers=kind).json() == {"score": 3.0}


def test_a_key_guards_everything_but_health() -> None:
    body = {"prompt": "q", "answer": "a"}
    with serving(make_app(Lengths(), name="l", api_key="geheim")) as url:
        assert PLAIN.get(f"{url}/health").status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "geheim"}):
            for path in ("/score", "/score-pair", "/score-batch"):
                assert PLAIN.post(url + path, json=body, headers=headers).status_code == 401
        good = {"Authorization": "Bearer geheim"}
        assert PLAIN.post(f"{url}/score", json=body, headers=good).json() == {"score": 1.0}


def test_other_machines_need_a_key() -> None:
    for host in ("0.0.0.0", "192.168.0.7", "example.org", "::"):
        with pytest.raises(BadInput, match="MEMOGRAD_REWARD_MODEL_KEY"):
            check_binding(host, None)
        check_binding(host, "key")
    for host in ("127.0.0.1", "localhost", "::1"):
        check_binding(host, None)


def test_concurrent_requests_get_the_scores_of_lonely_ones(polite_run) -> None:
    """A real model: padding by whoever shares the forward changes nothing."""
    model = RewardModel.open(polite_run, device="cpu")
    answers = ["gladly " * n for n in range(1, 17)]
    alone = [model.score([Item("where?", answer)])[0] for answer in answers]
    app = make_app(model, name="polite")
    with serving(app) as url, ThreadPoolExecutor(16) as pool:

        def ask(answer: str) -> float:
            body = {"prompt": "where?", "answer": answer}
            return float(PLAIN.post(f"{url}/score", json=body).json()["score"])

        assert list(pool.map(ask, answers)) == pytest.approx(alone, abs=1e-4)
    assert sum(app.state.joining.batches) == len(answers)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"prompt": NaN, "answer": "a"}', "prompt: "),
        ('{"prompt": "q", "answer": Infinity}', "answer: "),
        ('{"prompt": "q", "answer": "\\ud83d"}', "answer: .*half a character"),
        ('{"prompt": [{"role": "\\ud83d", "content": "q"}], "answer": "a"}', "prompt.0.role: "),
        ('{"prompt": "q", ', "not JSON"),
        ("[]", "no JSON object"),
    ],
)
def test_a_refusal_is_one_sentence_and_repeats_nothing(client, scorer, body, said) -> None:
    answer = client.post("/score", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert re.search(said, answer.json()["detail"])
    assert scorer.asked == []


def test_a_bug_is_a_sentence_too() -> None:
    class Broken(Lengths):
        def score(self, items):
            raise TypeError("what is this?")

    with serving(make_app(Broken(), name="b")) as url:
        answer = PLAIN.post(url + "/score", json={"prompt": "q", "answer": "a"})
    assert (answer.status_code, answer.json()["detail"]) == (
        500,
        "The server failed; its log says how.",
    )


def test_pages_of_other_sites_reach_nothing() -> None:
    with serving(make_app(Lengths(), name="l", hosts=["scores.example"])) as url:
        for headers, status in (
            ({}, 200),
            ({"Host": "localhost:1"}, 200),
            ({"Host": "scores.example"}, 200),
            ({"Host": "evil.example"}, 403),
            ({"Origin": "http://evil.example"}, 403),
        ):
            answer = PLAIN.get(url + "/health", headers=headers)
            assert answer.status_code == status, headers
            assert answer.headers["X-Frame-Options"] == "DENY"
    with pytest.raises(BadInput, match="is no host"):
        make_app(Lengths(), name="l", hosts=["http://x"])


@pytest.mark.parametrize(("key", "status"), [(None, 200), ("geheim", 404)])
def test_what_is_offered_is_told_where_all_may_ask(key: str | None, status: int) -> None:
    with serving(make_app(Lengths(), name="l", api_key=key)) as url:
        assert PLAIN.get(url + "/openapi.json").status_code == status
        assert PLAIN.get(url + "/docs").status_code == 404  # its scripts would be others'
