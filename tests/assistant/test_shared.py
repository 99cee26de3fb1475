"""Equal settings share a memory and a model; everything shared is closed when the process ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memograd.assistant.helpers import close_shared, shared_chat_model, shared_memory
from memograd.config import MemorySettings


@pytest.fixture(autouse=True)
def _nothing_left(bare_environment: Path) -> Iterator[None]:
    close_shared()
    yield
    close_shared()


def test_equal_settings_share(bare_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shared_memory()
    assert shared_memory() is first
    monkeypatch.setenv("MEMOGRAD_PATH", "other")
    second = shared_memory()
    assert second is not first
    assert shared_memory() is second
    monkeypatch.delenv("MEMOGRAD_PATH")
    assert shared_memory() is first
    (bare_environment / "elsewhere").mkdir()
    monkeypatch.chdir(bare_environment / "elsewhere")
    assert shared_memory() is not first


def test_a_chat_model_is_chosen_once() -> None:
    def told(url: str) -> MemorySettings:
        return MemorySettings(openai_base_url=url, openai_model="m")

    chat = shared_chat_model(told("http://127.0.0.1:9/v1"))
    assert shared_chat_model(told("http://127.0.0.1:9/v1")) is chat
    assert shared_chat_model(told("http://127.0.0.1:8/v1")) is not chat


def test_the_end_of_the_process_closes_it(bare_environment: Path) -> None:
    script = (
        "import atexit, memograd\n"
        "from memograd.assistant.helpers import shared_memory\n"
        "memograd.process_user_memory('I live in Boston.', 'alice')\n"
        "memory = shared_memory()\n"
        "close = memory.close\n"
        "memory.close = lambda: (close(), print('closed'))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "closed\n", "")
