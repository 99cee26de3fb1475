"""A connection to Milvus: a Milvus Lite folder held by one process, or a server that many share.

Invariants: a Lite folder has at most one holder, in this process or another, and everybody else
gets a sentence; closing frees it at once; discarding a collection leaves none of its bytes in a
Lite folder, whatever state its files are in.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memograd.errors import BadInput, MemogradError

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from pymilvus import MilvusClient

CONNECT_SECONDS: Final = 10.0


class IndexUnavailable(MemogradError):
    """The index cannot be used now; the journal and the states are not affected."""


class Connection:
    """An open door to Milvus. `client` changes when a Lite folder's collection is discarded."""

    client: MilvusClient

    def __init__(self, uri: str, token: str | None = None) -> None:
        """`uri`: a path that ends in `.db` (Milvus Lite), or `http(s)://...` (server, Zilliz).

        Raises BadInput for a uri that cannot be one of these, IndexUnavailable when another
        process holds the folder or no server answers.
        """
        self.folder = None if uri.startswith(("http://", "https://")) else _folder(uri)
        self.where = uri if self.folder is None else str(self.folder)
        self._token = token
        self._lock = _held(self.folder) if self.folder else None
        try:
            self._connect()
        except BaseException:
            self._release()
            raise

    @property
    def is_lite(self) -> bool:
        """Whether this is a Milvus Lite folder, which nobody else can use at the same time."""
        return self.folder is not None

    def close(self) -> None:
        """Let Milvus go, so that others can open the folder. Closing twice is harmless."""
        if not self._closed:
            self._disconnect()
        self._release()

    def discard(self, collection: str) -> None:
        """Drop the collection if it exists; in a Lite folder, remove every file of it."""
        if self.folder is None:
            with self.explained("drop the collection"):
                self.client.drop_collection(collection)
            return
        # Milvus Lite cannot drop a collection whose schema file is gone, so its files are removed
        # while no server of ours holds them.
        self._disconnect()
        shutil.rmtree(self.folder / "collections" / collection, ignore_errors=True)
        self._connect()

    def size_bytes(self) -> int | None:
        """Bytes of a Lite folder on disk; None on a server, which does not say."""
        if self.folder is None:
            return None
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    @contextmanager
    def explained(self, attempt: str) -> Iterator[None]:
        """Turn a failure of Milvus into IndexUnavailable that says what was attempted."""
        from pymilvus import MilvusException

        try:
            yield
        except MilvusException as error:
            raise IndexUnavailable(
                f"The index {self.where} could not {attempt} ({_one_line(error.message)}): check"
                " Milvus, or run `memograd memory reindex`."
            ) from error

    def _connect(self) -> None:
        from pymilvus import MilvusClient, MilvusException

        self._closed = True
        try:
            if self.folder is not None:
                self.client = MilvusClient(str(self.folder))
            else:
                self.client = MilvusClient(
                    self.where, token=self._token or "", timeout=CONNECT_SECONDS
                )
        except MilvusException as error:
            remedy = (
                "another program may be using it, or it is not an index of Milvus Lite"
                if self.is_lite
                else "check that the server runs and that uri and token are right"
            )
            raise IndexUnavailable(
                f"The index {self.where} cannot be opened ({_one_line(error.message)}): {remedy}."
            ) from error
        self._closed = False

    def _disconnect(self) -> None:
        self.client.close()
        self._closed = True
        if self.folder is not None:
            from milvus_lite.server_manager import server_manager_instance

            # Closing the client leaves Lite's in-process server running and the folder locked.
            server_manager_instance.release_server(str(self.folder))

    def _release(self) -> None:
        if self._lock is not None and self._lock.is_locked:
            self._lock.release()


def _folder(uri: str) -> Path:
    if "://" in uri or not uri.endswith(".db"):
        raise BadInput(
            f"The index uri {uri!r} must be a path that ends in .db (Milvus Lite) or begin with"
            " http:// or https:// (a Milvus server)."
        )
    return Path(uri).expanduser().resolve()


def _held(folder: Path) -> BaseFileLock:
    """Hold the folder for this object, or say why it cannot be held."""
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "memograd.lock", thread_local=False)
        lock.acquire(timeout=0)
    except Timeout:
        raise IndexUnavailable(
            f"The index {folder} is open already, here or in another process, and Milvus Lite"
            " serves one at a time: close it there, or use a Milvus server."
        ) from None
    except FileExistsError:
        raise BadInput(
            f"The index path {folder} is a file, but an index of Milvus Lite is a folder: choose"
            " another path."
        ) from None
    except OSError as error:
        raise BadInput(
            f"The index {folder} cannot be created or written ({error.strerror}): choose another"
            " path."
        ) from None
    return lock


def _one_line(message: str) -> str:
    return " ".join(str(message).split())[:300]
