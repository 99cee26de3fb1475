"""Reading a corpus page by page: as if all its records were listed, and only what is asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.state.corpus import Corpus


@dataclass(frozen=True)
class Record:
    id: str
    kind: str


@given(
    steps=st.lists(st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 20)), max_size=150),
    skip=st.integers(0, 30),
    k=st.integers(0, 30),
)
def test_a_page_is_a_slice_of_the_list(steps: list[tuple[str, int]], skip: int, k: int) -> None:
    corpus: Corpus[Record] = Corpus(2)
    listed: list[Record] = []
    for number, (step, at) in enumerate(steps):
        if step == "add":
            record = Record(str(number), f"kind {at % 3}")
            corpus.add(record, np.array([1, 0], np.float32), ["term"])
            listed.append(record)
        elif listed:
            corpus.remove(listed.pop(at % len(listed)).id)
    newest = listed[::-1]
    assert corpus.last(k, skip=skip) == newest[skip : skip + k]
    some = [record for record in newest if record.kind == "kind 1"]
    of_kind = corpus.last(k, lambda record: record.kind == "kind 1", skip=skip)
    assert of_kind == some[skip : skip + k]
    assert corpus.count_by("kind") == Counter(record.kind for record in listed)
