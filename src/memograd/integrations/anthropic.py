"""Anthropic's memory tool over a memory: `client.beta.messages.run_tools(tools=[MemoryTool(...)])`.

The model sees a folder `/memories` of text files; each file is a memory of one owner, which
`Memory.search` finds too. Invariant: beside `BetaLocalFilesystemMemoryTool`, the same commands give
the same words, character by character. Two things differ: a rename that fails makes no folders,
and what the file system would fail at with an error of its own is refused in a sentence.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, Final

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from memograd.integrations.shelf import Changes, Document, Name, NewDocument, Shelf
from memograd.memory import Memory
from memograd.memory.records.scope import Scope

SHELF: Final = "anthropic"
ROOT: Final = "/memories"
MOST_LINES: Final = 999_999
WIDTH: Final = len(str(MOST_LINES))
DEPTH: Final = 2
FOLDER_SIZE: Final = 4096  # what a file system says of a small folder
FOLDER: Final[dict[str, Any]] = {"folder": True}

Known = Mapping[Name, Document]


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool of one user, agent or run.

    Its folder has files, and folders, since an empty one stays; names are paths below the root.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """The ids: whose files they are."""
        super().__init__()
        self._shelf = Shelf(memory, Scope(user_id, agent_id, run_id), SHELF)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A file with its line numbers, or what is in a folder."""
        path = command.path
        name = _name(path)
        known = self._shelf.documents()
        if not _is_folder(known, name):
            return _numbered(path, _content(known, name, path), command.view_range)
        shown = [f"{_size(FOLDER_SIZE)}\t{path}"]
        shown += [f"{size}\t{path}/{below}" for size, below in _listed(known, name)]
        header = (
            f"Here're the files and directories up to 2 levels deep in {path},"
            " excluding hidden items:"
        )
        return "\n".join([header, *shown])

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new file."""
        name = _name(command.path)

        def made(known: Known) -> Changes:
            if name in known or not name:
                raise ToolError(f"File {command.path} already exists")
            return {**_parents(known, name, command.path), name: _file(command.file_text)}

        self._shelf.change(made)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Another text in the place of one that stands in the file once."""
        name, old = _name(command.path), command.old_str
        snippet: list[str] = []

        def edited(known: Known) -> Changes:
            content = _existing(known, name, command.path)
            count = content.count(old)
            if count == 0:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in"
                    f" {command.path}."
                )
            if count > 1:
                lines = ", ".join(str(line) for line in _lines_with(content, old))
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in"
                    f" lines: {lines}. Please ensure it is unique"
                )
            new = content.replace(old, command.new_str)
            line = content[: content.find(old)].count("\n")
            first = max(0, line - 2)
            snippet[:] = _with_numbers(new.split("\n")[first : line + 3], first + 1)
            return {name: _file(new)}

        self._shelf.change(edited)
        header = (
            "The memory file has been edited. Here is the snippet showing the change"
            " (with line numbers):"
        )
        return "\n".join([header, *snippet])

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """A text behind a line."""
        name, place = _name(command.path), command.insert_line

        def edited(known: Known) -> Changes:
            lines = _existing(known, name, command.path).split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= place <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {place}."
                    f" It should be within the range [0, {len(lines)}]."
                )
            lines.insert(place, command.insert_text.rstrip("\n"))
            text = "\n".join(lines)
            return {name: _file(text if text.endswith("\n") else f"{text}\n")}

        self._shelf.change(edited)
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """A file, or a folder with all that is in it, is forgotten."""
        name = _name(command.path)
        if not name:
            raise ToolError("Cannot delete the /memories directory itself")

        def without(known: Known) -> Changes:
            if name not in known:
                raise ToolError(f"The path {command.path} does not exist")
            return dict.fromkeys(_within(known, name))

        self._shelf.change(without)
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """A file or a folder gets another path."""
        old, new = _name(command.old_path), _name(command.new_path)
        if not old:
            raise ToolError("Cannot rename the /memories directory itself")

        def moved(known: Known) -> Changes:
            if new in known or not new:
                raise ToolError(f"The destination {command.new_path} already exists")
            if old not in known:
                raise ToolError(f"The path {command.old_path} does not exist")
            if new[: len(old)] == old:
                raise ToolError(f"Cannot move {command.old_path} into itself")
            changes: dict[Name, NewDocument | None] = {**_parents(known, new, command.new_path)}
            for name in _within(known, old):
                found = known[name]
                changes[name] = None
                changes[new + name[len(old) :]] = NewDocument(found.value, found.text, found.labels)
            return changes

        self._shelf.change(moved)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """All files are forgotten."""
        self._shelf.change(lambda known: dict.fromkeys(known))
        return "All memory cleared"


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for an asynchronous client; each command runs in a thread."""

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """The ids: whose files they are."""
        super().__init__()
        self._tool = MemoryTool(memory, user_id=user_id, agent_id=agent_id, run_id=run_id)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A file with its line numbers, or what is in a folder."""
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new file."""
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Another text in the place of one that stands in the file once."""
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """A text behind a line."""
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """A file, or a folder with all that is in it, is forgotten."""
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """A file or a folder gets another path."""
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """All files are forgotten."""
        return await asyncio.to_thread(self._tool.clear_all_memory)


def _name(path: str) -> Name:
    """The path below the root; raises ToolError for one that is not there."""
    if not path.startswith(ROOT):
        raise ToolError(f"Path must start with /memories, got: {path}")
    below = posixpath.normpath(path[len(ROOT) :].lstrip("/") or ".")
    if below == ".." or below.startswith("../"):
        raise ToolError(f"Path {path} would escape /memories directory")
    if "\0" in below:
        raise ToolError(f"Path {path!r} holds a NUL character")
    return () if below == "." else tuple(below.split("/"))


def _file(text: str) -> NewDocument:
    return NewDocument({"content": text}, text, {})


def _is_folder(known: Known, name: Name) -> bool:
    return not name or (name in known and known[name].value == FOLDER)


def _content(known: Known, name: Name, path: str) -> str:
    if name not in known:
        raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
    return str(known[name].value["content"])


def _existing(known: Known, name: Name, path: str) -> str:
    if _is_folder(known, name):
        raise ToolError(f"The path {path} is not a file.")
    return _content(known, name, path)


def _parents(known: Known, name: Name, path: str) -> dict[Name, NewDocument]:
    """The folders that a path needs and that are not there."""
    wanted = [name[:depth] for depth in range(1, len(name))]
    for parent in wanted:
        if parent in known and not _is_folder(known, parent):
            raise ToolError(f"The path {path} goes through a file.")
    return {
        parent: NewDocument(FOLDER, "/".join(parent), {})
        for parent in wanted
        if parent not in known
    }


def _within(known: Known, name: Name) -> list[Name]:
    return [one for one in known if one[: len(name)] == name]


def _listed(known: Known, name: Name) -> list[tuple[str, str]]:
    """Size and path of what is in a folder, two levels deep, without what is hidden."""
    found = []
    for one in sorted(_within(known, name)):
        below = one[len(name) :]
        if not 1 <= len(below) <= DEPTH or any(part.startswith(".") for part in below):
            continue
        if _is_folder(known, one):
            found.append((_size(FOLDER_SIZE), "/".join(below) + "/"))
        else:
            size = len(known[one].value["content"].encode("utf-8"))
            found.append((_size(size), "/".join(below)))
    return found


def _size(count: int) -> str:
    """Bytes for people: 0B, 17B, 1.5K."""
    for power, unit in enumerate("BKMG"):
        if count < 1024 ** (power + 1) or unit == "G":
            size = count / 1024**power
            return f"{int(size)}{unit}" if size == int(size) else f"{size:.1f}{unit}"
    raise AssertionError


def _numbered(path: str, content: str, view_range: Sequence[int] | None) -> str:
    lines = content.split("\n")
    if len(lines) > MOST_LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first = 1
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        end = len(lines) if view_range[1] == -1 else view_range[1]
        lines = lines[first - 1 : end]
    header = f"Here's the content of {path} with line numbers:"
    return "\n".join([header, *_with_numbers(lines, first)]) if lines else f"{header}\n"


def _with_numbers(lines: Sequence[str], first: int) -> list[str]:
    return [f"{number:>{WIDTH}}\t{line}" for number, line in enumerate(lines, start=first)]


def _lines_with(content: str, text: str) -> list[int]:
    """The line of every place where the text begins."""
    places: list[int] = []
    start = content.find(text)
    while start != -1:
        places.append(content[:start].count("\n") + 1)
        start = content.find(text, start + 1)
    return places
