from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from memograd.config import MemorySettings
from memograd.errors import BadInput, MemogradError
from memograd.memory.chat.openai_endpoint import OpenAIEndpoint
from memograd.memory.embedders import OpenAIEmbedder, embedder_from_settings, load_embedder
from memograd.memory.embedders.openai_model import EMPTY, MAX_BATCH_BYTES, MAX_TEXT_BYTES

KEY = "sk-very-secret-key"
Answer = tuple[int, Any]


class Server:
    """A real HTTP server; what it answers to a request's JSON is set by the test."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Answer] = embeddings
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = {"path": self.path, "key": self.headers["Authorization"]}
                request |= json.loads(body)
                outer.requests.append(request)
                status, answer = outer.answer(request)
                raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                kind = "text/html" if isinstance(answer, bytes) else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(raw)))
                self.send_header("retry-after-ms", "1")
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def vector_of(text: str) -> list[float]:
    return [float(len(text)), float(text.count("a")), 1.0]


def embeddings(request: dict[str, Any]) -> Answer:
    rows = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(request["input"])
    ]
    return 200, {"object": "list", "data": rows[::-1], "model": request["model"], "usage": {}}


def expected(texts: Sequence[str]) -> np.ndarray:
    rows = np.array([vector_of(text) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def open_at(server: Server, dimension: int | None = None, model: str = "some-model") -> Any:
    return OpenAIEmbedder(model, OpenAIEndpoint(server.url, KEY), dimension)


def test_unit_vectors_in_the_order_of_the_texts(server: Server) -> None:
    embedder = load_embedder("openai:some-model", endpoint=OpenAIEndpoint(server.url, KEY))
    assert embedder.name == "openai:some-model"
    assert embedder.dimension == 3
    texts = ["a", "banana", "我爱北京", "😀"]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected(texts), atol=1e-6)
    np.testing.assert_array_equal(embedder.embed_queries(texts), vectors)
    assert embedder.embed([]).shape == (0, 3)
    assert len(server.requests) == 3  # the dimension is asked for once
    request = server.requests[-1]
    assert (request["path"], request["key"]) == ("/v1/embeddings", f"Bearer {KEY}")
    assert request["model"] == "some-model"
    assert "dimensions" not in request


def test_settings_lead_to_the_endpoint(server: Server) -> None:
    settings = MemorySettings(
        embedder="openai",
        openai_embedding_model="some-model",
        openai_base_url=server.url,
        openai_api_key=KEY,
        dimension=3,
    )
    embedder = embedder_from_settings(settings)
    embedder.embed(["a"])
    embedder.embed(["a"])
    assert embedder.name == "openai:some-model"
    assert [request["input"] for request in server.requests] == [["a"]]


def test_batches_are_small_in_number_and_in_size(server: Server) -> None:
    texts = [f"a{number}" for number in range(600)]
    np.testing.assert_allclose(open_at(server, 3).embed(texts), expected(texts), atol=1e-6)
    assert [len(request["input"]) for request in server.requests] == [256, 256, 88]
    server.requests.clear()
    open_at(server, 3).embed(["长" * 2_000] * 100)
    sizes = [sum(len(text.encode()) for text in one["input"]) for one in server.requests]
    assert len(sizes) > 1
    assert sum(sizes) == 600_000
    assert max(sizes) <= MAX_BATCH_BYTES


def test_empty_and_huge_texts_are_made_fit(server: Server) -> None:
    vectors = open_at(server, 3).embed(["", " \n", "长" * 100_000])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    (request,) = server.requests
    assert request["input"][:2] == [EMPTY, EMPTY]
    assert request["input"][2] == "长" * (MAX_TEXT_BYTES // 3)


def test_half_a_surrogate_pair_never_leaves(server: Server) -> None:
    with pytest.raises(BadInput, match="not valid Unicode"):
        open_at(server, 3).embed(["broken \ud800"])
    assert server.requests == []


def test_only_models_that_can_shorten_are_asked_to(server: Server) -> None:
    open_at(server, 3, "text-embedding-3-small").embed(["a"])
    open_at(server, 3, "text-embedding-ada-002").embed(["a"])
    assert [request.get("dimensions") for request in server.requests] == [3, None]


def test_too_many_requests_are_repeated(server: Server) -> None:
    def answer(request: dict[str, Any]) -> Answer:
        busy = (429, {"error": {"message": "slow down"}})
        return busy if len(server.requests) < 3 else embeddings(request)

    server.answer = answer
    np.testing.assert_allclose(open_at(server, 3).embed(["a"]), expected(["a"]), atol=1e-6)
    assert len(server.requests) == 3


def error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "some_error", "code": None}}


@pytest.mark.parametrize(
    ("status", "answer", "kind", "sentence"),
    [
        (401, error(f"Incorrect API key provided: {KEY}"), BadInput, "refused the key .*HTTP 401"),
        (403, error("not yours"), BadInput, "check OPENAI_API_KEY"),
        (404, error("no model some-model"), BadInput, "HTTP 404: no model some-model"),
        (400, error(f"bad {KEY}"), BadInput, r"HTTP 400: bad \*\*\*"),
        (429, error("slow down"), MemogradError, "HTTP 429: slow down.*try again later"),
        (500, b"<html>broken</html>", MemogradError, "HTTP 500"),
        (200, b"<html>hello</html>", MemogradError, "not 1 embeddings|form that can be understood"),
        (200, {}, MemogradError, "not 1 embeddings"),
        (200, {"data": []}, MemogradError, "No embedding data|not 1 embeddings"),
        (200, {"data": [{"index": 0, "embedding": "x"}]}, MemogradError, "not 1 embeddings"),
        (200, {"data": [{"index": 1, "embedding": [1]}]}, MemogradError, "not 1 embeddings"),
        (200, {"data": [{"index": 0, "embedding": [0, 0]}]}, MemogradError, "not 1 embeddings"),
        (200, {"data": [{"index": 0, "embedding": [1e999]}]}, MemogradError, "not 1 embeddings"),
        (200, {"data": [{"index": 0, "embedding": [None]}]}, MemogradError, "not 1 embeddings"),
        (200, [1, 2], MemogradError, "not 1 embeddings|form that can be understood"),
    ],
)
def test_failures_are_one_sentence_without_the_key(
    server: Server, status: int, answer: Any, kind: type[MemogradError], sentence: str
) -> None:
    server.answer = lambda request: (status, answer)
    with pytest.raises(MemogradError, match=sentence) as caught:
        open_at(server).embed(["a"])
    assert type(caught.value) is kind
    message = str(caught.value)
    assert KEY not in message
    assert "\n" not in message
    assert message.startswith(f"{server.url} ") and message.endswith(".")


def test_another_dimension_is_refused(server: Server) -> None:
    with pytest.raises(BadInput, match="returned vectors of 3 dimensions, not 1536"):
        open_at(server, 1536).embed(["a"])


def test_a_server_that_is_not_there(server: Server) -> None:
    endpoint = OpenAIEndpoint("http://alice:pass-word@127.0.0.1:9/v1")
    client = endpoint.client(retries=0)
    with (
        pytest.raises(MemogradError, match=r"cannot be reached .*check OPENAI_BASE_URL") as caught,
        endpoint.explained("embed texts"),
    ):
        client.models.list()
    assert "pass-word" not in str(caught.value)


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-elsewhere")  # only settings count
    with pytest.raises(BadInput, match="OpenAI needs a key: set OPENAI_API_KEY"):
        load_embedder("openai:text-embedding-3-small")


def test_the_key_is_not_in_a_repr() -> None:
    assert KEY not in repr(OpenAIEndpoint("http://localhost/v1", KEY))
