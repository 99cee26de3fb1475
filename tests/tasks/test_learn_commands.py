"""Policies at the command line: adopt, use, give feedback, learn, roll back, compact."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.conftest import Command

from memograd.memory import Memory
from memograd.memory.manager.trained.files import save_head

QUICK = ("steps=1", "logs=1", "eval_logs=1", "logs_per_step=1")


@pytest.fixture
def head(bare_environment: Path, make_head: Callable[..., Any]) -> Any:
    """A policy in `head` that remembers everything."""
    made = make_head("e5", 384, add=5.0)
    save_head(made, bare_environment / "head")
    return made


def corrected(command: Command) -> None:
    for town in ("Boston", "Rome"):
        command("memory", "add", f"My office in {town} is red.", "--user", "a", "--policy", "head")
    with Memory.open("memories") as memory:
        ids = [memory.answered(f"Office {n}?", "No idea.", user_id="a") for n in range(6)]
    for answer_id in ids:
        command("memory", "feedback", answer_id, "The office in Rome is red.", "--user", "a")


def test_a_policy_decides_what_add_writes(command: Command, head: Any) -> None:
    told = ("memory", "add", "I live in Boston.", "--user", "alice")
    for _ in range(2):
        done = json.loads(command(*told, "--policy", "head", "--json"))
        assert [one["actor"] for one in done["results"]] == [f"policy:{head.version}"]
    assert "There was nothing to remember" in command(*told)  # the rules know it already
    assert "set policy too" in command(*told, "--defer-below", "0.5", code=2)


def test_the_life_of_a_policy(command: Command, head: Any, make_head: Callable[..., Any]) -> None:
    assert "adopt one with" in command("policy", "list", "--dir", "p", code=2)
    assert "no trained head" in command("policy", "adopt", "absent", "--dir", "p", code=2)
    assert not Path("p").exists()
    assert head.version in command("policy", "adopt", "head", "--dir", "p")
    assert "nothing is before it" in command("policy", "rollback", "--dir", "p", code=2)
    save_head(make_head("e5", 384, add=6.0), Path("second"))
    command("policy", "adopt", "second", "--dir", "p")
    rows = json.loads(command("policy", "list", "--dir", "p", "--json"))
    assert [row["state"] for row in rows] == ["before", "current"]
    assert f"{head.version} is current again" in command("policy", "rollback", "--dir", "p")
    assert head.version in command("policy", "list", "--dir", "p")
    command("policy", "adopt", rows[1]["version"], "--dir", "p")


def test_what_cannot_be_learnt_is_refused(command: Command, head: Any) -> None:
    command("memory", "add", "My office in Rome is red.", "--user", "a", "--policy", "head")
    assert "give --policy-dir" in command("learn", "--user", "a", code=2)
    several = ("learn", "--user", "a", "--agent", "b", "--policy-dir", "p")
    assert "all feedback of user:a" in command(*several, code=2)
    one = command("learn", "--user", "a", "--policy-dir", "head", code=2)
    assert "holds one trained head" in one
    assert "adopt one with" in command("learn", "--user", "a", "--policy-dir", "p", code=2)
    command("policy", "adopt", "head", "--dir", "p")
    learn = ("learn", "--user", "b", "--policy-dir", "p", *QUICK)
    assert "no feedback of user:b" in command(*learn, code=2)
    assert "Unknown" in command("learn", "--user", "a", "--policy-dir", "p", "stepz=1", code=2)


@pytest.mark.slow  # in Python: test_learn_online.py
def test_learning_from_feedback(command: Command, head: Any) -> None:
    corrected(command)
    command("policy", "adopt", "head", "--dir", "p")
    learn = ("learn", "--user", "a", "--policy-dir", "p", *QUICK)
    report = json.loads(command(*learn, "--json"))
    assert report["before_version"] == head.version
    assert report["trained_on"] + report["held_out"] == 6
    rows = json.loads(command("policy", "list", "--dir", "p", "--json"))
    [current] = [row["version"] for row in rows if row["state"] == "current"]
    assert current == (report["after_version"] if report["adopted"] else head.version)


@pytest.mark.slow
def test_learning_in_the_background(command: Command, head: Any) -> None:
    corrected(command)
    command("policy", "adopt", "head", "--dir", "p")
    printed = command("learn", "--user", "a", "--policy-dir", "p", "--background", *QUICK)
    assert printed.startswith("Learning in process ")
    log = Path("p/log.jsonl")
    for _ in range(600):
        if '"before_version"' in log.read_text(encoding="utf-8"):
            break
        time.sleep(0.1)
    assert f'"before_version": "{head.version}"' in log.read_text(encoding="utf-8")


def test_compacting_and_taking_it_back(command: Command, head: Any) -> None:
    for text in ("I live in Boston.", "I have a cat."):
        command("memory", "add", text, "--user", "alice", "--verbatim")
    report = json.loads(command("memory", "compact", "--budget", "5", "--user", "alice", "--json"))
    assert (report["retired"], report["items"]) == (1, {"before": 2, "after": 1})
    assert "restored" in command("memory", "compact", "--undo", report["batch_id"])
    listed = json.loads(command("memory", "list", "--user", "alice", "--json"))
    assert len(listed["results"]) == 2
    again = ("memory", "compact", "--budget", "5", "--user", "alice", "--policy", "head")
    command(*again)
    for wrong in ((), ("--budget", "5"), ("--undo", "x", "--user", "alice"), ("--undo", "x")):
        assert command("memory", "compact", *wrong, code=2)
    undone = ("memory", "compact", "--undo", "x", "--policy", "head")
    assert "or --undo alone" in command(*undone, code=2)


def test_feedback_while_talking(
    command: Command, chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    monkeypatch.setenv("OPENAI_MODEL", "test")
    lines = "/good\nWhere do I live?\n/good\n/bad In Boston.\n/bad\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    printed = command("chat", "--user", "alice")
    assert printed == "There is no answer to judge.\nNoted.\n" + "Thank you.\n" * 3
    with Memory.open("memories") as memory:
        told = memory.store.journal.tail("user:alice")
    said = [event.after for event in told if event.kind == "FEEDBACK"]
    assert [(one["verdict"], one["correction"]) for one in said if one] == [
        ("good", None),
        ("correction", "In Boston."),
        ("bad", None),
    ]


@pytest.mark.slow
def test_help_needs_no_torch() -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from memograd.cli import main\n"
        "for command in sys.argv[1:]:\n"
        "    try: main([*command.split(), '--help'])\n"
        "    except SystemExit as ended: assert ended.code == 0\n"
    )
    commands = ["learn", "policy", "memory compact"]
    done = subprocess.run([sys.executable, "-c", script, *commands], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"memograd {command}" in done.stdout for command in commands)
