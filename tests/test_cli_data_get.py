"""`memograd data list` and `get`, over a mirror on this machine."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memograd.cli import main
from memograd.data import load_memdaily
from memograd.data.catalogue import CATALOGUE

STREAM = {
    "tid": 0,
    "message_list": [{"mid": 0, "message": "我叫小红。", "time": "2024年04月01日 周一 08:39"}],
    "question_list": [],
}


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that a server shows; the mirror is laid out as `data get` lays files out."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Stay quiet."""

    folder = tmp_path / "mirror"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("MEMOGRAD_DATA_MIRROR", f"http://127.0.0.1:{server.server_port}")
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert exit_.value.code == code, captured.err
    return captured.out, captured.err


def test_a_set_is_fetched_from_a_mirror_and_loads(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [file.name for file in CATALOGUE["memdaily"].files]
    (mirror / "memdaily").mkdir()
    for name in names:
        (mirror / "memdaily" / name).write_text(json.dumps([STREAM]), encoding="utf-8")
    out, err = run(capsys, "data", "get", "memdaily", "--out", tmp_path / "here")
    paths = [tmp_path / "here" / "memdaily" / name for name in names]
    assert [line for line in out.splitlines() if line.endswith(".json")] == list(map(str, paths))
    assert "none stated by its makers" in out
    assert "memograd.data.load_memdaily(path)" in out
    assert err == ""
    assert load_memdaily(paths[0])[0].turns[0].text == "我叫小红。"

    listed = json.loads(run(capsys, "data", "list", "--out", tmp_path / "here", "--json")[0])
    assert [one["name"] for one in listed] == list(CATALOGUE)
    assert [one["name"] for one in listed if one["fetched"]] == ["memdaily"]
    shown, _ = run(capsys, "data", "list")
    for name, one in CATALOGUE.items():
        assert name in shown
        assert one.licence in shown


def test_what_the_mirror_does_not_have_is_said_in_one_sentence(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = run(capsys, "data", "get", "locomo", "--out", tmp_path, code=1)
    assert err.startswith("memograd: http://127.0.0.1")
    assert "404" in err
    assert f"fetch {CATALOGUE['locomo'].files[0].url} by hand" in err
    assert err.count("\n") == 1


def test_a_mirror_that_is_no_address_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMOGRAD_DATA_MIRROR", "mirror.example")
    _, err = run(capsys, "data", "get", "locomo", "--out", tmp_path, code=2)
    assert "must begin with http://" in err
    assert not list(tmp_path.iterdir())


def test_an_unknown_set(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = run(capsys, "data", "get", "squad", code=2)
    assert "choose from locomo" in err


def test_the_mirror_is_no_setting_of_the_memory(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memograd.config import load_memory_settings

    monkeypatch.setenv("MEMOGRAD_DATA_MIRROR", "http://mirror.example")
    load_memory_settings()


def test_a_terminal_shows_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memograd.cli.show import Transfer

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Transfer() as transfer:
        transfer("[odd] name.json", 512_000, 1_024_000)
        transfer("[odd] name.json", 768_000, 1_024_000)
    shown = capsys.readouterr().err
    assert "[odd] name.json" in shown
    assert "768.0/1,024.0 kB" in shown or "0.8/1.0 MB" in shown
