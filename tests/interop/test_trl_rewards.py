"""Reward functions as TRL calls them, with chats and with texts."""

from __future__ import annotations

from pathlib import Path

from memograd.interop.trl import trl_rewards

ASKED = [{"role": "user", "content": "6 乘 7?"}]
CALL = {"function": {"name": "count", "arguments": {"a": 6}}}
SAID = [
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "name": "count", "content": "42"},
    {"role": "assistant", "content": "四十二"},
]


def test_built_in_rewards_read_the_text_of_a_chat() -> None:
    [number, length], weights = trl_rewards("numeric_match,length(low=3, high=3):0.5")
    columns = {"answer": [42, 42], "id": ["a", "b"]}
    assert number(prompts=[ASKED, "6*7="], completions=[SAID, "41"], **columns) == [1.0, 0.0]
    assert length(prompts=[ASKED] * 2, completions=[SAID, []], **columns) == [1.0, 0.0]
    assert (number.__name__, weights) == ("numeric_match", [1.0, 0.5])


def test_functions_of_a_file_read_messages_with_calls_in_their_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "def calls(completions):\n"
        "    return [float('<tool_call>' in one[0]['content']) for one in completions]\n"
    )
    [calls], _ = trl_rewards(f"{file}:calls")
    assert calls(prompts=[ASKED], completions=[SAID], answer=[42]) == [1.0]
