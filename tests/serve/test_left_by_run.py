"""A memory that a run left is what there is to see, until there is one of one's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from asked import Serving
from browsing import Browser
from run_folders import HOSTILE, example_runs

from memograd.config import MemorySettings
from memograd.memory import Memory
from memograd.serve import left_by_run
from memograd.serve.keys import Right


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs of which `good` left a memory, with two users."""
    runs = example_runs(tmp_path)
    about = {"steps": 3, "model": "smollm2", "embedder": "e5"}
    (runs / "good" / "config.json").write_text(json.dumps(about))
    with Memory.open(runs / "good" / "memory", ranking="fusion") as memory:
        for user in ("Ann, untrained", "Ann, trained"):
            memory.add("I live in Boston.", user_id=user, infer=False)
            memory.add(f"I like {HOSTILE}.", user_id=user, infer=False)
        [item, _] = memory.get_all(user_id="Ann, trained")["results"]
        memory.update(item["id"], "I live in Denver.")
    return runs


def test_the_newest_memory_of_a_run_is_found(runs: Path) -> None:
    assert left_by_run.newest(runs) == runs / "good"
    assert left_by_run.newest(runs / "nowhere") is None
    assert left_by_run.name_of(runs / "good" / "memory", runs) == "good"
    assert left_by_run.name_of(runs / "broken" / "memory", runs) is None
    assert left_by_run.name_of(runs / "good", runs) is None
    found = left_by_run.settings_of(runs / "good", MemorySettings(top_k=7))
    assert (found.path, found.embedder, found.top_k) == (runs / "good" / "memory", "e5", 7)
    assert found.policy is None  # this run kept none


def test_a_memory_of_ones_own_comes_first(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert left_by_run.instead_of(MemorySettings(), runs) == runs / "good"
    for named in ({"path": Path("memories")}, {"journal_url": "postgresql://somewhere/x"}):
        assert left_by_run.instead_of(MemorySettings(**named), runs) is None
    (tmp_path / "memories").mkdir()
    assert left_by_run.instead_of(MemorySettings(), runs) is None


def test_the_first_page_shows_what_was_remembered_why_and_what_changed(
    runs: Path, make_serving: Callable[..., Serving]
) -> None:
    with Memory.open(runs / "good" / "memory", ranking="fusion") as memory:
        serving = make_serving(memory, runs=runs)
        for language, words in (
            (
                "en",
                (
                    *("The run good left this memory", "and why", "What training changed"),
                    "updated by the application",  # the reason
                ),
            ),
            ("zh", ("这份记忆由训练 good 留下", "为什么", "训练改变了什么", "由应用更新")),
        ):
            page = Browser(serving).get("/memory", lang=language).text
            assert all(word in page for word in words)
            assert "<del>Boston</del><ins>Denver</ins>" in page
            assert "Question 0?" in page and "<blockquote>new</blockquote>" in page
            assert "/page/runs/curves?run=good" in page and "/page/runs/good/answers" in page
            assert HOSTILE not in page
        assert "The run good" not in Browser(serving).get("/memory", find="Ann").text
        backend = Browser(serving, rights=(Right.read,)).get("/memory")
        assert backend.status_code == 200
        assert "The run good" not in backend.text  # runs are shown to operators alone


def test_another_memory_is_no_runs(serving: Serving) -> None:
    assert "left" not in Browser(serving).get("/memory").text


@pytest.mark.slow
def test_the_command_shows_it_and_gives_clients_no_token(runs: Path, tmp_path: Path) -> None:
    def begun(*options: str) -> tuple[Any, list[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "memograd", "serve", "--port", "0", *options],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "MEMOGRAD_RANKING": "fusion"},
        )
        lines: list[str] = []
        assert process.stdout is not None
        while "open once" not in (lines or [""])[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        return process, lines

    process, lines = begun()
    try:
        assert "There is no memory in memories yet" in lines[0] and "run good left" in lines[0]
        assert not any("token" in line for line in lines[:-1])
        with httpx.Client(trust_env=False, timeout=60, follow_redirects=True) as client:
            page = client.get(lines[-1].split()[-1])
            assert "The run good left this memory" in page.text
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 143
    finally:
        process.kill()
    assert not (tmp_path / "memories").exists()
    process, lines = begun("--path", "memories")
    process.kill()
    process.wait()
    assert "admin token" in lines[1]
