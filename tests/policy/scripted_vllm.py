"""A server that speaks vLLM's HTTP and really samples from a model, for tests without vLLM.

It computes everything anew for every token, with peft's adapters, or with weights that were
exchanged, so what it says is right; and it can be told to be wrong in the ways in which servers are
(`fault`), or to fail (`plan`).
"""

from __future__ import annotations

import copy
import itertools
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

WHOLE_FAULTS = ("stale prefix", "old weights", "old output layer")
"""Of a server that is told to exchange its weights, and says that it did."""

FAULTS = ("stale prefix", "raw log-probabilities", "temperature", "template", "adapter", "BOS")


class ScriptedVllm:
    """A server over the model in `folder`.

    fault: one of `FAULTS` or `WHOLE_FAULTS`; it lies about it: what it echoes is what was sent.
    plan: is asked before every request, by its path, and may sleep, raise `Broken`, or return
    (status, message). asked: every body by its path. asleep: it gave its memory back, and refuses
    all work. scale_out: it says which weights drew a token. between: is called after each such
    token. weights: their name.
    """

    def __init__(self, folder: Path, *, name: str = "tiny", port: int = 0) -> None:
        self.fault: str | None = None
        self.plan: Callable[[str, dict[str, Any]], tuple[int, str] | None] = lambda path, body: None
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.name = name
        self.folder = folder
        self.answered = 0
        self.asleep = False
        self.scale_out = True
        self.between: Callable[[], None] = lambda: None
        self.weights = "default"
        self._running = threading.Event()
        self._models: dict[str, Any] = {}
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._loaded: dict[str, str] = {}
        self._order: list[str] = []
        self._prefixes: dict[tuple[Any, ...], Any] = {}
        self._lock = threading.Lock()
        self._http: ThreadingHTTPServer | None = None
        self.start(port)
        self.port = self.http.server_port

    @property
    def http(self) -> ThreadingHTTPServer:
        assert self._http is not None
        return self._http

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def loaded(self) -> list[str]:
        return list(self._loaded)

    def start(self, port: int | None = None) -> None:
        """Come up, knowing no adapter."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._handle(self, {})

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                outer._handle(self, json.loads(self.rfile.read(length) or b"{}"))

            def log_message(self, *arguments: Any) -> None:
                """Stay quiet."""

        base = AutoModelForCausalLM.from_pretrained(self.folder).eval()
        self._models = {self.name: base}
        self._loaded, self._order, self._prefixes = {}, [], {}
        self.asleep = False
        self.weights = "default"
        self._running.set()
        ThreadingHTTPServer.allow_reuse_address = True
        self._http = ThreadingHTTPServer(
            ("127.0.0.1", self.port if port is None else port), Handler
        )
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Go away, adapters and all."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def _handle(self, request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        path = request.path.partition("?")[0]
        self.asked.append((path, body))
        try:
            if self._http is None:
                raise Broken
            status, answer = self._answered(path, body)
            if self._http is None:
                raise Broken
        except Broken:
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        said = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        try:
            request.send_response(status)
            request.send_header("Content-Length", str(len(said)))
            request.end_headers()
            request.wfile.write(said)
        except OSError:
            pass  # whoever asked has gone

    def _answered(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        planned = self.plan(path, body)
        if planned is not None:
            return planned[0], {"error": {"message": planned[1]}}
        if path in ("/sleep", "/wake_up"):
            self.asleep = path == "/sleep"
        if path in ("/health", "/sleep", "/wake_up"):
            return 200, ""
        if self.asleep:
            return 400, {"error": {"message": "the engine is asleep"}}
        if path == "/v1/models":
            own = [
                {"id": self.name, "parent": None, "max_model_len": 512, "root": str(self.folder)}
            ]
            return 200, {"data": own + [{"id": n, "parent": self.name} for n in self._loaded]}
        if path == "/inference/v1/generate":
            return self._generate(body)
        with self._lock:
            if path in self._exchange:
                return self._exchange[path](self, body)
            if path == "/v1/load_lora_adapter":
                return self._load(body["lora_name"], body["lora_path"])
            if path == "/v1/unload_lora_adapter":
                if body["lora_name"] not in self._loaded:
                    return 404, {"error": {"message": "no such adapter"}}
                del self._loaded[body["lora_name"]]
                del self._models[body["lora_name"]]
                return 200, "Success"
            assert path == "/v1/completions", path
            return self._complete(body)

    def _load(self, name: str, path: str) -> tuple[int, Any]:
        if name in self._loaded:
            return 400, {
                "error": {"message": f"The lora adapter '{name}' has already been loaded."}
            }
        if not (Path(path) / "adapter_model.safetensors").is_file():
            return 404, {"error": {"message": f"No adapter found for {path}"}}
        own = copy.deepcopy(self._models[self.name])
        self._models[name] = PeftModel.from_pretrained(own, path).eval()
        self._loaded[name] = path
        self._order.append(name)
        return 200, f"Success: LoRA adapter '{name}' added successfully."

    def _pause(self, body: dict[str, Any]) -> tuple[int, Any]:
        self._running.clear()
        return 200, {"status": "paused"}

    def _resume(self, body: dict[str, Any]) -> tuple[int, Any]:
        self._running.set()
        return 200, {"status": "resumed"}

    def _call_it(self, body: dict[str, Any]) -> tuple[int, Any]:
        self.weights = body["new_version"]
        return 200, {"success": True, "new_version": self.weights}

    def _exchange_weights(self, body: dict[str, Any]) -> tuple[int, Any]:
        assert body["method"] == "reload_weights" and not self._running.is_set()
        path = body["kwargs"]["weights_path"]
        if not (Path(path) / "config.json").is_file():
            return 500, {"error": {"message": f"Worker failed with error: {path}"}}
        new = AutoModelForCausalLM.from_pretrained(path).eval()
        if self.fault == "old output layer":
            old = self._models[self.name].get_output_embeddings()
            new.set_output_embeddings(copy.deepcopy(old))
        if self.fault != "old weights":
            self._models[self.name] = new
        return 200, {"results": [None]}

    def _forget_prefixes(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self.fault != "stale prefix":
            self._prefixes = {}
        return 200, {"success": True}

    _exchange: ClassVar[dict[str, Callable[..., tuple[int, Any]]]] = {
        "/pause": _pause,
        "/resume": _resume,
        "/update_weight_version": _call_it,
        "/weight_info": lambda self, body: (200, {"weight_version": self.weights}),
        "/collective_rpc": _exchange_weights,
        "/reset_prefix_cache": _forget_prefixes,
    }

    def _generate(self, body: dict[str, Any]) -> tuple[int, Any]:
        if not self.scale_out:
            return 403, {"error": {"message": "Restart vllm serve with --enable-scale-out"}}
        if "token_ids" not in body:
            return 422, {"error": {"message": "token_ids: Field required"}}
        sampling = body["sampling_params"]
        if sampling["temperature"] == 0 and sampling["n"] > 1:
            return 400, {"error": {"message": "n must be 1 when using greedy sampling"}}
        choices = [self._generated(body, place) for place in range(sampling["n"])]
        self.answered += 1
        prompt = body["token_ids"]
        usage = {"prompt_tokens": len(prompt)}
        return 200, {"choices": choices, "usage": usage, "prompt_token_ids": prompt}

    @torch.no_grad()
    def _generated(self, body: dict[str, Any], place: int) -> dict[str, Any]:
        sampling, prompt = body["sampling_params"], body["token_ids"]
        generator = torch.Generator().manual_seed(sampling["seed"] + place)
        ids: list[int] = []
        drawn_by: list[str] = []
        content: list[dict[str, Any]] = []
        reason = "length"
        while len(ids) < sampling["max_tokens"]:
            self._running.wait()
            with self._lock:
                # The prompt's keys and values are kept; those of the answer are computed anew.
                cache = self._prefix(body.get("cache_salt"), prompt, self.name)
                logits = self._run(self.name, [*prompt[-1:], *ids], cache)
                drawn_by.append(self.weights)
            temperature = sampling["temperature"]
            drawn_from = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
            token = int(drawn_from.argmax())
            if temperature:
                token = int(torch.multinomial(drawn_from.exp(), 1, generator=generator))
            ids.append(token)
            one = {"token_id": token, "logprob": float(drawn_from[token])}
            content.append({**one, "top_logprobs": [one]})
            self.between()
            text = self._tokenizer.decode(ids)
            if token in sampling["stop_token_ids"] or any(
                stop in text for stop in sampling.get("stop", [])
            ):
                reason = "stop"
                break
        changes = [n for n in range(1, len(ids)) if drawn_by[n] != drawn_by[n - 1]]
        bounds = [0, *changes, len(ids)]
        return {
            "index": place,
            "token_ids": ids,
            "finish_reason": reason,
            "logprobs": {"content": content},
            "weight_versions": [
                {"version": drawn_by[start], "start": start, "end": end}
                for start, end in itertools.pairwise(bounds)
            ],
        }

    @torch.no_grad()
    def _complete(self, body: dict[str, Any]) -> tuple[int, Any]:
        name = body["model"]
        if name != self.name and name not in self._loaded:
            return 404, {"error": {"message": f"The model `{name}` does not exist."}}
        if body["temperature"] == 0 and body["n"] > 1:
            return 400, {"error": {"message": "n must be 1 when using greedy sampling"}}
        prompt = list(body["prompt"])
        if self.fault == "BOS":
            prompt = prompt[1:]
        if self.fault == "template":
            prompt = (
                self._tokenizer("system\nBe brief.", add_special_tokens=False)["input_ids"] + prompt
            )
        if self.fault == "adapter":
            earlier = [one for one in self._order[: self._order.index(name)] if one in self._loaded]
            name = (earlier or [self.name])[-1] if name in self._order else name
        choices = [self._choice(body, prompt, name, place) for place in range(body["n"])]
        self.answered += 1
        return 200, {"choices": choices, "usage": {"prompt_tokens": len(body["prompt"])}}

    def _choice(
        self, body: dict[str, Any], prompt: list[int], name: str, place: int
    ) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(body["seed"] + place)
        temperature = body["temperature"]
        if self.fault == "temperature" and temperature:
            temperature = 0.6 + 0.5 * temperature
        ids: list[int] = []
        logprobs: list[float] = []
        reason = "length"
        cache = self._prefix(body.get("cache_salt"), prompt, name)
        new = prompt[-1:]
        while len(ids) < body["max_tokens"]:
            logits = self._run(name, new, cache)
            drawn_from = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
            if temperature:
                token = int(torch.multinomial(drawn_from.exp(), 1, generator=generator))
            else:
                token = int(drawn_from.argmax())
            told = torch.log_softmax(logits, -1) if "raw" in str(self.fault) else drawn_from
            ids.append(token)
            logprobs.append(float(told[token]))
            new = [token]
            text = self._tokenizer.decode(ids)
            if token in body["stop_token_ids"] or any(s in text for s in body.get("stop", [])):
                reason = "stop"
                break
        return {
            "index": place,
            "token_ids": ids,
            "prompt_token_ids": body["prompt"],
            "finish_reason": reason,
            "text": self._tokenizer.decode(ids),
            "logprobs": {
                "tokens": [f"token_id:{token}" for token in ids],
                "token_logprobs": logprobs,
                "top_logprobs": [{f"token_id:{t}": v} for t, v in zip(ids, logprobs, strict=True)],
            },
        }

    def _prefix(self, salt: str | None, prompt: list[int], name: str) -> Any:
        """Keys and values of all but the last token; of a prompt that was seen, the old ones."""
        key = (salt, tuple(prompt), None if self.fault == "stale prefix" else name)
        if key not in self._prefixes:
            cache = DynamicCache()
            if len(prompt) > 1:
                self._run(name, prompt[:-1], cache)
            self._prefixes[key] = cache
        return copy.deepcopy(self._prefixes[key])

    def _run(self, name: str, ids: list[int], cache: Any) -> torch.Tensor:
        inputs = torch.tensor([ids])
        out = self._models[name](inputs, past_key_values=cache, use_cache=True)
        return out.logits[0, -1].float()


class Broken(Exception):
    """The connection breaks off."""
