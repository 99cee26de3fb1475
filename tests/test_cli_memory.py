"""`memograd memory`: what the methods of `Memory` do, typed at a command line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memograd.cli import main
from memograd.cli.show import plain
from memograd.memory import Memory

Command = Callable[..., str]


@pytest.fixture
def command(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `memograd memory ...` in an empty folder; returns what it printed."""

    def run(*arguments: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as exit_:
            main(["memory", *arguments])
        printed = capsys.readouterr()
        assert exit_.value.code == code, printed.err
        if code:
            assert printed.err.count("\n") == 1 or "Usage:" in printed.err
            assert printed.out == ""
            return printed.err
        return printed.out

    return run


@pytest.fixture
def from_json(command: Command) -> Callable[..., Any]:
    return lambda *arguments: json.loads(command(*arguments, "--json"))


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(content: bytes) -> None:
        stream = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stream)

    return give


# A life of a memory


def test_add_search_update_history_forget(command: Command, from_json: Callable[..., Any]) -> None:
    [added] = from_json("add", "I live in Boston.", "--user", "alice")["results"]
    assert added["event"] == "ADD"
    [changed] = from_json("add", "I live in Denver now.", "--user", "alice")["results"]
    assert (changed["event"], changed["id"]) == ("UPDATE", added["id"])

    [hit] = from_json("search", "Where does she live?", "--user", "alice")["results"]
    assert "Denver" in hit["memory"]
    assert from_json("show", added["id"])["memory"] == hit["memory"]
    assert [line["event"] for line in from_json("history", added["id"])] == ["ADD", "UPDATE"]
    assert from_json("stats")["embedder"] == "e5"

    assert "deleted" in from_json("forget", added["id"])["message"]
    assert from_json("list", "--user", "alice") == {"results": []}
    assert "There is no memory" in command("show", added["id"], code=2)
    events = [line["event"] for line in from_json("history", added["id"])]
    assert events == ["ADD", "UPDATE", "DELETE"]


def test_what_is_added_has_kind_categories_metadata_and_a_name(
    command: Command, from_json: Callable[..., Any]
) -> None:
    asked = ["add", "喝红茶", "--user", "小红", "--verbatim", "--kind", "core"]
    asked += ["--category", "饮食", "--category", "日常"]
    asked += ["--metadata", '{"来源": "信"}', "--request-id", "once"]
    [added] = from_json(*asked)["results"]
    item = from_json("show", added["id"])
    assert (item["kind"], item["categories"]) == ("core", ["饮食", "日常"])
    assert item["metadata"] == {"来源": "信"}
    assert from_json(*asked)["results"] == [added]  # made again, it writes nothing
    assert len(from_json("list", "--user", "小红")["results"]) == 1
    assert "--metadata is not JSON" in command("add", "x", "--metadata", "{x", code=2)
    assert 'such as {"source": "mail"}' in command("add", "x", "--metadata", "[1]", code=2)
    assert "no kind" in command("add", "x", "--user", "a", "--kind", "odd", code=2).lower()


def test_update_changes_text_metadata_and_end(
    command: Command, from_json: Callable[..., Any]
) -> None:
    [added] = from_json(
        "add", "note", "--user", "a", "--verbatim", "--until", "2020-01-01",
        "--metadata", '{"draft": true, "n": 1}',
    )["results"]  # fmt: skip
    one = added["id"]
    assert from_json("list", "--user", "a")["results"] == []
    [hidden] = from_json("list", "--user", "a", "--show-expired")["results"]
    [found] = from_json("search", "note", "--user", "a", "--show-expired")["results"]
    assert hidden["id"] == found["id"] == one
    assert command("update", one, "new note", "--no-until") == "Changed: 1.\n"
    from_json("update", one, "--metadata", '{"draft": null, "seen": true}')
    item = from_json("show", one)
    assert (item["memory"], item["expiration_date"]) == ("new note", None)
    assert item["metadata"] == {"n": 1, "seen": True}
    from_json("update", one, "--until", "2999-01-01")
    assert from_json("show", one)["expiration_date"] == "2999-01-01"
    assert [line["event"] for line in from_json("history", one)] == ["ADD"] + ["UPDATE"] * 3
    assert "Say what to change" in command("update", one, code=2)
    assert "either" in command("update", one, "--until", "2030-01-01", "--no-until", code=2)
    assert "no memory" in command("update", "nobody", "x", code=2).lower()


@pytest.mark.slow
def test_search_takes_what_python_takes(command: Command, from_json: Callable[..., Any]) -> None:
    for text in ("I like tea", "We met in Paris"):
        from_json("add", text, "--user", "a", "--verbatim")
    asked = ["search", "tea", "--user", "a"]
    found = from_json(*asked)["results"]
    assert len(found) == 2
    least = str((found[0]["score"] + found[1]["score"]) / 2)
    [first] = from_json(*asked, "--threshold", least)["results"]
    assert first["id"] == found[0]["id"]
    assert from_json(*asked, "--threshold", "1.5")["results"] == []
    assert "No memory found has a score of 1.5 or more" in command(*asked, "--threshold", "1.5")
    [lexical] = from_json(*asked, "--mode", "lexical")["results"]
    assert lexical["memory"] == "I like tea"
    assert "mode" in command(*asked, "--mode", "psychic", code=2)
    assert "half" in command(*asked, "--half-life", "-1", code=2)
    assert len(from_json(*asked, "--half-life", "30", "--asked-at", "2030-01-01")["results"]) == 2
    assert "asked_at" in command(*asked, "--asked-at", "soon", code=2)
    assert "reranker" in command(*asked, "--rerank", code=2)


def test_pages_context_users_and_forgetting_by_filter(
    command: Command, from_json: Callable[..., Any]
) -> None:
    for text, category in (("likes tea", "food"), ("likes rice", "food"), ("has a cat", "pets")):
        from_json("add", text, "--user", "a", "--verbatim", "--category", category)
    page = from_json("list", "--user", "a", "--limit", "2")
    assert page["next_cursor"] in command("list", "--user", "a", "--limit", "2")
    [last] = from_json("list", "--user", "a", "--cursor", page["next_cursor"])["results"]
    assert last["memory"] == "has a cat"
    context = from_json("context", "Which pet?", "--user", "a", "--turns", "0", "--top-k", "1")
    assert [one["memory"] for one in context["items"]] == ["has a cat"]
    assert context["text"] in command(
        "context", "Which pet?", "--user", "a", "--turns", "0", "--top-k", "1"
    )
    assert from_json("context", "Which pet?", "--user", "a", "--tokens", "0")["text"] == ""
    [user] = from_json("users")["results"]
    assert (user["name"], user["total_memories"]) == ("a", 3)
    assert "user" in command("users")
    food = '{"categories": {"contains": "food"}}'
    assert "2" in command("forget", "--all", "--user", "a", "--filters", food)
    assert [one["memory"] for one in from_json("list", "--user", "a")["results"]] == ["has a cat"]
    assert "Give either" in command("forget", last["id"], "--filters", food, code=2)


def test_json_is_what_python_returns(from_json: Callable[..., Any]) -> None:
    for number in range(3):
        from_json("add", f"note {number}", "--user", "alice", "--agent", "b", "--verbatim")
    with Memory.open("memories") as memory:
        everything = memory.get_all(user_id="alice")
        found = memory.search("note 1", user_id="alice", top_k=2, explain=True, turns=2)
        chosen = everything["results"][0]["id"]
        expected = {
            ("list", "--user", "alice"): everything,
            ("list", "--agent", "b", "--limit", "1"): memory.get_all(agent_id="b", limit=1),
            ("search", "note 1", "--user", "alice", "--top-k", "2", "--explain", "--turns", "2"): (
                found
            ),
            ("show", chosen): memory.get(chosen),
            ("history", chosen): memory.history(chosen),
        }
    for typed, returned in expected.items():
        assert from_json(*typed) == json.loads(json.dumps(returned))


def test_each_option_of_search_arrives(from_json: Callable[..., Any]) -> None:
    from_json("add", "I like green tea.", "--user", "alice", "--at", "2020-02-03")
    from_json("add", "I like black coffee.", "--user", "alice", "--at", "2021-02-03T10:00:00")

    def found(*options: str) -> list[str]:
        result = from_json("search", "What do I like?", "--user", "alice", *options)
        return [item["memory"] for item in result["results"]]

    assert len(found()) == 2
    assert len(found("--top-k", "1")) == 1
    only_tea = '{"NOT": [{"valid_from": {"gte": "2021-01-01"}}]}'
    assert found("--filters", only_tea) == ["User likes green tea."]
    assert found("--as-of", "2000-01-01") == []
    assert from_json("list", "--user", "alice", "--as-of", "2000-01-01") == {"results": []}


def test_scopes_are_walls(from_json: Callable[..., Any]) -> None:
    from_json("add", "I live in Boston.", "--user", "alice")
    assert from_json("search", "Boston", "--user", "bob") == {"results": []}


def test_a_chinese_memory_in_a_table(command: Command) -> None:
    command("add", "我住在北京。", "--user", "小红")
    printed = command("search", "她住在哪里?", "--user", "小红", "--turns", "1", "--explain")
    assert "北京" in printed
    assert "我住在北京。" in printed
    assert "语义第" in printed  # Reasons come in the language of the text.


@pytest.mark.slow
def test_tables_are_readable(command: Command, from_json: Callable[..., Any]) -> None:
    said = command("add", "I live in Boston.", "--user", "alice")
    assert "ADD" in said and "Boston" in said
    [item] = from_json("list", "--user", "alice")["results"]
    listed = command("list", "--user", "alice")
    assert item["id"] in listed and "Boston" in listed and "semantic" in listed
    assert item["id"] in command("show", item["id"])
    assert "rules" in command("history", item["id"])
    assert "384" in command("stats")
    assert command("list", "--user", "bob") == "Nothing is remembered here.\n"
    assert command("add", "Hi there!", "--user", "alice").startswith("There was nothing")


def test_wide_characters_keep_columns_in_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.cells import cell_len

    from memograd.cli.show import table

    monkeypatch.setenv("COLUMNS", "60")
    table(["a", "b"], [["我住在北京", "x"], ["I live in", "y"]], whole=1)
    lines = capsys.readouterr().out.splitlines()
    marks = zip(lines[2:4], "xy", strict=True)
    assert len({cell_len(line[: line.index(mark)]) for line, mark in marks}) == 1


def test_no_memory_moves_the_cursor(command: Command) -> None:
    command("add", "evil \x1b[2J[red]text[/red] \u202e:smile:", "--user", "alice", "--verbatim")
    printed = command("list", "--user", "alice")
    assert "evil \ufffd[2J[red]text[/red] \ufffd:smile:" in printed
    assert plain("a\rb\tc\nd\x9b") == "a\ufffdb\tc\nd\ufffd"


# What is given


def test_standard_input(from_json: Callable[..., Any], piped: Callable[[bytes], None]) -> None:
    piped("我住在北京。\n".encode())
    [added] = from_json("add", "-", "--user", "小红")["results"]
    assert "北京" in added["memory"]


def test_standard_input_that_is_no_text(command: Command, piped: Callable[[bytes], None]) -> None:
    piped(b"\xff\xfe")
    assert "UTF-8" in command("add", "-", "--user", "alice", code=2)


MESSAGES = [
    {"role": "user", "content": "I live in Boston."},
    {"role": "assistant", "content": "Nice!"},
    {"role": "user", "content": "My dog is called Rex.", "timestamp": "2020-02-03"},
]


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(MESSAGES),
        "\ufeff" + json.dumps(MESSAGES, indent=1),
        "\n".join(json.dumps(message) for message in MESSAGES) + "\n\n",
    ],
    ids=["list", "list with a byte order mark", "lines"],
)
def test_a_file_of_messages(
    from_json: Callable[..., Any], bare_environment: Path, written: str
) -> None:
    (bare_environment / "chat").write_text(written, encoding="utf-8")
    added = from_json("add", "--file", "chat", "--user", "alice")["results"]
    assert [one["memory"].split()[-1] for one in added] == ["Boston.", "Rex."]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b'[{"content": "a"}, {"role": "user"}]', "Message 2 of chat"),
        (b'{"content": "a"}\n{"content": ', "Line 2 of chat is not JSON"),
        (b"3", "Message 1 of chat"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_file_of_something_else(
    command: Command, bare_environment: Path, written: bytes, said: str
) -> None:
    (bare_environment / "chat").write_bytes(written)
    assert said in command("add", "--file", "chat", "--user", "alice", code=2)
    assert not (bare_environment / "memories").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "I live in Boston."], "user_id"),
        (["add", "--user", "alice"], "--file"),
        (["add", "text", "--file", "x", "--user", "alice"], "--file"),
        (["add", "--file", "nowhere", "--user", "alice"], "nowhere cannot be read"),
        (["add", "text", "--user", "alice", "--at", "soon"], "timestamp is 'soon'"),
        (["add", "text", "--user", " "], "user_id must not be empty"),
        (["search", "text"], "user_id"),
        (["search", "", "--user", "alice"], "query is empty"),
        (["search", "text", "--user", "a", "--filters", "{"], "--filters is not JSON"),
        (["search", "text", "--user", "a", "--filters", "[]"], "--filters must be"),
        (["search", "text", "--user", "a", "--top-k", "0"], "--top-k"),
        (["search", "text", "--user", "a", "--as-of", "soon"], "as_of is 'soon'"),
        (["list"], "user_id"),
        (["show", "nothing"], "There is no memory with the id 'nothing'"),
        (["history", "nothing"], "There is no memory with the id 'nothing'"),
        (["forget", "nothing"], "There is no memory with the id 'nothing'"),
        (["forget"], "--all"),
        (["forget", "--all"], "user_id"),
        (["forget", "x", "--all", "--user", "a"], "--all"),
        (["forget", "--user", "a"], "--all"),
        (["forget", "x", "--user", "a"], "--all"),
        (["purge"], "--user"),
        (["purge", "--user", "nobody", "--yes"], "nothing to purge"),
        (["import", "nowhere"], "nowhere cannot be read"),
        (["reindex", "--embedder", "best"], "best"),
        (["add", "text", "--user", "a", "--path", "a_file"], "is a file"),
        (["list", "--user", "a", "--path", "a_file"], "There is no memory in a_file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_sentence(
    command: Command, bare_environment: Path, arguments: list[str], said: str
) -> None:
    Memory.open("memories", env_file=None).close()
    (bare_environment / "a_file").write_text("")
    assert said in command(*arguments, code=2)


@pytest.mark.parametrize("name", ["search x", "list", "stats", "export x", "purge --user a --yes"])
def test_reading_makes_no_memory(command: Command, bare_environment: Path, name: str) -> None:
    said = command(*name.split(), code=2)
    assert "There is no memory in memories" in said
    assert list(bare_environment.iterdir()) == []


def test_the_environment_names_the_folder(
    from_json: Callable[..., Any], bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare_environment / ".env").write_text("MEMOGRAD_PATH=from_file")
    from_json("add", "I live in Boston.", "--user", "alice")
    assert (bare_environment / "from_file" / "journal.db").is_file()
    from_json("add", "I live in Boston.", "--user", "alice", "--path", "typed")
    assert (bare_environment / "typed" / "journal.db").is_file()


# Forgetting, erasing, moving


def test_forget_all(command: Command, from_json: Callable[..., Any]) -> None:
    from_json("add", "I live in Boston.", "--user", "alice")
    from_json("add", "I live in Boston.", "--user", "bob")
    assert command("forget", "--all", "--user", "alice") == "Forgotten: 1.\n"
    assert from_json("list", "--user", "alice") == {"results": []}
    assert len(from_json("list", "--user", "bob")["results"]) == 1


def test_purge_asks_first(
    command: Command,
    from_json: Callable[..., Any],
    piped: Callable[[bytes], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [added] = from_json("add", "I live in Boston.", "--user", "alice")["results"]
    piped(b"y\n")
    assert "--yes" in command("purge", added["id"], code=2)  # a pipe is nobody to ask

    def answered(answer: bytes) -> None:
        piped(answer)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)

    answered(b"n\n")
    assert "Nothing was purged" in command("purge", added["id"], code=2)
    assert from_json("show", added["id"])["id"] == added["id"]
    answered(b"y\n")
    assert command("purge", added["id"]) == "Erased: 1 memories, 1 raw turns.\n"
    assert [line["erased"] for line in from_json("history", added["id"])] == [True, False]


def test_purging_a_user(from_json: Callable[..., Any]) -> None:
    from_json("add", "I live in Boston.", "--user", "alice")
    assert from_json("purge", "--user", "alice", "--yes")["items"] == 1
    assert from_json("list", "--user", "alice") == {"results": []}


def test_export_and_import(
    command: Command, from_json: Callable[..., Any], bare_environment: Path
) -> None:
    from_json("add", "I live in Boston.", "--user", "alice")
    from_json("add", "I live in Denver.", "--user", "bob")
    assert from_json("export", "all.jsonl") == 4
    assert command("export", "one.jsonl", "--user", "alice") == "2 events are in one.jsonl\n"
    assert from_json("import", "one.jsonl", "--path", "other") == 2
    assert from_json("import", "all.jsonl", "--path", "other") == 2
    assert command("import", "all.jsonl", "--path", "other") == "0 events were new.\n"
    for user in ("alice", "bob"):
        listed = ("list", "--user", user)
        assert from_json(*listed, "--path", "other") == from_json(*listed)


def test_reindex(from_json: Callable[..., Any]) -> None:
    from_json("add", "I live in Boston.", "--user", "alice")
    before = from_json("search", "Where does she live?", "--user", "alice")
    done = from_json("reindex", "--embedder", "e5")
    assert (done["embedder"], done["items"], done["turns"]) == ("e5", 1, 1)
    assert from_json("search", "Where does she live?", "--user", "alice") == before


# The process itself


def process(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memograd", "memory", *arguments]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command, input=given, capture_output=True, text=True, encoding="utf-8", env=environment
    )


def test_the_process(bare_environment: Path) -> None:
    added = process("add", "-", "--user", "小红", "--json", given="我住在北京。")
    assert (added.returncode, added.stderr) == (0, "")
    assert "北京" in json.loads(added.stdout)["results"][0]["memory"]


@pytest.mark.slow  # in the tests' process: test_wrong_input_is_one_sentence
def test_the_process_refuses_in_one_sentence(bare_environment: Path) -> None:
    wrong = process("search", "她住在哪里?")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    "name",
    [
        *("", "add", "search", "list", "show", "history", "forget"),
        *("purge", "export", "import", "reindex", "stats"),
    ],
)
def test_help_has_an_example(command: Command, name: str) -> None:
    printed = command(*name.split(), "--help")
    assert f"Examples:\n    memograd memory {name}" in printed
    assert "Exit codes:\n    0    done\n" in printed
