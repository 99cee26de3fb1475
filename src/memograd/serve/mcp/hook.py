"""What a coding agent runs beside each prompt: recall before it, capture after it.

A program of its own, on the standard library alone, so that it starts in a blink; the client runs
this file. It finds the server's address and key where `memograd mcp install` wrote them, in the
client's own file, and asks the server over MCP.

    recall:   what the memory knows for the prompt becomes context of the prompt, marked as data
    capture:  what the user said last is remembered

Invariant: **it fails open.** Whatever is wrong (no server, a slow one, a broken file), it ends with
exit code 0, with nothing on standard output, within `SECONDS`.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

SECONDS: Final = 0.9
MOST_SECONDS: Final = 60.0
SECONDS_VARIABLE: Final = "MEMOGRAD_HOOK_SECONDS"
NAME: Final = "memograd"
VERSION: Final = "2026-07-28"
MOST_TRANSCRIPT: Final = 4_000_000
BUDGET: Final = 1000
OF_THE_CLIENT: Final = ("isMeta", "isSidechain", "isCompactSummary")
LEADING: Final = re.compile(r"\A(?:\s*<([a-z][\w-]*)\b[^>]*>.*?</\1>)+\s*", re.DOTALL)
"""What Claude Code puts before a prompt: <command-name>, <ide_opened_file>, <system-reminder>..."""
AT_THE_START: Final = "Who the user is, what they prefer and what they are working on."


def servers_file(client: str) -> Path:
    """The file in which a client lists its MCP servers. client: claude-code, codex or cursor."""
    if client == "claude-code":
        named = os.environ.get("CLAUDE_CONFIG_DIR")
        return (Path(named) if named else Path.home()) / ".claude.json"
    if client == "codex":
        return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
    return Path.home() / ".cursor" / "mcp.json"


def hooks_file(client: str) -> Path:
    """The file in which a client lists its hooks."""
    if client == "claude-code":
        named = os.environ.get("CLAUDE_CONFIG_DIR")
        return (Path(named) if named else Path.home() / ".claude") / "settings.json"
    return servers_file(client).with_name("hooks.json")


def main(action: str, client: str) -> None:
    """Recall or capture for the event on standard input."""
    event = json.loads(sys.stdin.buffer.read())
    if action == "capture":
        said = event["prompt"] if client == "cursor" else last_said(Path(event["transcript_path"]))
        if said.strip():
            call(client, "add_memory", {"text": said})
        return
    query = event.get("prompt") or AT_THE_START
    result = call(client, "memory_context", {"query": query, "token_budget": BUDGET})
    if not result["structuredContent"]["context"]:
        return
    text = result["content"][0]["text"]
    if client == "cursor":
        answer: dict[str, Any] = {"additional_context": text}
    else:
        named = {"hookEventName": event["hook_event_name"], "additionalContext": text}
        answer = {"hookSpecificOutput": named}
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()


def call(client: str, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The result of one tool of the server that the client's file names."""
    url, headers = server_of(client)
    place = urlsplit(url)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    connection = kind(place.hostname or "", place.port, timeout=30)
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "memograd-hook", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    sent = {
        **headers,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    connection.request("POST", place.path, json.dumps(request).encode(), sent)
    answer = connection.getresponse()
    body = answer.read().decode()
    if answer.status != 200:
        raise OSError(f"the server answered {answer.status}: {body[:200]}")
    if "text/event-stream" in (answer.getheader("Content-Type") or ""):
        body = next(line[5:] for line in body.splitlines() if line.startswith("data:"))
    result: dict[str, Any] = json.loads(body)["result"]
    if result.get("isError"):
        raise OSError(result["content"][0]["text"])
    return result


def server_of(client: str) -> tuple[str, dict[str, str]]:
    """The address of the server, and the headers with its key."""
    text = servers_file(client).read_text(encoding="utf-8")
    if client == "codex":
        entry = tomllib.loads(text)["mcp_servers"][NAME]
        return entry["url"], entry["http_headers"]
    entry = json.loads(text)["mcpServers"][NAME]
    return entry["url"], entry["headers"]


def last_said(transcript: Path) -> str:
    """What the user said last, in their own words, by a transcript of Claude Code or Codex.

    Results of tools and what the client itself put into the user's mouth are nobody's words.
    """
    with transcript.open("rb") as file:
        file.seek(max(0, transcript.stat().st_size - MOST_TRANSCRIPT))
        lines = file.read().decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        try:
            said = _said(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # a line of another kind, or the half one at the beginning
        if said:
            return said
    return ""


def _said(entry: dict[str, Any]) -> str:
    if entry["type"] == "event_msg":  # Codex
        payload = entry["payload"]
        return str(payload["message"]) if payload["type"] == "user_message" else ""
    if entry["type"] != "user" or any(map(entry.get, OF_THE_CLIENT)):
        return ""
    if (entry.get("origin") or {}).get("kind", "human") != "human":
        return ""  # of a hook, or of another program
    content = entry["message"]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = (LEADING.sub("", block["text"]) for block in blocks if block["type"] == "text")
    return "\n".join(text for text in texts if text.strip())


def _seconds() -> float:
    """How long it may take; `SECONDS` where the setting is no number of seconds."""
    try:
        seconds = float(os.environ.get(SECONDS_VARIABLE) or SECONDS)
    except ValueError:
        return SECONDS
    return seconds if 0 < seconds <= MOST_SECONDS else SECONDS


def _run() -> None:
    deadline = threading.Timer(_seconds(), lambda: os._exit(0))
    deadline.daemon = True
    deadline.start()
    try:
        main(*sys.argv[1:3])
    except Exception as error:  # the client goes on, whatever it is
        sys.stderr.write(f"memograd: {error!r}\n")
    os._exit(0)


if __name__ == "__main__":
    _run()
