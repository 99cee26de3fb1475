"""Decisions a second in training by phase, and `Memory.add` by three managers."""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

from memograd.memory import Memory
from memograd.memory.chat.chat_model import OpenAIChatModel
from memograd.memory.embedders import Embedder
from memograd.memory.manager import ChatManager, RuleManager
from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.manager import TrainedManager
from memograd.memory.manager.trained.network import Shape
from memograd.tasks.memory_ops import walk as walk_module
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.memory_ops.material import LogMemory, embed_logs, evaluation_logs, training_logs
from memograd.tasks.memory_ops.recipe import head_trainer, one_step
from memograd.tasks.memory_ops.settings import OperationsConfig
from policies_bench.learning import config_of
from policies_bench.results import Row


@contextmanager
def timed(owner: Any, name: str, spent: dict[str, float]) -> Iterator[None]:
    """Adds the seconds of every call of `owner.name` to `spent`."""
    inner = getattr(owner, name)

    def around(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return inner(*args, **kwargs)
        finally:
            spent[name] = spent.get(name, 0.0) + time.perf_counter() - began

    with mock.patch.object(owner, name, around):
        yield


def training_speed(
    base: OperationsConfig, embedder: Embedder, steps: int
) -> tuple[Row, TrainedHead]:
    """Decisions a second, and the share of each phase, after one step that warms the caches."""
    material = embed_logs(training_logs(base), embedder, view=base.view)
    head = OperationHead(Shape(embedder.dimension, base.width, base.layers, base.heads), seed=0)
    trainer = head_trainer(config_of("grpo", 0, base), head)
    one_step(trainer, material, base)
    spent: dict[str, float] = {}
    walked = learnt = 0.0
    count = 0
    processor = time.process_time()
    with ExitStack() as stack:
        stack.enter_context(timed(LogMemory, "related", spent))
        for name in ("observe", "delta_qa"):
            stack.enter_context(timed(walk_module, name, spent))
        for _ in range(steps):
            decisions, _, seconds = one_step(trainer, material, base)
            count += len(decisions)
            walked, learnt = walked + seconds["walk"], learnt + seconds["learn"]
    phases = {
        "related search": spent["related"],
        "observe": spent["observe"],
        "score every operation (delta_qa)": spent["delta_qa"],
        "choose and apply": walked - sum(spent.values()),
        "update the network": learnt,
    }
    whole = walked + learnt
    row = {
        "decisions": count,
        "decisions_a_second": round(count / whole, 1),
        "scored_operations_a_second": round(count * base.num_generations / whole, 1),
        "share": {name: round(seconds / whole, 3) for name, seconds in phases.items()},
        "ms_a_decision": {name: round(1e3 * s / count, 3) for name, s in phases.items()},
        "cpu_seconds": round(time.process_time() - processor, 1),
    }
    return row, head.trained(embedder.name, {})


class Stub(BaseHTTPRequestHandler):
    """A chat model that adds everything, at once."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        content = json.dumps({"op": "ADD", "id": None, "text": "It was said.", "reason": "new"})
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "stub"}
        said = json.dumps({**answer, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *arguments: Any) -> None:
        """Stay quiet."""


def adding_speed(head: TrainedHead, embedder: Embedder, adds: int) -> Row:
    """Median milliseconds of `Memory.add`, the three managers taking turns on the same texts."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{served.server_port}/v1"
    managers: dict[str, Any] = {
        "trained head": TrainedManager(head),
        "rules": RuleManager(),
        "chat model at a stub": ChatManager(OpenAIChatModel("stub", api_key="k", base_url=url)),
    }
    logs = evaluation_logs(OperationsConfig(eval_logs=1))
    texts = [turn.text for turn in logs[0].turns][: adds + 5]
    taken: dict[str, list[float]] = {name: [] for name in managers}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        memories = {
            name: stack.enter_context(
                Memory.open(
                    Path(folder) / str(number), embedder=embedder, manager=manager, env_file=None
                )
            )
            for number, (name, manager) in enumerate(managers.items())
        }
        for text in texts:
            for name, memory in memories.items():
                began = time.perf_counter()
                memory.add(text, user_id="ann")
                taken[name].append(time.perf_counter() - began)
    served.shutdown()
    medians = {name: statistics.median(times[5:]) for name, times in taken.items()}
    return {
        "adds": adds,
        "median_ms": {name: round(1e3 * seconds, 2) for name, seconds in medians.items()},
        "times_the_trained_head": {
            name: round(seconds / medians["trained head"], 2) for name, seconds in medians.items()
        },
    }
