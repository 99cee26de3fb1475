"""`--rewards`: built-in names, settings, files and modules in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.rewards import parse_rewards, with_absolute_files
from memograd.rewards.spec import split_entries

MINE = """
def exact(completions, **columns):
    return [2.0] * len(completions)

def length(completions, **columns):
    return [3.0] * len(completions)

def total(completions, **columns):
    return [4.0] * len(completions)

overlong = environment = total
constant = 5
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def parsed(spec: str) -> list[tuple[str, float, bool]]:
    return [(r.name, r.weight, r.reads_messages) for r in parse_rewards(spec)]


def test_all_kinds_together(mine: Path) -> None:
    spec = (
        "coherence, mine.py:exact,length:0.5, exact_match:-1, memograd.rewards.style:format_match"
    )
    assert parsed(spec) == [
        ("coherence", 1.0, False),
        ("exact", 1.0, True),
        ("length", 0.5, True),
        ("exact_match", -1.0, False),
        ("format_match", 1.0, True),
    ]


def test_a_bare_name_is_the_files_first_and_built_in_next(mine: Path) -> None:
    before, own = parse_rewards("length(low=1,high=1),mine.py:exact")
    assert before.function(prompts=["q"], completions=["a"]) == [1.0]
    assert own.function(["a"]) == [2.0]
    _, own_length = parse_rewards("mine.py:exact,length")
    assert own_length.function(["a"]) == [3.0]


def test_a_file_is_run_once_for_a_specification(mine: Path) -> None:
    mine.write_text("count = [0]\n" + MINE)
    one, two = parse_rewards(f"mine.py:exact,{mine.name}:length")
    assert one.function.__globals__ is two.function.__globals__


@pytest.mark.parametrize(
    ("spec", "low", "weight"),
    [
        ("length(low=4)", 4, 1.0),
        ("length( low = 4 , high=9 ):0.25", 4, 0.25),
        ("length():2", 50, 2.0),
    ],
)
def test_settings(spec: str, low: int, weight: float) -> None:
    (reward,) = parse_rewards(spec)
    assert (reward.name, reward.weight) == ("length", weight)
    values = reward.function(prompts=["q"] * 2, completions=["w " * low, "w " * (low - 1)])
    assert values == pytest.approx([1.0, (low - 1) / low])


def test_quoted_settings_may_hold_anything() -> None:
    first, second = parse_rewards(
        r"""format_match(pattern="[(]a,b[)]:\\d+\"?"):0.5,coherence(connectives=["因为","x,y"])"""
    )
    assert first.weight == 0.5
    assert first.function(prompts=["q"] * 2, completions=["(a,b):12", "a"]) == [1.0, 0.0]
    assert second.function(prompts=["q"], completions=["因为 x,y"]) == pytest.approx([0.4])


def test_a_bare_word_is_a_text() -> None:
    (reward,) = parse_rewards("language_consistency(language=zh)")
    assert reward.function(prompts=["q"], completions=["你好"]) == [1.0]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("length(50)", "write settings as name(key=value"),
        ("length(low=)", "write settings as name(key=value"),
        ("length(low=f(1))", "low has another kind of value"),
        ("length(**x)", "write settings as name(key=value"),
        ("length(low=1", "no reward"),
        ("(low=1)", "no reward"),
        ("mine.py", "names a file and no function of it; write mine.py:NAME"),
        ("mine.py:0.5", "names a file and no function of it"),
        ("length(low=1):x", '"x" in reward "length(low=1):x" is not a finite number'),
        ("mine.py:exact(k=1)", "only built-in rewards have settings"),
        ("mine.py:exact,length(low=1)", "only built-in rewards have settings"),
        ("mine.py:constant", "is int, not a function"),
        ("mine.py:", "empty entry"),
        ("mine.py:exact,exact:2", "names exact twice"),
        ("mine.py:total", "the weighted sum of all rewards is called total"),
        ("mine.py:exact,overlong", "the length penalty of overlong_share is called overlong"),
        ("mine.py:environment", "what an agent's environment gives is called environment"),
        ("gone.py:exact", "There is no reward file"),
        ("no_module:exact", "There is no module no_module"),
        ("mine.py:exact,polite", 'There is no reward "polite"'),
    ],
)
def test_what_is_refused(mine: Path, spec: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_rewards(spec)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_files_become_absolute(mine: Path) -> None:
    spec = "mine.py:exact,length:0.5,sub/other.py:f,length(low=1, high=2),pkg.mod:g"
    absolute = with_absolute_files(spec)
    folder = mine.parent
    assert absolute == (
        f"{folder}/mine.py:exact,length:0.5,{folder}/sub/other.py:f,length(low=1, high=2),pkg.mod:g"
    )
    assert with_absolute_files(absolute) == absolute


@given(
    st.lists(st.text(st.characters(blacklist_characters=",()[]{}\"'")).map(str.strip), min_size=1)
)
def test_entries_are_cut_at_commas(entries: list[str]) -> None:
    assert split_entries(",".join(entries)) == entries


@given(st.text(st.sampled_from("abc:,()[]'\"=1. "), max_size=20))
def test_any_text_is_understood_or_refused(spec: str) -> None:
    try:
        assert parse_rewards(spec)
    except BadInput as error:
        assert str(error)
