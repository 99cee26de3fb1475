"""What it costs to add real, long messages, beside mem0 with the same embedder. One JSON line.

    OMP_NUM_THREADS=1 python benchmarks/long_messages.py --data DATA_FOLDER
    OMP_NUM_THREADS=1 python benchmarks/long_messages.py --data DATA_FOLDER --quick

Messages are those of LongMemEval S: an assistant's of about 2,600 characters, a user's of about
240, exchanges of both, and 430 messages of whole sessions in one call. `add` is what the caller
waits for, in CPU milliseconds of its own thread (medians); `behind` is what the process computes
afterwards while nobody waits. Between two adds everything is finished, as in a conversation with
pauses. `token_layers` is what the caller waits for, too, whatever else the machine does: of each
call the tokens times the layers that they go through, of the relation model and of e5.
`search_after` is the first search right behind the 430 messages, in seconds of the wall: it waits
for all vectors. mem0 adds the same messages with `infer=False`, the same embedder and faiss in the
same process, alternating with us.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memograd.memory import Memory
from memograd.memory.embedders import Embedder, e5, load_embedder
from memograd.memory.relations import RelationModel, encoder

os.environ["MEM0_TELEMETRY"] = "False"

BULK = 430
REPEATS = 9
WIDTH = 384  # of a token's vector, in both models
Message = dict[str, Any]


def sessions(data: Path) -> list[list[Message]]:
    """All sessions of the sample, each once."""
    with gzip.open(data / "longmemeval" / "longmemeval_s_dev12.json.gz") as file:
        questions = json.load(file)
    told = {
        id: session
        for question in questions
        for id, session in zip(
            question["haystack_session_ids"], question["haystack_sessions"], strict=True
        )
    }
    return [[{k: m[k] for k in ("role", "content")} for m in one] for one in told.values()]


def of_length(messages: Sequence[Message], role: str, length: int, count: int) -> list[Message]:
    """The messages of a role that are nearest to a length."""
    fit = [message for message in messages if message["role"] == role]
    return sorted(fit, key=lambda message: abs(len(message["content"]) - length))[:count]


class Mem0:
    """mem0's public `Memory` with our embedder behind its interface."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        os.environ["MEM0_DIR"] = str(folder)  # else it writes into the home folder
        from mem0 import Memory as Mem0Memory  # type: ignore[import-untyped]
        from mem0.utils.factory import EmbedderFactory  # type: ignore[import-untyped]

        SharedEmbedder.inner = embedder
        EmbedderFactory.provider_to_class["fastembed"] = f"{__name__}.SharedEmbedder"
        store = {"path": str(folder / "faiss"), "embedding_model_dims": embedder.dimension}
        self.memory = Mem0Memory.from_config(
            {
                "llm": {"provider": "openai", "config": {"api_key": "never-called"}},
                "embedder": {
                    "provider": "fastembed",
                    "config": {"embedding_dims": embedder.dimension},
                },
                "vector_store": {"provider": "faiss", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, messages: list[Message], user: str) -> None:
        """Word for word."""
        self.memory.add(messages, user_id=user, infer=False)


class SharedEmbedder:
    """What mem0's factory makes."""

    inner: Embedder

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector as a list, which is what mem0's stores take."""
        asks = memory_action == "search"
        one = self.inner.embed_queries if asks else self.inner.embed
        vector: list[float] = one([text])[0].tolist()
        return vector

    def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        """All at once, which mem0 lets an embedder do."""
        return [row.tolist() for row in self.inner.embed(texts)]


class Counting:
    """Stands before an ONNX Runtime session; counts the token-layers of the calling thread."""

    done = 0

    def __init__(self, session: Any, layers: int) -> None:
        self.session, self.layers, self.thread = session, layers, threading.get_ident()

    def run(self, wanted: Any, inputs: Any) -> Any:
        """As the session's."""
        if threading.get_ident() == self.thread:
            Counting.done += next(iter(inputs.values())).size // WIDTH * self.layers
        return self.session.run(wanted, inputs)


def count_layers(relations: RelationModel) -> None:
    """Have `Counting.done` count from now on."""
    embedding = e5._model()
    graphs = relations._encoder
    layers = encoder._layers(graphs._weights)
    graphs._sessions = [
        Counting(session, len(of)) for session, of in zip(graphs._sessions, layers, strict=True)
    ]
    embedding.session = Counting(embedding.session, embedding._weights.layers)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU milliseconds of this thread, and of the whole process."""
    own, all_ = time.thread_time(), time.process_time()
    work()
    return 1000 * (time.thread_time() - own), 1000 * (time.process_time() - all_)


def measure(data: Path, *, quick: bool) -> dict[str, Any]:
    """The line."""
    told = sessions(data)
    flat = [message for session in told for message in session]
    repeats = 3 if quick else REPEATS
    assistant = of_length(flat, "assistant", 2_600, 3 * repeats)
    user = of_length(flat, "user", 240, 3 * repeats)
    kinds = {
        "assistant": [[one] for one in assistant[:repeats]],
        "user": [[one] for one in user[:repeats]],
        "exchange": [
            [ask, answer] for ask, answer in zip(user[repeats:], assistant[repeats:], strict=True)
        ][:repeats],
    }
    embedder = load_embedder("e5")
    line: dict[str, Any] = {"bench": "long_messages", "embedder": "e5", "repeats": repeats}
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "ours") as ours:
        peer = Mem0(Path(folder), embedder)
        warm = [{"role": "user", "content": "I moved to Boston in May."}]
        ours.add(warm, user_id="warm")
        ours.search("Where?", user_id="warm")
        peer.add(warm, "warm")
        count_layers(ours.reader._model)  # type: ignore[attr-defined]
        for kind, calls in kinds.items():
            waited, layers, behind, theirs = [], [], [], []
            for call in calls:
                Counting.done = 0
                waited.append(timed(partial(ours.add, call, user_id=kind))[0])
                layers.append(Counting.done)
                behind.append(timed(ours.store.texts.finish)[1])
                theirs.append(timed(partial(peer.add, call, kind))[1])
            line[kind] = {
                "add_ms": round(statistics.median(waited), 1),
                "token_layers": layers,
                "behind_ms": round(statistics.median(behind), 1),
                "mem0_add_ms": round(statistics.median(theirs), 1),
            }
        bulk = flat[: 60 if quick else BULK]
        begun, cpu = time.perf_counter(), time.process_time()
        ours.add(bulk, user_id="bulk")
        added = time.process_time() - cpu
        since = time.perf_counter()
        ours.search("Where did we go?", user_id="bulk", turns=5)
        line["bulk"] = {
            "messages": len(bulk),
            "characters": sum(len(one["content"]) for one in bulk),
            "add_s": round(added, 1),
            "search_after_s": round(time.perf_counter() - since, 1),
            "all_wall_s": round(time.perf_counter() - begun, 1),
            "all_cpu_s": round(time.process_time() - cpu, 1),
            "mem0_add_s": round(timed(partial(peer.add, bulk, "bulk"))[1] / 1000, 1),
        }
    return line


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--quick", action="store_true", help="3 repeats, 60 messages in bulk")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.data, quick=arguments.quick)), flush=True)


if __name__ == "__main__":
    main()
