from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory import RawTurn, TurnMemory

TURN = RawTurn("D1:1", "Ann", "I moved to Lisbon.", datetime(2023, 5, 7), 1)


def test_what_was_stored_is_there_after_reopening(tmp_path: Path, trigrams: Any) -> None:
    path = tmp_path / "new folder" / "记忆.db"
    with TurnMemory.open(path, trigrams()) as memory:
        memory.add_turns("u", [TURN])
    with TurnMemory.open(path, trigrams()) as memory:
        found = memory.search("Lisbon", scope="u", top_k=3, token_budget=99, count_tokens=len)
        assert [one.turn for one in found] == [TURN]


def test_another_embedder_is_refused(tmp_path: Path, trigrams: Any) -> None:
    path = tmp_path / "m.db"
    TurnMemory.open(path, trigrams(dimension=32)).close()
    with pytest.raises(BadInput, match=r"'trigram' \(32 dimensions\), not 'trigram' \(16\)"):
        TurnMemory.open(path, trigrams(dimension=16))
    with pytest.raises(BadInput, match=r"not 'minilm' \(32\)"):
        TurnMemory.open(path, trigrams(name="minilm"))
    TurnMemory.open(path, trigrams()).close()  # a refusal leaves the memory free and unharmed


def test_a_second_owner_is_refused_until_the_first_closes(tmp_path: Path, trigrams: Any) -> None:
    path = tmp_path / "m.db"
    code = (
        "import sys; from memograd.memory.milvus import _lock; from pathlib import Path\n"
        "from memograd.errors import BadInput\n"
        "try: _lock(Path(sys.argv[1])); print('free')\n"
        "except BadInput as error: print(error)\n"
    )
    other_process = [sys.executable, "-c", code, str(path)]

    first = TurnMemory.open(path, trigrams())
    with pytest.raises(BadInput, match="is open already, here or in another process"):
        TurnMemory.open(path, trigrams())
    done = subprocess.run(other_process, capture_output=True, text=True, check=True)
    assert "is open already, here or in another process" in done.stdout
    assert first.count("u") == 0  # the first owner is untouched by the refusals

    first.close()
    first.close()
    done = subprocess.run(other_process, capture_output=True, text=True, check=True)
    assert done.stdout == "free\n"


def test_paths_that_cannot_hold_a_memory(tmp_path: Path, trigrams: Any) -> None:
    with pytest.raises(BadInput, match=r"must end in \.db"):
        TurnMemory.open(tmp_path / "memory", trigrams())
    file = tmp_path / "file.db"
    file.write_text("not a memory")
    with pytest.raises(BadInput, match="is a file, but a memory is a directory"):
        TurnMemory.open(file, trigrams())
    with pytest.raises(BadInput, match="cannot be created or written"):
        TurnMemory.open(file / "inside.db", trigrams())


def test_a_database_that_another_program_holds(tmp_path: Path, trigrams: Any) -> None:
    from milvus_lite.server_manager import server_manager_instance
    from pymilvus import MilvusClient

    path = tmp_path / "m.db"
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
        with pytest.raises(BadInput, match="another program may be using it"):
            TurnMemory.open(path, trigrams())
        holder.communicate("")
    # A database without our collection is one we may use; somebody else's collection is kept.
    client = MilvusClient(str(path))
    client.create_collection("theirs", dimension=4)
    client.close()
    server_manager_instance.release_server(str(path))
    with TurnMemory.open(path, trigrams()) as memory:
        assert memory.add_turns("u", [TURN]) == 1
