"""One Milvus Lite database: held by one owner, opened, remembered as made by one embedder, let go.

Invariants: at most one owner at a time, in this process or another; what was made with one embedder
opens with no other; closing frees the database at once (`tests/memory/test_milvus.py`). May import
errors and `embedder`. Milvus Lite serves a database to one process and says so only in a stack
trace, so an own lock file gives that limit a clear sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memograd.errors import BadInput
from memograd.memory.embedder import Embedder

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from pymilvus import MilvusClient

COLLECTION: Final = "turns"
MAX_STRING_BYTES: Final = 65_535  # Milvus' limit for one VARCHAR value


class Database:
    """An open database whose collection of turns is loaded and ready to search."""

    def __init__(self, path: Path | str, embedder: Embedder) -> None:
        """Open the database at `path`, or create it (a directory whose name ends in `.db`).

        Raises BadInput when Milvus Lite cannot use the path, when the database is open already
        (here or in another process), or when another embedder made it.
        """
        self._path = Path(path).expanduser().resolve()
        self._lock = _lock(self._path)
        try:
            self.client = _connect(self._path)
            try:
                _prepare(self.client, self._path, embedder)
            except BaseException:
                _disconnect(self.client, self._path)
                raise
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        """Let the database go, so that others can open it. Closing twice is harmless."""
        if self._lock.is_locked:
            _disconnect(self.client, self._path)
            self._lock.release()


def _lock(path: Path) -> BaseFileLock:
    """Hold the database for this object, or say why it cannot be held."""
    from filelock import FileLock, Timeout

    if path.suffix != ".db":
        raise BadInput(
            f"The memory path {path} must end in .db, for example {path.name or 'memory'}.db."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / "memograd.lock", thread_local=False)
        lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(
            f"The memory {path} is open already, here or in another process: close it there first,"
            " or choose another path."
        ) from None
    except FileExistsError:
        raise BadInput(
            f"The memory path {path} is a file, but a memory is a directory: choose another path."
        ) from None
    except OSError as error:
        raise BadInput(
            f"The memory {path} cannot be created or written ({error.strerror}): choose another"
            " path."
        ) from None
    return lock


def _connect(path: Path) -> MilvusClient:
    from pymilvus import MilvusClient, MilvusException

    try:
        return MilvusClient(str(path))
    except MilvusException as error:
        raise BadInput(
            f"Milvus Lite cannot open {path} ({error.message}): another program may be using it, or"
            " it is not a memory; close that program or choose another path."
        ) from error


def _disconnect(client: MilvusClient, path: Path) -> None:
    from milvus_lite.server_manager import server_manager_instance

    client.close()
    # Closing the client leaves Milvus Lite's in-process server running, and the database locked.
    server_manager_instance.release_server(str(path))


def _prepare(client: MilvusClient, path: Path, embedder: Embedder) -> None:
    """Create the collection, or check that the one we find was made by this embedder."""
    if not client.has_collection(COLLECTION):
        _create_collection(client, embedder)
    described: Any = client.describe_collection(COLLECTION)
    made_by = described["properties"]
    name, dimension = made_by.get("embedder"), made_by.get("dimension")
    if (name, dimension) != (embedder.name, str(embedder.dimension)):
        raise BadInput(
            f"The memory {path} was made with the embedder {name!r} ({dimension} dimensions), not"
            f" {embedder.name!r} ({embedder.dimension}): open it with the first or choose another"
            " path."
        )
    client.load_collection(COLLECTION)  # needed after every reopening, or searches fail


def _create_collection(client: MilvusClient, embedder: Embedder) -> None:
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("key", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("scope_key", DataType.VARCHAR, max_length=64)
    for field in ("turn_id", "speaker", "text"):
        schema.add_field(field, DataType.VARCHAR, max_length=MAX_STRING_BYTES)
    for field in ("time", "caption"):
        schema.add_field(field, DataType.VARCHAR, max_length=MAX_STRING_BYTES, nullable=True)
    for field in ("session", "position"):
        schema.add_field(field, DataType.INT64)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=embedder.dimension)
    index = client.prepare_index_params()
    index.add_index("vector", index_type="FLAT", metric_type="COSINE")
    client.create_collection(
        COLLECTION,
        schema=schema,
        index_params=index,
        properties={"embedder": embedder.name, "dimension": str(embedder.dimension)},
    )
