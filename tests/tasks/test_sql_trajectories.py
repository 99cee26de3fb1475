"""Gold attempts: they earn everything, and real chat templates write them as episodes do."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.quick import quick
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.tool_calls import ToolCall, check_convention, parse_tool_calls
from memograd.tasks.sql.questions import SqlQuestion, gold_attempts, make_rows, read_questions
from memograd.tasks.sql.rewards import evidence, execution, valid_sql
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sample.templates import write_sample_questions
from memograd.tasks.sql.sandbox import Sandbox
from memograd.tasks.sql.tool import TOOL, SqlEnvironment


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> list[SqlQuestion]:
    path = tmp_path_factory.mktemp("sample") / "sample.jsonl"
    write_sample_questions(path)
    return read_questions(path)


@pytest.mark.parametrize("every", quick([4, 1], (0,)))
def test_a_gold_attempt_earns_everything(sample: list[SqlQuestion], every: int) -> None:
    sample = sample[::every]
    sandbox = Sandbox(sample_database())
    chats, left_out = gold_attempts(sample, sandbox)
    assert (len(chats), left_out) == (len(sample), [])
    rows = make_rows(sample, sandbox)[0]
    columns: dict[str, list[Any]] = {
        name: [row.columns[name] for row in rows] for name in rows[0].columns
    }
    said = [chat["messages"][2:] for chat in chats]
    taken = ("database", "gold_sql", "columns")
    assert set(execution(said, *(columns[name] for name in taken))) == {1.0}
    taken = ("database", "evidence", "question")
    # Some written answers quote more than the reward takes for an answer of one's own.
    earned = evidence(said, *(columns[name] for name in taken))
    assert min(earned) > 0 and earned.count(1.0) >= 0.8 * len(earned)
    assert set(valid_sql(said, columns["database"])) == {1.0}


def test_it_is_what_the_environment_would_have_answered(sample: list[SqlQuestion]) -> None:
    sandbox = Sandbox(sample_database())
    (chat,) = gold_attempts(sample[:1], sandbox)[0]
    call, result = chat["messages"][2]["content"], chat["messages"][3]
    (called,) = parse_tool_calls(call)
    assert isinstance(called, ToolCall)
    environment = SqlEnvironment()
    environment.reset(str(sandbox.database), sample[0].sql)
    assert environment.query_database_by_sql(**called.arguments) == result["content"]
    assert (called.name, result["name"]) == (TOOL, TOOL)


def test_what_nobody_can_reach_or_say_is_left_out(sample: list[SqlQuestion]) -> None:
    sandbox = Sandbox(sample_database())
    by_id = SqlQuestion("a", "?", "SELECT dosage FROM drugs_info WHERE id = 1001", (), "x",
                     names={"1001": "华法林"})  # fmt: skip
    silent = SqlQuestion("b", "?", "SELECT dosage FROM drugs_info WHERE id = 1001", (), " ")
    chats, left_out = gold_attempts([by_id, silent], sandbox)
    assert not chats
    assert [one.reason for one in left_out] == [
        "several rows have the name that the question uses", "it has no answer",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def qwen3(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> PreTrainedTokenizerBase:
    source = shared_data / "qwen3_tokenizer"
    folder = tmp_path_factory.mktemp("qwen3")
    shutil.copy(source / "tokenizer_config.json", folder)
    packed = (source / "tokenizer.json.gz").read_bytes()
    (folder / "tokenizer.json").write_bytes(gzip.decompress(packed))
    return AutoTokenizer.from_pretrained(folder)


def test_qwen3_shows_the_tool_and_writes_the_attempt_as_one_row(
    qwen3: PreTrainedTokenizerBase, sample: list[SqlQuestion]
) -> None:
    """The token row of an episode: what was held before is a prefix of what comes next, and calls
    that the template writes of structured calls are those that we write as text."""
    check_convention(str(qwen3.chat_template))
    ends = frozenset({int(qwen3.convert_tokens_to_ids("<|im_end|>"))})  # type: ignore[arg-type]
    ids = ChatIds(qwen3, end_ids=ends)
    for chat in gold_attempts(sample[::40], Sandbox(sample_database()))[0]:
        messages, tools = chat["messages"], chat["tools"]
        opening = ids.first(messages[:2], tools)
        shown = qwen3.decode(list(opening.ids))
        assert '"name": "query_database_by_sql"' in shown
        assert "在医学数据库里执行一条SELECT语句" in shown
        action = qwen3.encode(messages[2]["content"] + "<|im_end|>")
        held = (*opening.ids, *action)
        after = ids.after(held, messages[:4], tools)
        assert (after.starts_row, after.mismatch) == (False, None)
        said = qwen3.decode(list(after.ids))
        assert f"<tool_response>\n{messages[3]['content']}\n</tool_response>" in said
        assert said.endswith("<|im_start|>assistant\n")
        (called,) = parse_tool_calls(ids.action_text(action))
        assert isinstance(called, ToolCall)
        structured = {"type": "function", "function": {"name": TOOL, "arguments": called.arguments}}
        rendered = [
            qwen3.apply_chat_template(
                [*messages[:2], turn, messages[3]], tools=tools, tokenize=False
            )
            for turn in (
                messages[2],
                {"role": "assistant", "content": "", "tool_calls": [structured]},
            )
        ]
        assert rendered[0] == rendered[1]
        assert json.loads(json.dumps(chat)) == chat
