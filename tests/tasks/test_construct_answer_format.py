"""What a model writes, read as calls: always something, never an exception."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.records.items import Kind
from memograd.memory.records.operations import OpKind
from memograd.tasks.memory_construct.answer_format import (
    MOST_CALLS,
    TOOLS,
    Call,
    Format,
    read,
    write,
)

words = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), min_size=1, max_size=12
)
texts = st.lists(words, min_size=1, max_size=4).map(" ".join).filter(lambda t: t[0] not in "[")
kinds = st.sampled_from([Kind.CORE, Kind.EPISODIC, Kind.SEMANTIC])
calls = st.one_of(
    st.builds(lambda text, kind: Call(OpKind.ADD, text, None, kind), texts, kinds),
    st.builds(lambda text, number: Call(OpKind.UPDATE, text, number), texts, st.integers(1, 99)),
    st.builds(lambda number: Call(OpKind.DELETE, number=number), st.integers(1, 99)),
)


@given(st.text(), st.booleans(), st.sampled_from(["lines", "tools"]))
def test_reading_is_total(answer: str, cut: bool, form: Format) -> None:
    for call in read(answer, form, cut=cut):
        assert call.failure is not None or call.kind is not None
        assert call.failure is not None or call.kind is OpKind.DELETE or call.text


@given(st.text("+~-=[]core0123 \nab无"))
def test_every_line_that_is_not_empty_is_a_call_or_says_nothing(answer: str) -> None:
    said = [line.strip() for line in answer.splitlines() if line.strip()]
    nothing = [line for line in said if not read(line, "lines")]
    assert all(line[0] in "=" for line in nothing)
    assert len(read(answer, "lines")) == len(said) - len(nothing)


@given(st.lists(calls, max_size=6), st.sampled_from(["lines", "tools"]))
def test_what_is_written_is_read_back(said: list[Call], form: Format) -> None:
    assert read(write(said, form), form) == said


@given(st.lists(calls, min_size=1, max_size=6), st.sampled_from(["lines", "tools"]))
def test_the_last_call_of_a_cut_answer_fails(said: list[Call], form: Format) -> None:
    *before, last = read(write(said, form), form, cut=True)
    assert before == said[:-1] and last.failure == "cut"


@pytest.mark.parametrize(
    ("line", "kind", "failure"),
    [
        ("+ Tom has a dog.", OpKind.ADD, None),
        ("＋ 汤姆有一只狗。", OpKind.ADD, None),
        ("+", OpKind.ADD, "no text"),
        ("+ [diary] x", OpKind.ADD, "there is no kind diary"),
        ("~ 2 x", OpKind.UPDATE, None),
        ("~ 2", None, "malformed"),
        ("~ x", None, "malformed"),
        ("- 3", OpKind.DELETE, None),
        ("- the dog", None, "malformed"),
        ("Tom has a dog.", None, "malformed"),
    ],
)
def test_lines(line: str, kind: OpKind | None, failure: str | None) -> None:
    (call,) = read(line, "lines")
    assert (call.kind, call.failure) == (kind, failure)


@pytest.mark.parametrize(
    ("body", "kind", "failure"),
    [
        ('{"name": "memory_insert", "arguments": {"text": "x"}}', OpKind.ADD, None),
        ('{"name": "memory_insert", "arguments": {"text": 3}}', OpKind.ADD, "wrong arguments"),
        ('{"name": "memory_update", "arguments": {"text": "x"}}', OpKind.UPDATE, "wrong arguments"),
        (
            '{"name": "memory_delete", "arguments": {"id": true}}',
            OpKind.DELETE,
            "wrong arguments",
        ),
        ('{"name": "memory_delete", "arguments": {"id": 2}}', OpKind.DELETE, None),
        ('{"name": "search", "arguments": {}}', None, "unknown tool"),
        ('{"name": ', None, "malformed"),
    ],
)
def test_tool_calls(body: str, kind: OpKind | None, failure: str | None) -> None:
    (call,) = read(f"<tool_call>{body}</tool_call>", "tools")
    assert (call.kind, call.failure) == (kind, failure)


@pytest.mark.parametrize("said", ["", "=", "= nothing", "＝ 无", " \n "])
@pytest.mark.parametrize("form", ["lines", "tools"])
def test_nothing(said: str, form: Format) -> None:
    assert read(said, form) == []


def test_talk_instead_of_tools_is_a_failed_call() -> None:
    assert read("I shall remember that.", "tools") == [Call(None, failure="malformed")]


def test_a_text_with_line_breaks_stays_one_memory() -> None:
    body = '{"name": "memory_insert", "arguments": {"text": "a\\n- 1"}}'
    assert read(f"<tool_call>{body}</tool_call>", "tools")[0].text == "a - 1"


def test_calls_beyond_the_most_fail() -> None:
    found = read("\n".join(["+ x"] * (MOST_CALLS + 2)), "lines")
    assert [call.failure for call in found[MOST_CALLS - 1 :]] == [None, *["too many calls"] * 2]


def test_the_schemas_name_the_tools_that_are_read() -> None:
    names = [tool["function"]["name"] for tool in TOOLS]
    assert names == ["memory_insert", "memory_update", "memory_delete"]
