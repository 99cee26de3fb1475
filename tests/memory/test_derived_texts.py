from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd.memory.analysis import analyse
from memograd.memory.journal import DerivedText, Journal
from memograd.memory.records.events import EventKind, NewEvent
from memograd.memory.records.items import content_hash
from memograd.memory.records.scope import Scope
from memograd.memory.state.derived_texts import DerivedTexts

TEXTS = ["I live in Boston.", "我住在北京。", "I live in Boston.", "x" * 3_000]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


@pytest.fixture
def counting(trigrams: Callable[[], Any]) -> Any:
    class Counting(type(trigrams())):  # type: ignore[misc]
        asked: list[str]

        def embed(self, texts: Sequence[str]) -> np.ndarray:
            self.asked = [*getattr(self, "asked", []), *texts]
            return super().embed(texts)

    return Counting()


def check(found: list[tuple[np.ndarray, tuple[str, ...]]], embedder: Any) -> None:
    for text, (vector, terms) in zip(TEXTS, found, strict=True):
        assert np.array_equal(vector, embedder.embed([text])[0])
        assert terms == analyse(text)


def test_what_comes_back_is_what_embedder_and_analysis_say(
    journal: Journal, trigrams: Callable[[], Any]
) -> None:
    texts = DerivedTexts(journal, trigrams())
    check(texts.look_up("user:alice", TEXTS, seen=0), trigrams())  # from the model
    check(texts.look_up("user:alice", TEXTS, seen=0), trigrams())  # from the process
    texts.forget()
    check(texts.look_up("user:alice", TEXTS, seen=0), trigrams())  # from the table


def test_terms_of_traditional_characters_from_an_older_version_are_made_anew(
    journal: Journal, trigrams: Callable[[], Any]
) -> None:
    text, embedder = "我的電話號碼換了。", trigrams()
    old = DerivedText(
        "user:alice", content_hash(text), embedder.embed([text])[0], tuple("電話號碼換")
    )
    journal.store_derived([old], embedder=embedder.name, purged_until=0)
    [(_, terms)] = DerivedTexts(journal, embedder).look_up("user:alice", [text], seen=0)
    assert terms == analyse(text) == analyse("我的电话号码换了。")


def test_who_reads_needs_no_room_to_write(
    tmp_path: Path, trigrams: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db?timeout=0.1") as journal:
        raw = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
        raw.execute("BEGIN IMMEDIATE")  # as a full disk does, this keeps everybody from writing
        texts = DerivedTexts(journal, trigrams())
        check(texts.look_up("user:alice", TEXTS, seen=0), trigrams())
        assert "are not kept" in caplog.text
        raw.execute("ROLLBACK")
        raw.close()
        texts.forget()
        texts.look_up("user:alice", TEXTS, seen=0)
        assert len(journal.derived("user:alice")) == len(set(TEXTS))


def test_every_text_is_embedded_once(journal: Journal, counting: Any) -> None:
    texts = DerivedTexts(journal, counting)
    texts.look_up("user:alice", TEXTS, seen=0)
    texts.forget()
    texts.look_up("user:alice", TEXTS, seen=0)
    assert sorted(counting.asked) == sorted(set(TEXTS))


def test_what_was_prepared_is_stored_with_the_events(journal: Journal, counting: Any) -> None:
    texts = DerivedTexts(journal, counting)
    prepared = texts.prepare("user:alice", TEXTS[:2])
    event = NewEvent(EventKind.NONE, Scope("alice"), "1", after={"text": TEXTS[0], "sources": []})
    journal.append([event], derived=prepared)
    fresh = DerivedTexts(journal, counting)
    fresh.look_up("user:alice", TEXTS[:2], seen=0)
    assert len(counting.asked) == 2


def test_owners_are_kept_apart(journal: Journal, counting: Any) -> None:
    texts = DerivedTexts(journal, counting)
    texts.look_up("user:alice", TEXTS[:1], seen=0)
    texts.look_up("user:bob", TEXTS[:1], seen=0)
    assert len(counting.asked) == 2
    assert set(journal.derived("user:alice")) == set(journal.derived("user:bob"))


def test_deriving_stores_nothing(journal: Journal, trigrams: Callable[[], Any]) -> None:
    texts = DerivedTexts(journal, trigrams())
    check(texts.derive("user:alice", TEXTS), trigrams())
    assert journal.derived("user:alice") == {}


def test_what_was_purged_meanwhile_is_not_stored_again(
    journal: Journal, trigrams: Callable[[], Any]
) -> None:
    event = NewEvent(EventKind.NONE, Scope("alice"), "1", after={"text": TEXTS[0], "sources": []})
    [read] = journal.append([event])
    journal.purge(subjects=["1"], actor="user", reason="")
    texts = DerivedTexts(journal, trigrams())
    check(texts.look_up("user:alice", TEXTS, seen=read.seq), trigrams())
    assert journal.derived("user:alice") == {}


def test_vectors_of_another_embedder_are_made_anew(
    journal: Journal, trigrams: Callable[..., Any]
) -> None:
    DerivedTexts(journal, trigrams(16)).look_up("user:alice", TEXTS, seen=0)
    check(DerivedTexts(journal, trigrams()).look_up("user:alice", TEXTS, seen=0), trigrams())
