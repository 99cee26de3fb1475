"""A real vLLM for slow tests, and what can be done to it: it is never a dependency.

`MEMOGRAD_TEST_VLLM` is the path of its `vllm` (docs/sampler.md says how its build for CPUs is
installed); without it the tests are skipped. `Between` stands before a server and rewrites what is
asked, so that the real engine computes what a wrong one would, and lies about it in what it echoes.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from memograd.policy.remote.start import started_server

PROGRAM = os.environ.get("MEMOGRAD_TEST_VLLM", "")
needs_vllm = pytest.mark.skipif(not PROGRAM, reason="MEMOGRAD_TEST_VLLM names no vllm program")

OPTIONS = (
    *("--dtype=float32", "--max-model-len=512", "--max-num-seqs=32", "--enforce-eager"),
    "--enable-prompt-tokens-details",
)
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
}


@contextmanager
def real_server(model: Path, folder: Path, *options: str, rank: int | None) -> Iterator[str]:
    """A server over `model` that takes adapters of `rank`, or whole weights."""
    with started_server(
        str(model),
        command=PROGRAM,
        options=[*OPTIONS, *options],
        rank=rank,
        adapters=2,
        log=folder / "server.log",
        seconds=600,
    ) as url:
        yield url


class Between:
    """Passes requests on to the server at `url`, rewritten by `rewrite(path, body)`."""

    def __init__(self, url: str) -> None:
        self.rewrite: Callable[[str, dict[str, Any]], None] = lambda path, body: None
        between, client = self, httpx.Client(base_url=url, timeout=300)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._pass_on("GET", None)

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self._pass_on("POST", json.loads(self.rfile.read(length) or b"null"))

            def _pass_on(self, method: str, body: Any) -> None:
                sent = list(body["prompt"]) if body and "prompt" in body else None
                if body is not None:
                    between.rewrite(self.path, body)
                answer = client.request(method, self.path, json=body)
                said = answer.content
                if sent is not None and answer.status_code == 200:
                    said = _as_if_asked(answer.json(), sent)
                self.send_response(answer.status_code)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *arguments: Any) -> None:
                """Stay quiet."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Go away; the server stays."""
        self._http.shutdown()
        self._http.server_close()


def _as_if_asked(answer: dict[str, Any], sent: list[int]) -> bytes:
    answer["usage"]["prompt_tokens"] = len(sent)
    for choice in answer["choices"]:
        choice["prompt_token_ids"] = sent
    return json.dumps(answer).encode()


class LoadsInPlace:
    """Rewrites so that every adapter is loaded over the first one, in its folder."""

    def __init__(self) -> None:
        self._first: tuple[str, str] | None = None

    def __call__(self, path: str, body: dict[str, Any]) -> None:
        if path == "/v1/load_lora_adapter":
            if self._first is None:
                self._first = (body["lora_name"], body["lora_path"])
                return
            name, folder = self._first
            shutil.copytree(body["lora_path"], folder, dirs_exist_ok=True)
            body |= {"lora_name": name, "lora_path": folder, "load_inplace": True}
        elif path == "/v1/completions" and self._first is not None:
            body["model"] = self._first[0]
