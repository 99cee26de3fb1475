from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.memory.index.connection import Connection, IndexUnavailable

TRY = (
    "import sys; from memograd.memory.index.connection import Connection, IndexUnavailable\n"
    "try: Connection(sys.argv[1]).close(); print('free')\n"
    "except IndexUnavailable as error: print(error)\n"
)


def other_process(uri: str) -> str:
    command = [sys.executable, "-c", TRY, uri]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_folder_has_one_holder(tmp_path: Path) -> None:
    uri = str(tmp_path / "new folder" / "索引.db")
    first = Connection(uri)
    with pytest.raises(IndexUnavailable, match="open already, here or in another process"):
        Connection(uri)
    assert "open already, here or in another process" in other_process(uri)
    assert first.client.list_collections() == []  # unharmed by the refusals
    first.close()
    first.close()
    assert other_process(uri) == "free\n"


def test_uris_that_cannot_be_an_index(tmp_path: Path) -> None:
    for uri in (str(tmp_path / "index"), "milvus://somewhere.db", ""):
        with pytest.raises(BadInput, match=r"must be a path that ends in \.db"):
            Connection(uri)
    file = tmp_path / "file.db"
    file.write_text("not an index")
    with pytest.raises(BadInput, match="is a file, but an index of Milvus Lite is a folder"):
        Connection(str(file))
    with pytest.raises(BadInput, match="cannot be created or written"):
        Connection(str(file / "inside.db"))


def test_a_folder_that_another_program_holds(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    code = (
        "import sys; from pymilvus import MilvusClient\n"
        "client = MilvusClient(sys.argv[1]); print('open', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(IndexUnavailable, match="another program may be using it"):
            Connection(str(path))
        holder.communicate("")
    Connection(str(path)).close()


def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memograd.memory.index.connection.CONNECT_SECONDS", 1.0)
    with pytest.raises(IndexUnavailable, match="check that the server runs"):
        Connection("http://127.0.0.1:9")


def test_discarding_removes_one_collection_and_no_other(tmp_path: Path) -> None:
    connection = Connection(str(tmp_path / "i.db"))
    for name in ("ours", "theirs"):
        connection.client.create_collection(name, dimension=4)
    (tmp_path / "i.db" / "collections" / "ours" / "schema.json").write_bytes(b"\x00garbage")
    connection.discard("ours")
    assert connection.client.list_collections() == ["theirs"]
    assert not (tmp_path / "i.db" / "collections" / "ours").exists()
    connection.discard("ours")  # nothing to discard is not an error
    size = connection.size_bytes()
    assert size is not None
    assert size > 0
    connection.close()
