"""`MemoryTool` beside Anthropic's own tool over a folder of the file system."""

from __future__ import annotations

import asyncio
import itertools
import re
import tempfile
from typing import Any

import pytest

pytest.importorskip("anthropic.lib.tools", reason="needs the extra anthropic")

from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import _format_file_size
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.integrations.anthropic import AsyncMemoryTool, MemoryTool, _size
from memograd.memory import Memory

USERS = (f"user-{number}" for number in itertools.count())

names = st.sampled_from(
    ["a", "A", "b.txt", "笔记.md", ".hidden", "..", "...", "a\nb", "e\u0301", "*"]
)
paths = st.one_of(
    st.lists(names, max_size=3).map(lambda parts: "/".join(["/memories", *parts])),
    st.sampled_from(
        ["/memories/", "/memories//a", "/memories/./a/", "/etc/passwd", "/memoriesa", ""]
    ),
)
lines = st.sampled_from(
    ["tea", "茶", "", "tea tea", "x\r", "\t", "\x0ca", "\u2028b", "\x85", "\x1c", "😀"]
)
texts = st.lists(lines, max_size=5).map("\n".join)
commands = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": paths},
        optional={"view_range": st.tuples(st.integers(-1, 4), st.integers(-1, 6)).map(list)},
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": paths, "file_text": texts}),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": paths, "old_str": lines, "new_str": texts}
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": paths,
            "insert_line": st.integers(-1, 6),
            "insert_text": texts,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": paths}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": paths, "new_path": paths}),
)


def said(tool: Any, command: dict[str, Any]) -> tuple[str, str]:
    """What a tool answers, and how."""
    try:
        result = tool.call(dict(command))
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
        return "done", str(result)
    except ToolError as error:
        return "refused", str(error)
    except (OSError, ValueError):  # the file system's own errors, which name its own paths
        return "refused", "?"


def shown(tool: Any) -> list[str]:
    """Everything in the folder, by what `view` says, from any depth."""
    found: list[str] = []

    def look(path: str) -> None:
        _, text = said(tool, {"command": "view", "path": path})
        found.append(text)
        for line in text.splitlines()[2:] if text.startswith("Here're") else []:
            below = line.partition("\t")[2].rstrip("/")
            if "/" not in below.removeprefix(f"{path}/"):
                look(below)

    look("/memories")
    return found


def folder_sizes_aside(text: str) -> str:
    """What a file system says of a folder's own size depends on the file system."""
    return re.sub(r"^\S+\t(\S*/|/memories\S*)$", r"-\t\1", text, flags=re.MULTILINE)


@settings(max_examples=40)
@given(commands=st.lists(commands, max_size=14))
def test_the_same_commands_give_the_same_words(memory: Memory, commands: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = (
            BetaLocalFilesystemMemoryTool(folder),
            MemoryTool(memory, user_id=next(USERS)),
        )
        for command in commands:
            before = shown(theirs)
            expected = said(theirs, command)
            if (
                command["command"] == "rename"
                and expected[0] == "refused"
                and shown(theirs) != before
            ):
                break  # theirs left folders behind
            found = said(ours, command)
            assert found[0] == expected[0], (command, found, expected)
            if expected[1] != "?":
                assert folder_sizes_aside(found[1]) == folder_sizes_aside(expected[1]), command
            assert [*map(folder_sizes_aside, shown(ours))] == [
                *map(folder_sizes_aside, shown(theirs))
            ]


def test_both_twins_share_the_files_and_the_memory(memory: Memory) -> None:
    user = next(USERS)
    create = {"command": "create", "path": "/memories/用户.md", "file_text": "我对花生过敏。\n"}
    assert said(AsyncMemoryTool(memory, user_id=user), create)[0] == "done"
    assert said(MemoryTool(memory, user_id=user), create) == (
        "refused",
        "File /memories/用户.md already exists",
    )
    (found,) = memory.search("花生", user_id=user)["results"]
    assert found["memory"] == "我对花生过敏。\n"
    edit = {
        "command": "str_replace",
        "path": "/memories/用户.md",
        "old_str": "花生",
        "new_str": "虾",
    }
    assert "我对虾过敏。" in said(AsyncMemoryTool(memory, user_id=user), edit)[1]
    assert [one["event"] for one in memory.history(found["id"])] == ["ADD", "UPDATE"]
    other = MemoryTool(memory, user_id=next(USERS))
    assert said(other, {"command": "view", "path": "/memories/用户.md"})[0] == "refused"
    assert MemoryTool(memory, user_id=user).clear_all_memory() == "All memory cleared"
    assert memory.get_all(user_id=user)["results"] == []
    assert MemoryTool(memory, user_id=user).to_dict() == {
        "type": "memory_20250818",
        "name": "memory",
    }


@pytest.mark.parametrize(
    "size", [0, 1, 1023, 1024, 1025, 1536, 2**20 - 1, 2**20, 16 * 10**5, 3**30]
)
def test_sizes_are_written_as_theirs(size: int) -> None:
    assert _size(size) == _format_file_size(size)
