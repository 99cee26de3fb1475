"""`memograd chat` and `memograd doctor`, at the command line, against a real endpoint."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memograd.cli import main
from memograd.memory import Memory

Talk = Callable[..., tuple[str, str]]


@pytest.fixture
def endpoint(chat_server, bare_environment: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    monkeypatch.setenv("OPENAI_MODEL", "test-model")
    return chat_server


@pytest.fixture
def talk(endpoint, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Talk:
    """Says lines through a pipe; returns what was printed and what went to standard error."""

    def run(*lines: str, options: tuple[str, ...] = (), code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        with pytest.raises(SystemExit) as exit_:
            main(["chat", "--user", "alice", *options])
        assert exit_.value.code == code
        printed = capsys.readouterr()
        return printed.out, printed.err

    return run


def test_it_answers_and_remembers(talk: Talk, endpoint) -> None:
    endpoint.answer = lambda messages: f"You said: {messages[-1]['content'].split()[-1]}"
    printed, _ = talk("I live in Boston.", "", "我喜欢喝茶。")
    assert printed == "You said: Boston.\nYou said: 我喜欢喝茶。\n"
    with Memory.open("memories") as memory:
        said = " ".join(item["memory"] for item in memory.get_all(user_id="alice")["results"])
    assert "Boston" in said and "茶" in said


def test_a_later_conversation_recalls(talk: Talk, endpoint) -> None:
    talk("I live in Boston.")
    endpoint.answer = lambda messages: "yes" if "Boston" in messages[-1]["content"] else "no"
    assert talk("Where do I live?")[0] == "yes\n"


def test_commands_look_into_the_memory(talk: Talk) -> None:
    printed, _ = talk("/why", "/memory", "I live in Boston.", "/why", "/memory", "/dance")
    first, then = printed.split("Noted.\n")
    assert first == "Nothing was said yet.\nNothing is remembered here.\n"
    why, memory = then.split("Written:\n")
    assert why == "Recalled:\n  nothing\n"
    assert "ADD" in memory
    assert memory.count("Boston") == 2
    assert memory.rstrip().endswith("/quit       end (or Ctrl-D)")


def test_show_explains_every_answer(talk: Talk) -> None:
    with Memory.open("memories") as memory:
        memory.add("Call me Al.", user_id="alice", kind="core", infer=False)
        memory.add("I live in Boston.", user_id="alice")
    printed, _ = talk("Where do I live?", options=("--show",))
    assert "Call me Al.\n    Always in mind." in printed
    assert "User lives in Boston.\n    Found as rank" in printed
    assert "There was nothing to remember in it." in printed


def test_forget_and_quit(talk: Talk) -> None:
    with Memory.open("memories") as memory:
        [added] = memory.add("I live in Boston.", user_id="alice")["results"]
    printed, said = talk(f"/forget {added['id']}", "/forget", "/quit", "never said")
    assert printed == "Forgotten.\n"
    assert "There is no memory with the id ''" in said
    with Memory.open("memories") as memory:
        assert memory.get_all(user_id="alice") == {"results": []}


def test_a_failed_turn_does_not_end_the_conversation(talk: Talk, endpoint) -> None:
    def answer(messages: list[dict[str, str]]) -> str:
        return "" if "empty" in messages[-1]["content"] else "fine"

    endpoint.answer = answer
    printed, said = talk("empty please", "hello again")
    assert printed == "fine\n"
    assert "memograd: The chat model 'test-model'" in said


def test_an_answer_cannot_move_the_cursor(talk: Talk, endpoint) -> None:
    endpoint.answer = lambda messages: "a\x1b[2Jb"
    assert talk("hello")[0] == "a\ufffd[2Jb\n"


def test_interrupting_ends_it(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)
    talk(code=130)
    with Memory.open("memories"):
        pass  # nothing is left locked


def test_without_a_model_it_is_2(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_MODEL")
    assert "OPENAI_MODEL" in talk("hello", code=2)[1]


def test_a_pipe_into_the_process(endpoint, bare_environment: Path) -> None:
    endpoint.answer = lambda messages: "你好!"
    done = subprocess.run(
        [sys.executable, "-m", "memograd", "chat", "--user", "小红"],
        input="我住在北京。\n/quit\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )
    assert (done.returncode, done.stdout) == (0, "你好!\n")
    assert "Traceback" not in done.stderr


def test_help_of_chat(talk: Talk) -> None:
    printed, _ = talk(options=("--help",))
    assert "Examples:\n    memograd chat --user alice" in printed
    assert "/forget ID" in printed
    assert "Exit codes:" in printed


# doctor


def doctor(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as exit_:
        main(["doctor", *options])
    return int(exit_.value.code or 0), capsys.readouterr().out


def test_a_healthy_place(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = doctor(capsys, "--json")
    findings = json.loads(printed)
    assert code == 0
    assert {"folder", "embedder", "journal"} <= {finding["name"] for finding in findings}
    assert all(finding["ok"] is not False for finding in findings)
    code, printed = doctor(capsys)
    assert code == 0
    assert "fine" in printed and "absent" in printed and "WRONG" not in printed


def test_something_wrong_is_1(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare_environment / "a_file").write_text("")
    code, printed = doctor(capsys, "--path", "a_file")
    assert code == 1
    assert "WRONG" in printed


def test_a_wrong_setting_is_2(
    bare_environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMOGRAD_TOP_K", "many")
    assert doctor(capsys)[0] == 2
