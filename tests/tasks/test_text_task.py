"""Rows of prompts: read, split without leaks, dropped for length; what its page says is true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.config import load_settings
from memograd.errors import BadInput
from memograd.rewards import REWARDS, SCORES, parse_rewards
from memograd.tasks.text.rows import (
    Dropped,
    TextRow,
    check_apart,
    read_rows,
    split_rows,
    text_scenarios,
    told_apart,
)
from memograd.tasks.text.settings import RowsConfig, TextTrainConfig

CHAT = [{"role": "system", "content": "简短"}, {"role": "user", "content": "你好"}]


def write(folder: Path, *rows: Any, name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    return path


def rows_of(*prompts: str) -> list[TextRow]:
    return [TextRow(f"r{n}", prompt, {"id": f"r{n}"}, f"f:{n}") for n, prompt in enumerate(prompts)]


# Reading


def test_rows_keep_their_order_columns_and_ids(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"prompt": "一", "answer": 1},
        {"prompt": CHAT, "id": "own"},
        {"prompt": "c", "id": 7},
    )
    path.write_text("\ufeff" + path.read_text("utf-8").replace("\n", "\n\n"), "utf-8")
    first, second, third = read_rows(path)
    assert (first.id, first.prompt) == ("rows:1", "一")
    assert first.columns == {"answer": 1, "id": "rows:1"}
    assert (second.id, second.prompt, second.place) == ("own", tuple(CHAT), f"{path}:3")
    assert second.columns == {"answer": None, "id": "own"}
    assert third.columns["id"] == "7"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not valid JSON"),
        ("[1]", "list, not an object"),
        ("{}", 'there is no "prompt"; it is empty'),
        ('{"promt": "x"}', 'there is no "prompt"; it has promt'),
        ('{"prompt": "  "}', '"prompt" is blank'),
        ('{"prompt": 5}', "must be a text or a list of chat messages, not int"),
        ('{"prompt": []}', "not an empty list"),
        ('{"prompt": ["x"]}', 'message 1 of "prompt" must be'),
        ('{"prompt": [{"role": "user"}]}', "message 1"),
        ('{"prompt": [{"role": "user", "content": null}]}', "both texts"),
        ('{"prompt": [{"role": "assistant", "content": "x"}]}', "ends with what the assistant"),
        ('{"prompt": "x", "id": true}', '"id" must be'),
        ('{"prompt": "x", "id": ""}', '"id" must be'),
        ('{"prompt": "x", "completions": 1}', "no column may be called 'completions'"),
        ('{"prompt": "x", "id": "one"}', "the id 'one' is that of"),
        (r'{"prompt": "\ud800"}', "not valid JSON"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "id": "one"}\n\n' + line + "\n", "utf-8")
    with pytest.raises(BadInput) as caught:
        read_rows(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}:3: ")
    assert message in sentence
    assert len(sentence.splitlines()) == 1


def test_a_file_without_rows_or_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"There is no file .*gone\.jsonl"):
        read_rows(tmp_path / "gone.jsonl")
    with pytest.raises(BadInput, match="has no rows"):
        read_rows(write(tmp_path))
    (tmp_path / "rows.jsonl").write_bytes(b'{"prompt": "\xff"}')
    with pytest.raises(BadInput, match="not UTF-8"):
        read_rows(tmp_path / "rows.jsonl")


# Splitting


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=30).filter(
        lambda p: len(set(p)) > 1
    ),
    st.floats(0.01, 0.49),
    st.randoms(),
)
def test_duplicates_never_straddle_and_order_does_not_matter(
    prompts: list[str], fraction: float, order: Any
) -> None:
    rows = rows_of(*prompts)
    train, evaluation = split_rows(rows, fraction)
    assert sorted([*train, *evaluation], key=rows.index) == rows
    assert train == sorted(train, key=rows.index)
    held_out = {row.prompt for row in evaluation}
    assert not held_out & {row.prompt for row in train}
    assert len(held_out) == max(1, round(fraction * len(set(prompts))))
    order.shuffle(rows)
    assert {row.prompt for row in split_rows(rows, fraction)[1]} == held_out


def test_a_text_and_a_chat_that_says_it_are_the_same_prompt() -> None:
    text, chat = (
        rows_of("hello")[0],
        TextRow("c", ({"role": "user", "content": "hello"},), {}, "g:1"),
    )
    with pytest.raises(BadInput, match="g:1 has the same prompt as f:0, which is trained on"):
        check_apart([text], [chat])
    check_apart([text], rows_of("bye"))


def test_a_row_in_both_files_is_found_though_other_rows_have_more_columns(tmp_path) -> None:
    # Every row of a file has all of its columns, which must not make the row another problem.
    same = {"prompt": "hello", "answer": 1}
    data, held_out = tmp_path / "rows.jsonl", tmp_path / "held_out.jsonl"
    data.write_text(json.dumps(same) + "\n" + json.dumps({"prompt": "bye", "hint": "b"}) + "\n")
    held_out.write_text(json.dumps(same) + "\n")
    with pytest.raises(BadInput, match=r"held_out\.jsonl:1 has the same content as .*rows\.jsonl"):
        told_apart(data, RowsConfig(eval_data=held_out), by_columns=True)


def test_fraction_0_holds_nothing_out() -> None:
    rows = rows_of("a")
    assert split_rows(rows, 0) == (rows, [])


def test_one_prompt_cannot_be_split() -> None:
    with pytest.raises(BadInput, match=r"1 different prompts, and text\.eval_fraction=0\.1 leaves"):
        split_rows(rows_of("a", "a"), 0.1)


# Scenarios


def scenarios(*rows: TextRow, string_prompts: str = "text", limit: int = 10) -> Any:
    return text_scenarios(
        rows,
        string_prompts=string_prompts,
        encode=lambda p: [0] * len(p if isinstance(p, str) else p[-1]["content"]),
        limit=limit,
    )


def test_a_string_is_continued_or_put_as_the_users_message() -> None:
    row = rows_of("hello")[0]
    chat = TextRow("c", tuple(CHAT), {"id": "c"}, "g:1")  # type: ignore[arg-type]
    (text, from_chat), _ = scenarios(row, chat)
    assert text.prompt == "hello"
    assert from_chat.prompt == CHAT
    (text, from_chat), _ = scenarios(row, chat, string_prompts="chat")
    assert text.prompt == [{"role": "user", "content": "hello"}]
    assert from_chat.prompt == CHAT
    assert text.columns == {"id": "r0"}


@given(st.lists(st.text("ab", min_size=1, max_size=6), max_size=8), st.integers(1, 6))
def test_only_prompts_over_the_limit_are_dropped(prompts: list[str], limit: int) -> None:
    kept, dropped = scenarios(*rows_of(*prompts), limit=limit)
    fitting = [f"r{n}" for n, prompt in enumerate(prompts) if len(prompt) <= limit]
    assert [scenario.id for scenario in kept] == fitting
    assert dropped == [
        Dropped(f"r{n}", len(prompt)) for n, prompt in enumerate(prompts) if len(prompt) > limit
    ]


def test_a_prompt_that_cannot_be_encoded_is_named() -> None:
    def encode(prompt: Any) -> list[int]:
        raise BadInput("no chat template")

    with pytest.raises(BadInput, match="f:0: no chat template"):
        text_scenarios(rows_of("a"), string_prompts="text", encode=encode, limit=9)
    with pytest.raises(BadInput, match="f:0: the prompt has no tokens"):
        text_scenarios(rows_of("a"), string_prompts="text", encode=lambda p: [], limit=9)


ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "text-task.md").read_text("utf-8")


def test_the_table_has_every_built_in_reward() -> None:
    names = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(names))) == sorted([*REWARDS, *SCORES])


def test_the_preset_says_what_the_page_says() -> None:
    config = load_settings(TextTrainConfig, ROOT / "examples" / "text" / "qwen.toml", [])
    assert (config.num_generations, config.temperature, config.learning_rate) == (8, 0.8, 1e-5)
    assert (config.beta, config.epsilon, config.entropy_coef) == (0.1, 0.2, 0.01)
    assert config.max_grad_norm == 0.5
    (spec,) = re.findall(r"'(length\(low=50, high=50\),coherence)'", PAGE)
    assert len(parse_rewards(spec)) == 2


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).is_file(), target
