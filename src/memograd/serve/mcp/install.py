"""`memograd mcp install`: the entries that make a coding agent use the memory.

`check` asks a running server whether it takes the key; `plan` says which files would be written and
what would be in them; `write` writes one of them and keeps what was there. With a server's address
the client also gets hooks (`hook.py`), which need a memory that is open already; a server that the
client starts has the tools alone.

Invariants: entries of others stay as they are; planning twice changes nothing the second time; a
file that cannot be understood is refused, and nothing is written then; what a key is written into,
nobody but its owner can read; a file that changed since it was shown is not written over.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from memograd.errors import BadInput
from memograd.serve.mcp import hook
from memograd.web.strict_json import strictly

CLIENTS: Final = ("claude-code", "codex", "cursor")
BEGIN, END = "# memograd mcp install: begin", "# memograd mcp install: end"
_OUR_TABLE: Final = re.compile(
    rf"^{re.escape(BEGIN)}\r?\n\[mcp_servers\.{hook.NAME}\]\r?\n(?:(?!\s*\[).*\n)*?"
    rf"(?P<others>(?:\s*\[.*\n(?:.*\n)*?)?){re.escape(END)}(?:\r?\n|\Z)",
    re.MULTILINE,
)
"""Our lines, and what a client that writes its own file has put before the mark of their end."""
_HALF: Final = re.compile("[\ud800-\udfff]")
CHECK_SECONDS: Final = 5.0
PING: Final = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
HOOKS: Final[Mapping[str, Mapping[str, str]]] = {
    "claude-code": {"UserPromptSubmit": "recall", "Stop": "capture"},
    "codex": {"UserPromptSubmit": "recall", "Stop": "capture"},
    "cursor": {"sessionStart": "recall", "beforeSubmitPrompt": "capture"},
}


@dataclass(frozen=True)
class FileChange:
    """One file: before (None: there is none) and after. secret: whether a key stands in it."""

    path: Path
    before: str | None
    after: str
    secret: bool = False


@dataclass(frozen=True)
class Started:
    """A server that the client starts: `memograd mcp serve` with these arguments."""

    arguments: tuple[str, ...]


@dataclass(frozen=True)
class RunningServer:
    """A server that runs: `memograd serve` at this address, with a key of it."""

    url: str
    key: str


def check(server: RunningServer) -> bool:
    """Whether the server answers now. Raises BadInput when it refuses the key, or is none of ours.

    A client with a key that opens nothing, or everybody's memory, would have no tools and not say
    why.
    """
    entry = _entry("cursor", server)
    place = urlsplit(entry["url"])
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    connection = kind(place.hostname or "", place.port, timeout=CHECK_SECONDS)
    headers = {**entry["headers"], "Content-Type": "application/json"}
    try:
        connection.request("POST", place.path, PING, headers)
        answer = connection.getresponse()
        status, told = answer.status, answer.read(10_000)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    if status in (401, 403):
        raise BadInput(f"The server at {server.url} refuses the key: {_detail(told)}")
    if status == 404:
        raise BadInput(f"There is no memograd serve at {server.url}: give the address it prints.")
    return True


def _detail(body: bytes) -> str:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return "it does not say why."  # something between here and the server


def plan(client: str, server: Started | RunningServer) -> list[FileChange]:
    """The files that would change. Raises BadInput for an unknown client, an address that is none,
    and a file that cannot be understood."""
    if client not in CLIENTS:
        raise BadInput(f"There is no client {client!r}: choose {', '.join(CLIENTS)}.")
    entry = _entry(client, server)
    path = hook.servers_file(client)
    before = _read(path)
    if client == "codex":
        change = FileChange(path, before, _with_table(path, before or "", entry))
    else:
        known = _object(path, before)
        _part(path, known, "mcpServers")[hook.NAME] = entry
        change = _changed(path, before, known)
    running = isinstance(server, RunningServer)
    changes = [replace(change, secret=running), _hooks_change(client, wanted=running)]
    return [change for change in changes if change.before != change.after]


def write(change: FileChange) -> Path | None:
    """Write the file; returns where what was there before is kept.

    Raises BadInput where somebody else has changed the file since it was planned, as a client that
    runs does: what was planned would undo that.
    """
    if _read(change.path) != change.before:
        raise BadInput(f"The file {change.path} was changed meanwhile: run this once more.")
    path = change.path.resolve()  # a link stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = None
    if change.before is not None:
        kept = _free(path.with_name(f"{path.name}.before-memograd"))
        kept.touch(mode=0o600)
        kept.write_text(change.before, encoding="utf-8", newline="")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(change.after)
    if path.exists():
        os.chmod(name, path.stat().st_mode & (0o700 if change.secret else 0o777))
    os.replace(name, path)
    return kept


def _entry(client: str, server: Started | RunningServer) -> dict[str, Any]:
    """The client's entry for the server."""
    if isinstance(server, Started):
        command = ["-m", "memograd", "mcp", "serve", *server.arguments]
        started = {"command": sys.executable, "args": command}
        return {"type": "stdio", **started} if client == "claude-code" else started
    place = urlsplit(server.url)
    if place.scheme not in ("http", "https") or not place.hostname:
        raise BadInput(
            f"The address {server.url!r} is none: give it as memograd serve prints it, such as"
            " http://127.0.0.1:8322."
        )
    if not server.key.isprintable() or not server.key.isascii() or " " in server.key:
        raise BadInput("The key is none: give it as memograd serve keys create prints it.")
    base = server.url.rstrip("/")
    url = base if place.path.rstrip("/").endswith("/mcp") else f"{base}/mcp"
    headers = {"Authorization": f"Bearer {server.key}"}
    if client == "codex":
        return {"url": url, "http_headers": headers}
    running = {"url": url, "headers": headers}
    return {"type": "http", **running} if client == "claude-code" else running


def _hooks_change(client: str, *, wanted: bool) -> FileChange:
    """The hooks of the client with ours among them, or, unless wanted, without."""
    path = hook.hooks_file(client)
    before = _read(path)
    if before is None and not wanted:
        return FileChange(path, "", "")
    known = _object(path, before)
    if not wanted and "hooks" not in known:
        return _changed(path, before, known)
    if client == "cursor":
        known.setdefault("version", 1)
    events = _part(path, known, "hooks")
    for event, action in HOOKS[client].items():
        if not wanted and event not in events:
            continue
        groups = events.setdefault(event, [])
        if not isinstance(groups, list):
            raise BadInput(f"The file {path} has hooks.{event} that is no list: repair it first.")
        groups[:] = [group for group in groups if not _is_ours(group)]
        if wanted:
            command = _command(action, client)
            groups.append(
                {"command": command}
                if client == "cursor"
                else {"hooks": [{"type": "command", "command": command, "timeout": 5}]}
            )
        elif not groups:
            del events[event]
    return _changed(path, before, known)


def _command(action: str, client: str) -> str:
    """What a shell runs; if Python itself is gone, `|| exit 0` lets the client go on."""
    words = [sys.executable, "-I", "-X", "utf8", str(Path(hook.__file__).resolve())]
    quoted = f'"{words[0]}" -I -X utf8 "{words[-1]}"' if os.name == "nt" else shlex.join(words)
    return f"{quoted} {action} {client} || exit 0"


def _is_ours(group: object) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    commands = [group, *(hooks if isinstance(hooks, list) else [])]
    name = f"{Path(hook.__file__).parent.name}{os.sep}{Path(hook.__file__).name}"
    return any(
        isinstance(one, dict) and name in str(one.get("command")) and "memograd" in one["command"]
        for one in commands
    )


def _with_table(path: Path, text: str, entry: Mapping[str, Any]) -> str:
    """The TOML text with our table between its marks; all other bytes stay."""
    text = _OUR_TABLE.sub(lambda ours: ours["others"], text)
    known = _toml_of(path, text)
    others = known.get("mcp_servers", {})
    if not isinstance(others, dict):
        raise BadInput(f"The file {path} has mcp_servers that is no table: repair it first.")
    if hook.NAME in others:
        raise BadInput(
            f"The file {path} has a table mcp_servers.{hook.NAME} that somebody else wrote: remove"
            " it first."
        )
    lines = [f"{name} = {_toml(value)}" for name, value in entry.items()]
    table = "\n".join([BEGIN, f"[mcp_servers.{hook.NAME}]", *lines, END])
    before = text.rstrip("\n")
    after = f"{before}\n\n{table}\n" if before else f"{table}\n"
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        raise BadInput(
            f"The file {path} has mcp_servers on one line, to which nothing can be added: write"
            " each of them as a table [mcp_servers.NAME]."
        ) from None
    return after


def _toml_of(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"The file {path} is not TOML ({error}): repair it first.") from None


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)  # strings and lists of them are the same in TOML


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The file {path} cannot be read ({error}): repair it first.") from None


def _object(path: Path, text: str | None) -> dict[str, Any]:
    try:
        known = strictly(text) if text and text.strip() else {}
        _json(known)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The file {path} is not JSON ({error}): repair it first.") from None
    if not isinstance(known, dict):
        raise BadInput(f"The file {path} holds no JSON object: repair it first.")
    return known


def _part(path: Path, known: dict[str, Any], name: str) -> dict[str, Any]:
    part = known.setdefault(name, {})
    if not isinstance(part, dict):
        raise BadInput(f"The file {path} has {name} that is no JSON object: repair it first.")
    return part


def _changed(path: Path, before: str | None, known: dict[str, Any]) -> FileChange:
    """The change to what the file shall hold; none where it holds that, however laid out."""
    if before is not None and _object(path, before) == known:
        return FileChange(path, before, before)
    return FileChange(path, before, _json(known))


def _json(known: dict[str, Any]) -> str:
    """The text of a file that holds this. Half a surrogate pair, which JavaScript leaves where it
    cuts a text, is written as it was found: as an escape."""
    text = json.dumps(known, indent=2, ensure_ascii=False) + "\n"
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _free(path: Path) -> Path:
    """The path, or the first of it with a number behind it that is free."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free
