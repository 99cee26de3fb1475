from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from milvus_lite.analyzer import create_analyzer

from memograd.memory.index.schema import (
    MAX_STRING_BYTES,
    MAX_TERMS,
    digest,
    encode_terms,
    filters,
    row_key,
    token,
)

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.lists(anything, max_size=20))
def test_a_term_is_one_token_whatever_its_script(terms: list[str]) -> None:
    encoded = encode_terms(terms)
    assert re.fullmatch(r"([a-z2-7]{8}( |$))*", encoded)
    # The analyser that Milvus Lite really applies; on servers, letters and digits stay together.
    tokens = create_analyzer({"tokenizer": "standard"}).tokenize(encoded)
    assert tokens == [token(term) for term in terms]


def test_tokens_tell_terms_apart() -> None:
    terms = [
        "上海",
        "上",
        "海",
        "shanghai",
        "Shanghai",
        "2023-05-07",
        "2023",
        "c++",
        "c#",
        "",
        "🦀",
    ]
    assert len({token(term) for term in terms}) == len(terms)
    # sha256("abc") = ba7816bf8f...; base32 of ba 78 16 bf 8f is XJ4BNP4P.
    assert token("abc") == "xj4bnp4p"


def test_many_terms_fit_in_one_value() -> None:
    assert MAX_TERMS == 7281
    assert len(encode_terms(["term"] * 20_000)) <= MAX_STRING_BYTES


@given(anything, anything, st.lists(anything, max_size=4))
def test_no_text_enters_a_filter(agent: str, run: str, owners: list[str]) -> None:
    keys = [digest(owner) for owner in owners]
    for condition in filters("item", keys, digest(agent), digest(run)):
        names = ("layer", "agent_key", "run_key", "owner_key", "item", "and", "in")
        words = re.findall(r"\w+", condition)
        assert all(word in names or re.fullmatch("[0-9a-f]{64}", word) for word in words)
        assert re.fullmatch(r'[\w"=\[\], ]*', condition)


def test_many_owners_are_asked_in_several_filters() -> None:
    keys = [digest(str(number)) for number in range(2_500)]
    conditions = list(filters("turn", keys, None, None))
    assert len(conditions) == 3
    assert sorted(re.findall("[0-9a-f]{64}", "".join(conditions))) == sorted(keys)
    assert list(filters("turn", [], None, None)) == []
    assert list(filters("turn", None, None, None)) == ['layer == "turn"']


@given(st.tuples(anything, anything), st.tuples(anything, anything))
def test_keys_tell_owners_and_ids_apart(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (row_key("item", *one) == row_key("item", *other)) == (one == other)
    assert row_key("item", *one) != row_key("turn", *one)
