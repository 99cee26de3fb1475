from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memograd.config import MemorySettings
from memograd.memory import Memory, doctor
from memograd.memory.doctor import Finding, examine
from memograd.memory.embedders import E5Embedder
from memograd.memory.index.connection import Connection
from memograd.memory.journal import Journal

KEY = "sk-very-secret-key"


def found(settings: MemorySettings, *names: str) -> dict[str, Finding]:
    """The findings by name; asserts that they come once each and are whole sentences."""
    findings = examine(settings)
    by_name = {finding.name: finding for finding in findings}
    assert len(by_name) == len(findings)
    for finding in findings:
        assert finding.message.endswith(".") and "\n" not in finding.message
        assert not finding.remedy.endswith(".")
        if finding.ok is False:
            assert finding.remedy, finding
    assert set(names) <= set(by_name)
    return by_name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memories"


@pytest.fixture
def endpoint() -> Iterator[dict[str, Any]]:
    """A real HTTP server; `answer` and `status` are what it says to GET /v1/models."""
    said: dict[str, Any] = {"status": 200, "answer": {"data": [{"id": "small"}, {"id": "big"}]}}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            raw = json.dumps(said["answer"]).encode()
            status = said["status"] if self.path == "/v1/models" else 404
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    said["url"] = f"http://127.0.0.1:{server.server_port}/v1"
    yield said
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_new_place_is_healthy_and_stays_untouched(folder: Path) -> None:
    findings = found(MemorySettings(path=folder), "python", "folder", "embedder", "journal")
    assert [finding.ok for finding in findings.values()] == [True] * 5 + [None, None]
    assert "English and Chinese (384 dimensions)" in findings["embedder"].message
    assert "can be created" in findings["folder"].message
    assert not folder.exists()


def test_an_english_embedder_says_so(folder: Path) -> None:
    finding = found(MemorySettings(path=folder, embedder="minilm"))["embedder"]
    assert finding.ok is True
    assert "but not for Chinese" in finding.message
    assert "e5" in finding.remedy


def make_journal(folder: Path, embedder: str = "e5", dimension: str = "384") -> Path:
    folder.mkdir()
    with Journal.open(f"sqlite:///{folder / 'journal.db'}") as journal:
        journal.set_meta("embedder", embedder)
        journal.set_meta("dimension", dimension)
    return folder / "journal.db"


def test_a_memory_that_is_there(folder: Path) -> None:
    make_journal(folder)
    findings = found(MemorySettings(path=folder))
    assert findings["journal"].ok is True
    assert "opens and is whole" in findings["journal"].message
    assert "embedder of the journal" not in findings


def test_a_memory_of_another_embedder(folder: Path) -> None:
    make_journal(folder, "minilm")
    finding = found(MemorySettings(path=folder))["embedder of the journal"]
    assert finding.ok is False
    assert "'minilm' (384 dimensions), but the settings name 'e5'" in finding.message
    assert "MEMOGRAD_EMBEDDER=minilm" in finding.remedy
    assert "reindex --embedder e5" in finding.remedy


@pytest.mark.parametrize("damage", ["not a database at all " * 400, None])
def test_a_damaged_journal(folder: Path, damage: str | None) -> None:
    file = make_journal(folder)
    if damage is not None:
        file.write_text(damage, encoding="utf-8")
    else:
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        content = bytearray(file.read_bytes())
        content[4096:] = b"\x55" * (len(content) - 4096)
        file.write_bytes(content)
    finding = found(MemorySettings(path=folder))["journal"]
    assert finding.ok is False
    assert "restore a copy" in finding.remedy


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("after = '{broken'", "1 of its 4 events cannot be read (event 4, ADD of user:a)"),
        ("after = '{}'", "1 of its 4 events cannot be read"),
        ("kind = 'SING'", "a row of it is no event"),
    ],
)
def test_a_damaged_row_is_told(folder: Path, damage: str, told: str) -> None:
    """SQLite finds the file whole."""
    with Memory.open(folder, embedder="minilm", env_file=None) as memory:
        memory.add("The sea is green.", user_id="a", infer=False)
        memory.add("The sky is blue.", user_id="a", infer=False)
    raw = sqlite3.connect(folder / "journal.db")
    raw.execute(f"UPDATE events SET {damage} WHERE seq = (SELECT max(seq) FROM events)")
    raw.commit()
    raw.close()
    finding = found(MemorySettings(path=folder, embedder="minilm"))["journal"]
    assert finding.ok is False
    assert told in finding.message


def test_a_folder_that_is_a_file(folder: Path) -> None:
    folder.write_text("something else", encoding="utf-8")
    findings = found(MemorySettings(path=folder))
    assert findings["folder"].ok is False
    assert "is a file" in findings["folder"].message
    assert "MEMOGRAD_PATH" in findings["folder"].remedy


def test_an_embedder_that_is_not_there(folder: Path) -> None:
    finding = found(MemorySettings(path=folder, embedder="bert"))["embedder"]
    assert finding.ok is False
    assert finding.message == "There is no embedder 'bert'."
    assert finding.remedy.startswith("choose one of e5, minilm")


def test_an_embedder_of_another_dimension(folder: Path) -> None:
    finding = found(MemorySettings(path=folder, dimension=1536))["embedder"]
    assert finding.ok is False
    assert "dimension is 1536" in finding.message


def test_missing_packages_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.PACKAGES, "no_such_module", "no-such-package")
    finding = found(MemorySettings(path=folder))["python"]
    assert finding.ok is False
    assert finding.remedy == "run pip install no-such-package"


def test_a_lite_index_that_somebody_holds(folder: Path) -> None:
    folder.mkdir()
    settings = MemorySettings(path=folder)
    connection = Connection(str(folder / "index.db"))
    try:
        finding = found(settings)["index"]
        assert finding.ok is False
        assert "open already" in finding.message
    finally:
        connection.close()
    finding = found(settings)["index"]
    assert finding.ok is True
    assert "does not hold yet 'memograd'" in finding.message


def test_an_index_that_is_nowhere(folder: Path) -> None:
    finding = found(MemorySettings(path=folder, milvus_uri="somewhere"))["index"]
    assert finding.ok is False
    assert "somewhere" in finding.message


def test_the_endpoint_and_its_models(folder: Path, endpoint: dict[str, Any]) -> None:
    def ask(model: str | None) -> dict[str, Finding]:
        settings = MemorySettings(
            path=folder, openai_base_url=endpoint["url"], openai_api_key=KEY, openai_model=model
        )  # type: ignore[arg-type]
        return found(settings, "endpoint")

    answered = ask("small")
    assert (answered["endpoint"].ok, answered["chat model"].ok) == (True, True)
    assert "lists 2 models" in answered["endpoint"].message
    answered = ask("large")
    assert answered["chat model"].ok is False
    assert "small, big" in answered["chat model"].remedy
    assert ask(None)["chat model"].ok is None
    endpoint["answer"] = {"data": [1]}
    assert "not a list of models" in ask("small")["endpoint"].message
    endpoint["status"] = 404
    assert ask("small")["endpoint"].ok is None
    endpoint["status"] = 401
    endpoint["answer"] = {"error": {"message": f"bad key {KEY}"}}
    refused = ask("small")["endpoint"]
    assert refused.ok is False
    assert refused.remedy == "check OPENAI_API_KEY"


def test_no_finding_holds_a_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = MemorySettings(
        path=folder,
        journal_url="postgresql+psycopg://me:pass%20word-1@127.0.0.1:9/db",
        milvus_uri="http://me:pass-word-2@127.0.0.1:9",
        milvus_token="root:token-3",  # type: ignore[arg-type]
        openai_api_key=KEY,  # type: ignore[arg-type]
        openai_base_url="http://me:pass-word-4@127.0.0.1:9/v1",
    )
    secrets = ("pass%20word-1", "pass word-1", "pass-word-2", "token-3", KEY, "pass-word-4")

    def fail(self: Any) -> None:
        raise RuntimeError(" ".join(secrets))

    monkeypatch.setattr(E5Embedder, "__init__", fail)
    monkeypatch.setattr("memograd.memory.index.connection.CONNECT_SECONDS", 0.2)
    findings = found(settings)
    assert "RuntimeError" in findings["embedder"].message
    for finding in findings.values():
        for secret in secrets:
            assert secret not in repr(finding)
    failed = {name for name, finding in findings.items() if finding.ok is False}
    assert failed == {"embedder", "journal", "index", "endpoint"}
