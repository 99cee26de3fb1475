"""The ids that are learnt are the answers and their end tokens, whatever the chat looks like."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.policy.language_model import LanguageModel
from memograd.warm_start.rows import PreferenceRow, Rows, SftRow
from memograd.warm_start.tokens import (
    IGNORED,
    NO_ROOM,
    SAME_WHEN_CUT,
    preference_ids,
    sft_sequences,
)


@pytest.fixture(scope="module")
def policy(tiny_model_folder) -> LanguageModel:
    return LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=2), device="cpu")


def chat(*texts: str) -> tuple[dict[str, str], ...]:
    roles = ("user", "assistant")
    return tuple({"role": roles[i % 2], "content": text} for i, text in enumerate(texts))


def learnt_text(policy, sequence) -> str:
    return policy.tokenizer.decode([label for label in sequence.labels if label != IGNORED])


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=3), st.integers(0, 2))
def test_answers_and_their_ends_are_learnt_and_nothing_else(policy, turns, first) -> None:
    first = 2 * min(first, len(turns) - 1)
    messages = chat(*(text for turn in turns for text in turn))
    [sequence], cut = sft_sequences(policy, Rows("x", [SftRow("1", messages, first)]), 4096)
    answers = [answer for _, answer in turns[first // 2 :]]
    assert learnt_text(policy, sequence) == "".join(f"{answer}<|end|>" for answer in answers)
    whole = policy.tokenizer.apply_chat_template(list(messages), tokenize=True, return_dict=False)
    assert sequence.input_ids == whole and cut == []
    pairs = zip(sequence.input_ids, sequence.labels, strict=True)
    assert all(label in (token, IGNORED) for token, label in pairs)


def test_a_text_is_continued_as_it_stands(policy) -> None:
    row = SftRow("1", ({"role": "assistant", "content": " 4"},), 0, text="2+2=")
    [sequence], _ = sft_sequences(policy, Rows("x", [row]), 99)
    assert policy.tokenizer.decode(sequence.input_ids) == "2+2= 4<|end|>"
    assert learnt_text(policy, sequence) == " 4<|end|>"


def test_a_template_that_forgets_earlier_answers_begins_new_sequences(
    tiny_model_folder, policy
) -> None:
    forgetful = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=2), device="cpu")
    forgetful.tokenizer.chat_template = (
        "{% for m in messages %}{% if m['role'] == 'user' %}<|start|>{{ m['content'] }}<|end|>"
        "{% endif %}{% endfor %}"
    )
    rows = Rows("x", [SftRow("1", chat("a", "b", "c", "d"), 0)])
    sequences, _ = sft_sequences(forgetful, rows, 99)
    assert [policy.tokenizer.decode(sequence.input_ids) for sequence in sequences] == [
        "<|start|>a<|end|>b<|end|>",
        "<|start|>a<|end|><|start|>c<|end|>d<|end|>",
    ]
    assert [learnt_text(policy, sequence) for sequence in sequences] == ["b<|end|>", "d<|end|>"]


def test_what_is_too_long_is_cut_and_counted(policy) -> None:
    prompt = len(policy.encode(chat("q")))
    rows = Rows(
        "x",
        [
            SftRow("1", chat("q", "abc"), 1),
            SftRow("2", chat("q", "abcdef"), 1),
            SftRow("3", chat("q" * 20, "a"), 1),
        ],
    )
    sequences, cut = sft_sequences(policy, rows, prompt + 4)
    assert [learnt_text(policy, sequence) for sequence in sequences] == ["abc<|end|>", "abcd"]
    assert cut == ["2"]
    assert rows.left_out == {NO_ROOM: ["3"]}
    assert [row.place for row in rows.used] == ["1", "2"]
    with pytest.raises(BadInput, match="No row of x fits into 5 tokens"):
        sft_sequences(policy, rows, 5)


def test_pairs_are_cut_and_counted(policy) -> None:
    prompt = len(policy.encode(chat("q")))
    rows = Rows(
        "x",
        [
            PreferenceRow("1", chat("q"), "abc", "x"),
            PreferenceRow("2", chat("q"), "abcdef", "x"),
            PreferenceRow("3", chat("q"), "abcde", "abcdf"),
            PreferenceRow("4", chat("q" * 20), "a", "b"),
        ],
    )
    pairs, cut = preference_ids(policy, rows, prompt + 4)
    assert [policy.tokenizer.decode(pair.chosen_ids) for pair in pairs] == ["abc<|end|>", "abcd"]
    assert all(pair.prompt_ids == policy.encode(chat("q")) for pair in pairs)
    assert cut == ["2"]
    assert rows.left_out == {SAME_WHEN_CUT: ["3"], NO_ROOM: ["4"]}
