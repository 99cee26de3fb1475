"""`memograd mcp install`: the clients' files in a temporary home, and the hooks that it writes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asked import ADMIN
from typer.testing import CliRunner

from memograd.cli.app import app
from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.search.context import CLOSING, NOTICE
from memograd.serve.app import create_app
from memograd.serve.mcp import hook
from memograd.serve.mcp.install import BEGIN, CLIENTS, END, RunningServer, Started, plan, write
from memograd.serve.served import Served, ServeSettings
from memograd.web.running import running

RUNNING = RunningServer("http://127.0.0.1:1", "mg-secret")
STARTED = Started(("--user", "爱丽丝", "--path", "/some where/memories"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def written(client: str, server: Any) -> list[Path]:
    changes = plan(client, server)
    for change in changes:
        write(change)
    return [change.path for change in changes]


def entry(client: str) -> dict[str, Any]:
    text = hook.servers_file(client).read_text(encoding="utf-8")
    if client == "codex":
        return tomllib.loads(text)["mcp_servers"]["memograd"]
    return json.loads(text)["mcpServers"]["memograd"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize("client", CLIENTS)
def test_nobody_else_reads_the_file_with_the_key(home: Path, client: str) -> None:
    path = hook.servers_file(client)
    path.parent.mkdir(exist_ok=True)
    path.write_text("" if client == "codex" else "{}")
    path.chmod(0o644)
    written(client, STARTED)
    assert path.stat().st_mode & 0o777 == 0o644
    written(client, RUNNING)
    assert path.stat().st_mode & 0o777 == 0o600


def commands(client: str) -> list[str]:
    """The hooks' commands, in the order of their events."""
    known = json.loads(hook.hooks_file(client).read_text(encoding="utf-8"))
    groups = [group for event in known["hooks"].values() for group in event]
    return [one["command"] for group in groups for one in group.get("hooks", [group])]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_the_client_starts(home: Path, client: str) -> None:
    assert written(client, STARTED) == [hook.servers_file(client)]
    found = entry(client)
    assert found["command"] == sys.executable
    assert found["args"] == ["-m", "memograd", "mcp", "serve", *STARTED.arguments]
    assert plan(client, STARTED) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_running_server_comes_with_hooks(home: Path, client: str) -> None:
    assert written(client, RUNNING) == [hook.servers_file(client), hook.hooks_file(client)]
    assert entry(client)["url"] == "http://127.0.0.1:1/mcp"
    assert hook.server_of(client) == (
        "http://127.0.0.1:1/mcp",
        {"Authorization": "Bearer mg-secret"},
    )
    recall, capture = commands(client)
    assert f"recall {client}" in recall and f"capture {client}" in capture
    assert "mg-secret" not in recall + capture
    assert plan(client, RUNNING) == []
    # Another server takes the place of the first, and takes the hooks away.
    written(client, STARTED)
    assert "url" not in entry(client) and commands(client) == []
    assert plan(client, STARTED) == []


@pytest.mark.parametrize("client", ["claude-code", "cursor"])
def test_entries_of_others_stay(home: Path, client: str) -> None:
    other = {"mcpServers": {"其他": {"command": "x"}}, "theme": "dark", "n": 1.50}
    group: dict[str, Any] = {"hooks": [{"type": "command", "command": "say hello"}]}
    events = {"Stop": [group], "sessionStart": [{"command": "say hello"}], "PreToolUse": []}
    for path, known in ((hook.servers_file(client), other), (hook.hooks_file(client), events)):
        path.parent.mkdir(exist_ok=True)
        shown = other if known is other else {"hooks": events, "model": "best"}
        path.write_text(json.dumps(shown), encoding="utf-8")
    before = {path: path.read_bytes() for path in map(Path, home.rglob("*.json"))}
    written(client, RUNNING)
    now = json.loads(hook.servers_file(client).read_text(encoding="utf-8"))
    assert now.pop("mcpServers").keys() == {"其他", "memograd"}
    assert now == {"theme": "dark", "n": 1.5}
    hooks = json.loads(hook.hooks_file(client).read_text(encoding="utf-8"))
    assert hooks["model"] == "best"
    assert hooks["hooks"]["Stop"][0] == group and hooks["hooks"]["PreToolUse"] == []
    for path, content in before.items():
        assert path.with_name(f"{path.name}.before-memograd").read_bytes() == content
    # Going away again leaves what was there.
    written(client, STARTED)
    hooks = json.loads(hook.hooks_file(client).read_text(encoding="utf-8"))
    hooks.pop("version", None)
    if client == "claude-code":
        assert hooks["hooks"] == events
    assert commands(client).count("say hello") == 2


def test_codex_keeps_every_other_byte(home: Path) -> None:
    path = hook.servers_file("codex")
    path.parent.mkdir()
    before = '# 我的设置\r\nmodel = "best"   # aligned\n\n[mcp_servers.other]\ncommand = "x"\n'
    path.write_bytes(before.encode())
    written("codex", RUNNING)
    written("codex", RunningServer("https://memory.example.org/mcp", "mg-other"))
    text = path.read_bytes().decode()
    assert text.startswith(before) and text.count("[mcp_servers.memograd]") == 1
    assert entry("codex")["url"] == "https://memory.example.org/mcp"


def test_what_codex_wrote_between_our_marks_stays(home: Path) -> None:
    # Codex adds its tables before a comment that ends its file, and the mark of our end is one.
    written("codex", RUNNING)
    path = hook.servers_file("codex")
    theirs = '[projects."/工作"]\ntrust_level = "trusted"\n\n'
    text = path.read_text(encoding="utf-8").replace(END, theirs + END)
    for ends in ("\n", "\r\n"):
        path.write_bytes(text.replace("\n", ends).encode())
        written("codex", RunningServer("https://memory.example.org", "mg-other"))
        known = tomllib.loads(path.read_bytes().decode())
        assert known["projects"] == {"/工作": {"trust_level": "trusted"}}
        assert entry("codex")["url"] == "https://memory.example.org/mcp"
        assert path.read_bytes().count(BEGIN.encode()) == 1


@pytest.mark.parametrize("client", ["claude-code", "cursor"])
def test_half_a_surrogate_pair_of_a_client_stays(home: Path, client: str) -> None:
    # JavaScript leaves one where it cuts a text within an emoji.
    path = hook.servers_file(client)
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"history": ["\\ud83d", "\\ud83d\\ude00"]}', encoding="utf-8")
    written(client, RUNNING)
    assert json.loads(path.read_text(encoding="utf-8"))["history"] == ["\ud83d", "\U0001f600"]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_client_writes_while_it_is_asked_is_not_undone(home: Path, client: str) -> None:
    (first, *_) = plan(client, RUNNING)
    first.path.parent.mkdir(exist_ok=True)
    for before in ("", "#" if client == "codex" else "{}"):
        first.path.write_text(before)
        with pytest.raises(BadInput, match="was changed meanwhile"):
            write(first)
        assert first.path.read_text() == before
    assert [one for one in home.rglob("*") if one.is_file()] == [first.path]


def test_hooks_of_an_unknown_form_are_nobody_s_but_theirs(home: Path) -> None:
    path = hook.hooks_file("claude-code")
    path.parent.mkdir()
    groups: list[Any] = [None, 1, {"hooks": 5}, {"hooks": "memograd"}, {"hooks": [1, None]}]
    path.write_text(json.dumps({"hooks": {"Stop": groups}}))
    written("claude-code", RUNNING)
    stop = json.loads(path.read_text(encoding="utf-8"))["hooks"]["Stop"]
    assert stop[:-1] == groups and "capture" in json.dumps(stop[-1])


@pytest.mark.parametrize(
    ("client", "text", "said"),
    [
        ("claude-code", '{"a": 1, "a": 2}', "'a' is there twice"),
        ("claude-code", '{"a": 1e999}', "1e999 is no number"),
        ("claude-code", "[" * 100_000, "nested too deep"),
        ("codex", "mcp_servers = {}", "on one line"),
        ("codex", 'mcp_servers = {x = {command = "x"}}', "on one line"),
        ("codex", "mcp_servers = 3", "no table"),
        ("claude-code", '{"mcpServers": ', "is not JSON"),
        ("claude-code", "[1]", "holds no JSON object"),
        ("cursor", '{"mcpServers": []}', "mcpServers that is no JSON object"),
        ("codex", "[mcp_servers", "is not TOML"),
        ("codex", '[mcp_servers.memograd]\ncommand = "x"', "somebody else wrote"),
        ("cursor", b"\xff", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(
    home: Path, client: str, text: str | bytes, said: str
) -> None:
    path = hook.servers_file(client)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = path.read_bytes()
    with pytest.raises(BadInput, match=said):
        plan(client, RUNNING)
    assert path.read_bytes() == before


def test_a_linked_file_stays_a_link(home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    hook.servers_file("claude-code").symlink_to(real)
    written("claude-code", STARTED)
    assert hook.servers_file("claude-code").is_symlink()
    assert "memograd" in json.loads(real.read_text(encoding="utf-8"))["mcpServers"]


def test_the_command_shows_asks_and_writes(home: Path) -> None:
    ask = ["mcp", "install", "cursor", "--url", "http://127.0.0.1:1", "--key", "mg-secret"]
    refused = CliRunner().invoke(app, ask, input="n\n")
    assert refused.exit_code == 1 and not hook.servers_file("cursor").exists()
    assert str(hook.servers_file("cursor")) in refused.stdout
    assert "mg-secret" not in refused.stdout and "Bearer ..." in refused.stdout
    assert CliRunner().invoke(app, [*ask, "--yes"]).exit_code == 0
    assert entry("cursor")["headers"] == {"Authorization": "Bearer mg-secret"}
    assert "Nothing to change" in CliRunner().invoke(app, ask).stdout


@pytest.mark.parametrize(
    "given",
    [
        ["netscape", "--user", "alice"],
        ["cursor"],
        ["cursor", "--url", "http://127.0.0.1:1"],
        ["cursor", "--url", "127.0.0.1:8322", "--key", "mg-x"],
        ["cursor", "--url", "http://127.0.0.1:1", "--key", "mg x"],
        ["cursor", "--url", "http://127.0.0.1:1", "--key", "mg-x", "--user", "alice"],
    ],
)
def test_the_command_refuses(home: Path, given: list[str]) -> None:
    done = CliRunner().invoke(app, ["mcp", "install", *given, "--yes"])
    assert isinstance(done.exception, BadInput)
    assert list(home.iterdir()) == []


def test_a_key_that_is_around_is_named_as_what_is_in_the_way(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMOGRAD_KEY", "mg-x")
    done = CliRunner().invoke(app, ["mcp", "install", "cursor", "--user", "alice", "--yes"])
    assert "MEMOGRAD_KEY" in str(done.exception)


# The hooks


@pytest.fixture
def served(open_memory: Callable[..., Memory]) -> Iterator[tuple[str, Served]]:
    serving = create_app(open_memory(), ServeSettings(token=ADMIN))
    with running(serving) as address:
        yield address, serving.state.served


def fire(
    client: str, which: int, event: Any, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a hook's command as a client does."""
    text = event if isinstance(event, str) else json.dumps(event)
    return subprocess.run(
        commands(client)[which],
        shell=True,
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **environment},
        timeout=60,
    )


PATIENT = {hook.SECONDS_VARIABLE: "50"}


def transcript(path: Path, client: str) -> Path:
    said = "我对花生过敏。"
    if client == "codex":
        entries: list[Any] = [
            {"type": "event_msg", "payload": {"type": "user_message", "message": said}},
            {"type": "event_msg", "payload": {"type": "agent_message", "message": "好的"}},
        ]
    else:
        result = [{"type": "tool_result", "content": "I live in Rome."}]
        command = "<command-name>/clear</command-name>"
        entries = [
            {"type": "user", "message": {"content": "I live in Boston."}},
            {"type": "user", "message": {"content": [{"type": "text", "text": said}]}},
            {"type": "assistant", "message": {"content": [{"type": "text", "text": "好的"}]}},
            {"type": "user", "message": {"content": result}},
            {"type": "user", "isMeta": True, "message": {"content": "Caveat"}},
            {"type": "user", "message": {"content": command}},
        ]
    lines = [json.dumps(one, ensure_ascii=False) for one in entries]
    path.write_text("\n".join(["half a line", *lines, ""]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"message": {"content": "I like tea."}}, "I like tea."),
        ({"message": {"content": "I like tea."}, "origin": {"kind": "human"}}, "I like tea."),
        ({"message": {"content": "I like tea."}, "origin": None}, "I like tea."),
        ({"message": {"content": "Summary: I moved."}, "isCompactSummary": True}, "before"),
        ({"message": {"content": "Build failed."}, "origin": {"kind": "hook"}}, "before"),
        ({"message": {"content": "<command-name>/x</command-name>\n<a-b>1</a-b>"}}, "before"),
        (
            {"message": {"content": "<ide_opened_file>我打开了 x</ide_opened_file>\n我住在上海。"}},
            "我住在上海。",
        ),
        (
            {
                "message": {
                    "content": [
                        {"type": "text", "text": "<ide_selection>a < b</ide_selection>"},
                        {"type": "text", "text": "I like <b>tea</b>."},
                        {"type": "text", "text": "<system-reminder>x</system-reminder>"},
                    ]
                }
            },
            "I like <b>tea</b>.",
        ),
        ({"message": {"content": "<3 my dog"}}, "<3 my dog"),
    ],
)
def test_only_what_the_user_typed_is_said(tmp_path: Path, entry: Any, said: str) -> None:
    path = tmp_path / "transcript.jsonl"
    entries = [{"type": "user", "message": {"content": "before"}}, {"type": "user", **entry}]
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    assert hook.last_said(path) == said


def test_a_key_that_would_open_nothing_is_refused_before_anything_is_written(
    home: Path, served: Any
) -> None:
    address, its = served
    ask = ["mcp", "install", "cursor", "--yes", "--url"]
    for key, said in (("mg-wrong", "Give a valid API key"), (ADMIN, "opens everybody's memory")):
        done = CliRunner().invoke(app, [*ask, address, "--key", key])
        assert isinstance(done.exception, BadInput) and said in str(done.exception)
    done = CliRunner().invoke(app, [*ask, f"{address}/elsewhere", "--key", ADMIN])
    assert isinstance(done.exception, BadInput) and "no memograd serve at" in str(done.exception)
    assert list(home.iterdir()) == []
    bound = its.keys.create("cursor", owner="user:小红", rights=["read"]).secret
    done = CliRunner().invoke(app, [*ask, address, "--key", bound])
    assert (done.exit_code, "No server answers" in done.output) == (0, False)
    away = CliRunner().invoke(app, [*ask, "http://127.0.0.1:1", "--key", bound])
    assert (away.exit_code, "No server answers" in away.output) == (0, True)


@pytest.mark.parametrize("client", CLIENTS)
def test_hooks_capture_and_recall(home: Path, served: Any, client: str) -> None:
    address, its = served
    secret = its.keys.create("hook", owner="user:alice", rights=["read", "write"]).secret
    written(client, RunningServer(address, secret))
    if client == "cursor":
        captured: dict[str, Any] = {
            "prompt": "我对花生过敏。",
            "hook_event_name": "beforeSubmitPrompt",
        }
        asked: dict[str, Any] = {"hook_event_name": "sessionStart"}
    else:
        path = transcript(home / "transcript.jsonl", client)
        captured = {"hook_event_name": "Stop", "transcript_path": str(path)}
        asked = {"hook_event_name": "UserPromptSubmit", "prompt": "我能吃花生吗？"}
    nothing = fire(client, 0, asked, **PATIENT)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "")
    done = fire(client, 1, captured, **PATIENT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (kept,) = its.memory.get_all(user_id="alice")["results"]
    assert "花生" in kept["memory"]
    recalled = json.loads(fire(client, 0, asked, **PATIENT).stdout)
    text = recalled.get("additional_context") or recalled["hookSpecificOutput"]["additionalContext"]
    assert text.startswith(NOTICE) and text.endswith(CLOSING) and kept["memory"] in text


def test_hooks_fail_open(home: Path) -> None:
    asked = {"hook_event_name": "UserPromptSubmit", "prompt": "hello"}
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, answers nothing
        written("claude-code", RunningServer(f"http://127.0.0.1:{silent.getsockname()[1]}", "mg-x"))
        done = fire("claude-code", 0, asked)
        assert (done.returncode, done.stdout) == (0, "")
    assert hook.SECONDS < 1
    for event in (asked, "", "no json", {"hook_event_name": "UserPromptSubmit"}):  # refused now
        for which in (0, 1):
            done = fire("claude-code", which, event)
            assert (done.returncode, done.stdout) == (0, "")
    hook.servers_file("claude-code").write_text("{broken")
    assert fire("claude-code", 0, asked).returncode == 0
    # Python itself is gone: an exit code of 2 would keep the prompt from the model.
    settings = hook.hooks_file("claude-code")
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("hook.py", "gone.py"), encoding="utf-8")
    done = fire("claude-code", 0, asked)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("said", ["soon", "nan", "inf", "-1", "0", "1e9"])
def test_a_hook_takes_no_longer_for_a_setting_that_is_none(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv(hook.SECONDS_VARIABLE, said)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        written("claude-code", RunningServer(f"http://127.0.0.1:{silent.getsockname()[1]}", "mg-x"))
        done = fire("claude-code", 0, {"hook_event_name": "UserPromptSubmit", "prompt": "hello"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_hook_with_a_wrong_key_lets_the_client_go_on(home: Path, served: Any) -> None:
    address, _ = served
    written("claude-code", RunningServer(address, "mg-wrong"))
    asked = {"hook_event_name": "UserPromptSubmit", "prompt": "hello"}
    done = fire("claude-code", 0, asked, **PATIENT)
    assert (done.returncode, done.stdout) == (0, "") and "401" in done.stderr
