"""The protocol's own conformance suite and inspector, unchanged, against the server over HTTP.

Both are run by `npx`, in the versions that are named here. They come from npm and need node 22,
which npm has too; the tests are skipped where they cannot be had. The suite can send no key, so a
layer before the server adds one.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asked import ADMIN

from memograd.memory import Memory
from memograd.serve.app import create_app
from memograd.serve.served import ServeSettings
from memograd.web.running import running

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
EXPECTED = Path(__file__).with_name("mcp_expected_failures.yaml")
OURS = {
    *("server-initialize", "server-session-lifecycle", "ping", "tools-list", "tools-call-error"),
    *("resources-list", "prompts-list", "sep-2164-resource-not-found", "caching"),
    *("dns-rebinding-protection", "http-header-validation", "server-sse-multiple-streams"),
}
"""What asks for nothing but what a memory has: it passes whole."""

pytestmark = pytest.mark.slow


class Keyed:
    """Adds the key to every request."""

    def __init__(self, app: Any, secret: str) -> None:
        self.app, self.header = app, (b"authorization", f"Bearer {secret}".encode())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self.header]}
        await self.app(scope, receive, send)


@pytest.fixture
def address(open_memory: Callable[..., Memory]) -> Iterator[str]:
    app = create_app(open_memory(), ServeSettings(token=ADMIN))
    secret = app.state.served.keys.create("suite", owner="user:alice", rights=["read", "write"])
    app.add_middleware(Keyed, secret=secret.secret)
    with running(app) as address:
        yield f"{address}/mcp"


def npx(package: str, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of an npm package; skips the test where the package cannot be had."""
    path = shutil.which("npx")
    if path is None:
        pytest.skip("npx is not on this machine")
    whole = [path, "--yes", "-p", "node@22", "-p", package]
    there = subprocess.run(
        [*whole, "node", "--version"], cwd=folder, capture_output=True, text=True
    )
    if there.returncode:
        pytest.skip(f"{package} or node@22 cannot be fetched from npm")
    return subprocess.run([*whole, *command], cwd=folder, capture_output=True, text=True)


def test_the_conformance_suite_passes(address: str, tmp_path: Path) -> None:
    command = ["conformance", "server", "--url", address, "--suite", "all"]
    done = npx(CONFORMANCE, *command, "--expected-failures", str(EXPECTED), folder=tmp_path)
    counts = {
        name: (int(passed), int(failed))
        for name, passed, failed in re.findall(
            r"^. ([\w-]+): (\d+) passed, (\d+) failed", done.stdout, flags=re.MULTILINE
        )
    }
    print(re.findall(r"^Total: .*", done.stdout, flags=re.MULTILINE), len(counts), "scenarios")
    assert done.returncode == 0, done.stdout[-6_000:]
    assert counts.keys() >= OURS
    for name in OURS:
        assert counts[name][0] > 0 and counts[name][1] == 0, name


def test_the_inspector_lists_adds_and_finds(address: str, tmp_path: Path) -> None:
    def ask(*command: str) -> Any:
        base = ["mcp-inspector", "--cli", address, "--transport", "http", "--method"]
        done = npx(INSPECTOR, *base, *command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    tools = {tool["name"]: tool for tool in ask("tools/list")["tools"]}
    assert len(tools) == 9 and all(tool["annotations"] for tool in tools.values())
    assert {one["uriTemplate"] for one in ask("resources/templates/list")["resourceTemplates"]} == {
        "memory://{user}/core",
        "memory://{user}/{id}",
    }
    call = ["tools/call", "--tool-name"]
    assert not ask(*call, "add_memory", "--tool-arg", "text=我住在上海。")["isError"]
    found = ask(*call, "search_memories", "--tool-arg", "query=我住在哪里？")
    assert "上海" in found["structuredContent"]["results"][0]["memory"]
