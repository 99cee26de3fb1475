"""The tables: complete in both languages, and nothing of the test is known from training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from memograd.data.lifelog import LifelogSettings, generate_lifelogs
from memograd.data.lifelog.forms import (
    Forms,
    FormWording,
    Frames,
    Language,
    Parts,
    Role,
    Said,
    Trifle,
    held_apart,
    language_tables,
)
from memograd.data.lifelog.world import KINDS

BOTH = pytest.mark.parametrize(
    "language", [language_tables("en"), language_tables("zh")], ids=["en", "zh"]
)
SLOT = re.compile(r"\{(\w+)\}")
NAMING = {"who", "whose", "whom", "he", "his", "him", "self"}


def parts(table: Any) -> Iterator[Parts[Any]]:
    """Everything in the tables that is kept apart by split."""
    if isinstance(table, Parts):
        yield table
    elif is_dataclass(table):
        for one in fields(table):
            yield from parts(getattr(table, one.name))
    elif isinstance(table, dict):
        for value in table.values():
            yield from parts(value)


def texts(entries: tuple[Any, ...]) -> Iterator[str]:
    for one in entries:
        if isinstance(one, Said):
            yield one.said
            yield one.text
        else:
            yield one.form if isinstance(one, Trifle) else one


@BOTH
def test_no_wording_and_no_name_is_in_both_splits(language: Language) -> None:
    found = list(parts(language))
    train = {text for one in found for text in texts(one.train)}
    test = {text for one in found for text in texts(one.test)}
    assert len(train) > 300 and len(test) > 200
    assert not train & test


@BOTH
def test_nobody_of_the_test_appears_in_training(language: Language) -> None:
    named: dict[str, set[str]] = {}
    for split in ("train", "test"):
        pairs = [f"language={language.code}", f"split={split}"]
        logs = generate_lifelogs(10, 0, LifelogSettings().with_pairs(pairs))
        named[split] = {one.subject for log in logs for one in log.statements} - {""}
    assert named["train"] and not named["train"] & named["test"]


@BOTH
def test_every_kind_can_be_told_and_asked_for_in_each_split_that_has_it(language: Language) -> None:
    assert set(language.kinds) == set(KINDS)
    for name, kind in KINDS.items():
        wording = language.kinds[name]
        for forms in (wording.tell, wording.ask):
            assert forms.test, name
            assert bool(forms.train) == (not kind.held_out), name
        pools = list(wording.keys.values()) or [wording.pool]
        assert kind.dated or all(len(set(pool)) == len(pool) >= 6 for pool in pools), name
        assert bool(wording.details) == bool(wording.more or kind.event), name


@BOTH
def test_forms_name_what_they_tell(language: Language) -> None:
    """So that the text answers the question, and a repeat or a change can be recognised."""
    for name, kind in KINDS.items():
        wording = language.kinds[name]
        wanted = {"v", *(("k",) if wording.keys else ()), *(("when", "d") if kind.event else ())}
        for forms, needs in (
            (wording.tell, wanted),
            (wording.change, wanted),
            (wording.more, wanted | {"d"}),
        ):
            for form in (*forms.train, *forms.test):
                named = {slot.removeprefix("a_") for slot in SLOT.findall(form)}
                assert named >= needs, (name, form)
                assert named & {"who", "whose", "whom"}, (name, form)
                assert named <= needs | NAMING | {"when", "old"}, (name, form)


@BOTH
def test_what_is_asked_needs_no_more_than_a_question_knows(language: Language) -> None:
    for name, kind in KINDS.items():
        wording = language.kinds[name]
        known = NAMING | ({"k"} if wording.keys else set())
        asked: list[tuple[Forms, set[str]]] = [
            (wording.ask, known | ({"day"} if kind.event else set())),
            (wording.ask_more, known | {"v"}),
            (wording.ask_when, known | {"v"}),
            (wording.ask_before, known | {"v"}),
            (wording.topic, known),
            (wording.noun, known | {"v"}),
        ]
        for forms, slots in asked:
            for form in (*forms.train, *forms.test):
                named = {slot.removeprefix("a_") for slot in SLOT.findall(form)}
                # "When did she move to Boston?" knows the value, "Where does she live?" does not.
                assert named <= slots, (name, form)


@pytest.mark.parametrize("table", [Language, FormWording, Frames, Said, Trifle, Role, Forms])
def test_a_key_that_nobody_reads_is_refused(table: Any) -> None:
    with pytest.raises(ValidationError, match="misspelt"):
        TypeAdapter(table).validate_python({"misspelt": ("a form",)})


def test_values_are_held_apart() -> None:
    pool = tuple("abcdefghi")
    assert held_apart(pool, "train") == tuple("abdegh")
    assert held_apart(pool, "test") == tuple("cfi")
