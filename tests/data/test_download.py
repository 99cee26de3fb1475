"""Downloads from a real HTTP server on this machine, which misbehaves as the test says."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import memograd.data
from memograd.data import catalogue, download
from memograd.data import download as transfer
from memograd.data.catalogue import CATALOGUE, DataSet, RemoteFile, data_set
from memograd.data.download import BEGINNINGS, get_data
from memograd.errors import BadInput, MemogradError

CONTENT = b"[" + bytes(range(256)) * 4000 + b"]"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "big.json"


class Server:
    """One file with an ETag; `troubles` are spent one a request, before it is served well.

    A trouble is a number of bytes after which the connection is cut, or a status to answer.
    requests: the headers of each. ranges: whether `Range` is understood.
    """

    def __init__(self) -> None:
        self.content = CONTENT
        self.headers: dict[str, str] = {"ETag": '"one"'}
        self.troubles: list[tuple[str, int]] = []
        self.ranges = True
        self.requests: list[dict[str, str]] = []
        self.paths: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(dict(self.headers))
                outer.paths.append(self.path)
                kind, amount = outer.troubles.pop(0) if outer.troubles else ("none", 0)
                if kind == "status":
                    self.send_response(amount)
                    self.send_header("Retry-After", "0")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                start = self._start()
                if start is not None and start >= len(outer.content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(outer.content)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(200 if start is None else 206)
                body = outer.content[start or 0 :]
                if start is not None:
                    last, size = len(outer.content) - 1, len(outer.content)
                    self.send_header("Content-Range", f"bytes {start}-{last}/{size}")
                self.send_header("Content-Length", str(len(body)))
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body[:amount] if kind == "cut" else body)

            def _start(self) -> int | None:
                """Where the asked range begins, None if all of the file is to be sent."""
                match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
                known = (outer.headers.get("ETag"), outer.headers.get("Last-Modified"))
                version = self.headers.get("If-Range", "")
                same = version in known and not version.startswith("W/")  # RFC 9110: strong only
                if not outer.ranges or match is None or not same:
                    return None
                return int(match[1])

            def log_message(self, *arguments: Any) -> None:
                """Stay quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def asked_from(self) -> list[str | None]:
        """The ranges of all requests."""
        return [request.get("Range") for request in self.requests]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, offer: Callable[..., None]) -> Iterator[Server]:
    served = Server()
    thread = threading.Thread(target=served.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("MEMOGRAD_DATA_MIRROR", f"{served.url}/mirror/")
    monkeypatch.setattr(transfer, "FIRST_PAUSE", 0.001)
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put one file into the catalogue, as the data set `mine`."""

    def put(sha256: str | None = SHA256, size: int | None = None, name: str = NAME) -> None:
        file = RemoteFile(name, f"https://example.org/{name}", sha256, size)
        mine = DataSet("mine", "CC0", "https://example.org", "load_any", (file,))
        monkeypatch.setattr(catalogue, "CATALOGUE", {"mine": mine})

    put()
    return put


def names(folder: Path) -> set[str]:
    return {path.name for path in (folder / "mine").iterdir()} - {".lock"}


def test_a_file_arrives_whole_and_is_not_fetched_twice(server: Server, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int | None]] = []
    path = tmp_path / "mine" / NAME
    assert get_data("mine", tmp_path, progress=lambda *news: heard.append(news)) == [path]
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == {NAME}
    assert server.paths == [f"/mirror/mine/{NAME}"]
    assert heard[0] == (NAME, 0, len(CONTENT))
    assert heard[-1] == (NAME, len(CONTENT), len(CONTENT))
    assert get_data("mine", tmp_path) == [path]
    assert len(server.requests) == 1


@pytest.mark.parametrize("headers", [{"ETag": '"one"'}, {"ETag": 'W/"x"', "Last-Modified": "Mon"}])
def test_a_cut_connection_goes_on_where_it_stopped(
    server: Server, tmp_path: Path, headers: dict[str, str]
) -> None:
    server.headers = headers
    server.troubles = [("cut", 300_000), ("cut", 200_000)]
    get_data("mine", tmp_path)
    assert (tmp_path / "mine" / NAME).read_bytes() == CONTENT
    assert server.asked_from() == [None, "bytes=300000-", "bytes=500000-"]
    assert names(tmp_path) == {NAME}


def test_an_interrupted_download_goes_on_next_time(server: Server, tmp_path: Path) -> None:
    def interrupt(name: str, done: int, total: int | None) -> None:
        if done > 400_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get_data("mine", tmp_path, progress=interrupt)
    assert names(tmp_path) == {f"{NAME}.part", f"{NAME}.part.version"}
    there = (tmp_path / "mine" / f"{NAME}.part").stat().st_size
    assert there > 400_000
    get_data("mine", tmp_path)
    assert server.asked_from() == [None, f"bytes={there}-"]
    assert (tmp_path / "mine" / NAME).read_bytes() == CONTENT


def test_a_part_that_was_already_all_of_it_is_enough(server: Server, tmp_path: Path) -> None:
    """Killed between the last byte and the renaming."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / f"{NAME}.part").write_bytes(CONTENT)
    (tmp_path / "mine" / f"{NAME}.part.version").write_text('"one"')
    get_data("mine", tmp_path)
    assert server.asked_from() == [f"bytes={len(CONTENT)}-"]
    assert names(tmp_path) == {NAME}


@pytest.mark.parametrize(
    "change",
    [
        lambda server: server.headers.update(ETag='"two"'),
        lambda server: setattr(server, "ranges", False),
    ],
    ids=["another file", "no ranges"],
)
def test_what_cannot_go_on_begins_anew(
    server: Server, offer: Callable[..., None], tmp_path: Path, change: Callable[[Server], None]
) -> None:
    server.troubles = [("cut", 300_000)] + [("status", 503)] * 5
    with pytest.raises(MemogradError, match="503"):
        get_data("mine", tmp_path)
    server.content = b"{" + CONTENT[::-1]
    offer(sha256=hashlib.sha256(server.content).hexdigest())
    change(server)
    get_data("mine", tmp_path)
    assert (tmp_path / "mine" / NAME).read_bytes() == server.content
    assert names(tmp_path) == {NAME}


def test_a_part_longer_than_the_file_begins_anew(server: Server, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / f"{NAME}.part").write_bytes(CONTENT + b"more")
    (tmp_path / "mine" / f"{NAME}.part.version").write_text('"one"')
    get_data("mine", tmp_path)
    assert (tmp_path / "mine" / NAME).read_bytes() == CONTENT


def test_a_part_of_unknown_version_is_not_trusted(server: Server, tmp_path: Path) -> None:
    server.headers = {}
    server.troubles = [("cut", 300_000)]
    get_data("mine", tmp_path)
    assert server.asked_from() == [None, None]
    assert (tmp_path / "mine" / NAME).read_bytes() == CONTENT


def test_a_server_that_is_busy_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.troubles = [("status", 503), ("status", 429), ("status", 500)]
    get_data("mine", tmp_path)
    assert len(server.requests) == 4


def test_a_connection_that_is_cut_often_but_brings_something_is_borne(
    server: Server, tmp_path: Path
) -> None:
    server.troubles = [("cut", 10_000)] * 9
    get_data("mine", tmp_path)
    assert server.asked_from()[1:] == [f"bytes={n}0000-" for n in range(1, 10)]
    assert (tmp_path / "mine" / NAME).read_bytes() == CONTENT


def test_five_times_without_a_byte_is_enough(server: Server, tmp_path: Path) -> None:
    server.troubles = [("cut", 1000)] + [("cut", 0)] * 9
    with pytest.raises(MemogradError) as caught:
        get_data("mine", tmp_path)
    assert len(server.requests) == 1 + 4
    sentence = str(caught.value)
    assert f"cut off after 1000 of {len(CONTENT)} bytes, 5 times" in sentence
    assert f"by hand into {tmp_path / 'mine' / NAME}" in sentence
    assert "https://example.org/big.json" in sentence
    server.troubles = []
    get_data("mine", tmp_path)
    assert server.asked_from()[-1] == "bytes=1000-"


@pytest.mark.parametrize("status", [404, 403, 401])
def test_a_server_that_says_no_is_not_asked_again(
    server: Server, tmp_path: Path, status: int
) -> None:
    server.troubles = [("status", status)]
    with pytest.raises(MemogradError, match=rf"answers {status} .*by hand into"):
        get_data("mine", tmp_path)
    assert len(server.requests) == 1
    assert names(tmp_path) == set()


def test_without_a_network_it_says_where_to_fetch_it_by_hand(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = free.getsockname()[1]
    monkeypatch.setenv("MEMOGRAD_DATA_MIRROR", f"http://127.0.0.1:{closed}")
    with pytest.raises(MemogradError) as caught:
        get_data("mine", tmp_path)
    assert caught.value.exit_code == 1
    for words in ("refused, 5 times", "https://example.org/big.json", "MEMOGRAD_DATA_MIRROR"):
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT[:-1] + b"}"
    with pytest.raises(MemogradError, match=rf"not {SHA256}; it was damaged on the way"):
        get_data("mine", tmp_path)
    assert names(tmp_path) == set()
    server.content = CONTENT
    get_data("mine", tmp_path)


def test_a_file_of_the_same_name_that_is_another_one(server: Server, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / NAME
    path.write_text("[]")
    with pytest.raises(MemogradError, match=r"is not the one that is meant .* delete it"):
        get_data("mine", tmp_path)
    assert path.read_text() == "[]"
    assert server.requests == []


def test_an_unknown_checksum_is_recorded_and_held_to(
    server: Server, offer: Callable[..., None], tmp_path: Path
) -> None:
    offer(sha256=None)
    path, record = tmp_path / "mine" / NAME, tmp_path / "mine" / f"{NAME}.sha256"
    get_data("mine", tmp_path)
    assert record.read_text() == f"{SHA256}  {NAME}\n"
    path.unlink()
    server.content = b"[]"
    with pytest.raises(MemogradError, match=r"changed since big\.json\.sha256 was recorded"):
        get_data("mine", tmp_path)
    assert names(tmp_path) == {record.name}
    record.unlink()
    get_data("mine", tmp_path)
    assert path.read_bytes() == b"[]"
    path.write_bytes(b"[1]")
    with pytest.raises(MemogradError, match="not the one that is meant"):
        get_data("mine", tmp_path)
    record.write_text("")
    with pytest.raises(MemogradError, match="holds no checksum"):
        get_data("mine", tmp_path)


def test_a_file_put_there_by_hand_is_taken_and_recorded(
    server: Server, offer: Callable[..., None], tmp_path: Path
) -> None:
    offer(sha256=None)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / NAME).write_bytes(CONTENT)
    get_data("mine", tmp_path)
    assert server.requests == []
    assert (tmp_path / "mine" / f"{NAME}.sha256").read_text().startswith(SHA256)


@pytest.mark.parametrize("name", ["big.json", "big.parquet"])
def test_a_page_in_place_of_the_file_is_not_recorded(
    server: Server, offer: Callable[..., None], tmp_path: Path, name: str
) -> None:
    offer(sha256=None, name=name)
    server.content = b"<!doctype html><title>Log in</title>"
    with pytest.raises(MemogradError, match="perhaps a page that asks to log in"):
        get_data("mine", tmp_path)
    assert names(tmp_path) == set()


def test_too_little_room_is_said_before_anything_is_fetched(
    server: Server, offer: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(size=len(CONTENT))
    real = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: real._replace(free=len(CONTENT) - 1))
    with pytest.raises(MemogradError, match="The disk is full"):
        get_data("mine", tmp_path)
    assert server.requests == []


def test_a_disk_that_fills_up_keeps_what_came(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as limited:
        limited.setattr(os, "fsync", full)
        with pytest.raises(MemogradError, match=r"The disk is full .* goes on where it stopped"):
            get_data("mine", tmp_path)
    assert NAME not in names(tmp_path)
    get_data("mine", tmp_path)
    assert server.asked_from() == [None, f"bytes={len(CONTENT)}-"]
    assert (tmp_path / "mine" / NAME).read_bytes() == CONTENT


def test_one_process_at_a_time(server: Server, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with (
        FileLock(tmp_path / "mine" / ".lock"),
        pytest.raises(MemogradError, match="Another process is fetching mine"),
    ):
        get_data("mine", tmp_path)


@pytest.mark.usefixtures("offer")
def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("a file")
    with pytest.raises(MemogradError, match="cannot be written"):
        get_data("mine", tmp_path)


def test_where_the_files_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    file = RemoteFile("a.json", "https://huggingface.co/datasets/x/resolve/main/a.json")
    for name in ("MEMOGRAD_DATA_MIRROR", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert download._address("mine", file) == file.url
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example/")
    assert download._address("mine", file) == "https://hub.example/datasets/x/resolve/main/a.json"
    monkeypatch.setenv("HF_ENDPOINT", "hub.example")
    with pytest.raises(BadInput, match=r"HF_ENDPOINT is 'hub\.example'"):
        download._address("mine", file)
    monkeypatch.setenv("MEMOGRAD_DATA_MIRROR", "http://mirror.example/all/")
    assert download._address("mine", file) == "http://mirror.example/all/mine/a.json"
    monkeypatch.setenv("MEMOGRAD_DATA_MIRROR", "/a/folder")
    with pytest.raises(BadInput, match=r"MEMOGRAD_DATA_MIRROR is '/a/folder'.*http"):
        download._address("mine", file)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_set_can_be_fetched_and_loaded(name: str) -> None:
    wanted = data_set(name)
    assert callable(getattr(memograd.data, wanted.loader))
    assert wanted.about and wanted.licence and wanted.home.startswith("https://")
    names = [file.name for file in wanted.files]
    assert names and len(set(names)) == len(names)
    for file in wanted.files:
        assert file.url.startswith("https://")
        assert file.url.endswith(f"/{file.name}")
        assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        # A checksum is only worth something for an address that always gives the same file.
        assert file.sha256 is None or re.search(r"/[0-9a-f]{40}/", file.url)
        assert file.sha256 or any(file.name.endswith(suffix) for suffix in BEGINNINGS)


def test_an_unknown_set_lists_the_known() -> None:
    with pytest.raises(BadInput, match=r"no data set 'squad': choose from locomo, longmemeval-"):
        data_set("squad")
