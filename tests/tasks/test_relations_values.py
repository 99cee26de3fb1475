"""What the pointer to another value learns from, and that it learns."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from memograd.errors import BadInput
from memograd.memory.relations.model import ValuesSeen
from memograd.memory.relations.rows import Span
from memograd.memory.relations.values import DEPTHS, ValuePointer
from memograd.tasks.relations.rows import WrittenFact, WrittenTurn
from memograd.tasks.relations.values import (
    PointerNetwork,
    SeenRow,
    ValueRow,
    _batch_of,
    one_value,
    train_pointer,
    value_rows,
    widened,
)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("User's room is 508.", "User's room is 580.", ("508", "580")),
        ("用户的闹钟定在六点四十。", "用户的闹钟定在六点二十。", ("四", "二")),
        ("User lives in Leeds.", "User lives in West Cork.", ("Leeds", "West Cork")),
        ("User lives in Leeds.", "User lives in Leeds.", None),
        ("Leeds is home.", "Cork is home.", None),  # they differ in how they begin
    ],
)
def test_one_value(old: str, new: str, value: tuple[str, str] | None) -> None:
    found = one_value(old, new)
    assert value == (found and (old[slice(*found[0])], found[1]))


def test_chinese_values_begin_and_end_where_both_texts_differ_no_more() -> None:
    item, message = "用户住在吴中区。", "写快了,吴江区"
    mine, its = widened(item, Span(5, 6), message, Span(5, 6))
    assert (item[slice(*mine)], message[slice(*its)]) == ("吴中区", "吴江区")


def turn(relation: str, fact: WrittenFact, text: str, new: list[WrittenFact]) -> WrittenTurn:
    """A user's turn beside one earlier fact."""
    return WrittenTurn(
        "correction", "en", "x:1", "user", text, [("user", "before")], [fact], [relation], new
    )


def test_rows_have_the_value_in_the_statement_and_in_what_the_reader_makes() -> None:
    fact = WrittenFact("User's room is 508.", "my room is 508", "User's room's 508, at the back.")
    new = WrittenFact("User's room is 580.", "580")
    rows = value_rows([turn("correct", fact, "wait, 580 and 508 is hers", [new])], 0)
    assert [row.right for row in rows] == ["User's room is 580.", "User's room's 580, at the back."]
    assert all(row.message[slice(*row.new)] == "580" for row in rows if row.new)
    # Told in other words, it is no value to be put anywhere, and counts less.
    other = value_rows([turn("replace", fact, "five-eighty it is", [new])], 0)
    assert other and all(row.old is None and row.counts < 1 for row in other)
    assert not value_rows([turn("retract", fact, "forget my room", [])], 0)


def rows_seen() -> list[SeenRow]:
    """Rows in which the value has a vector of its own."""
    rng, rows = np.random.default_rng(1), []
    for number in range(96):
        vectors = rng.normal(size=(12, len(DEPTHS) * 12)).astype(np.float32)
        old, new = int(rng.integers(7, 12)), int(rng.integers(1, 6))
        given = number % 3 > 0
        if given:
            vectors[old, :6] += 6
            vectors[new, 6:12] += 6
        places = [(n, n + 1) for n in range(5)]
        seen = ValuesSeen(vectors, [1] * 7 + [2] * 5, Span(1, 6), Span(7, 12), places, places)
        row = ValueRow("abcde", (), "fghij", None, None, 1.0, "correct")
        rows.append(SeenRow(row, seen, (old, old, new, new) if given else None))
    return rows


def test_the_network_computes_what_the_pointer_does() -> None:
    torch.manual_seed(0)
    network = PointerNetwork(12, width=16, layers=2, dropout=0.3).eval()
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    pointer, [row, *_] = ValuePointer(tensors), rows_seen()
    with torch.no_grad():
        scores, none = network(_batch_of([row]))
    mine, no_value = pointer.scores(
        row.seen.vectors, row.seen.parts, row.seen.message, row.seen.item
    )
    assert np.allclose(scores[0].numpy(), mine, atol=1e-5)
    assert float(none[0]) == pytest.approx(no_value, abs=1e-5)


def test_it_learns_to_point_and_to_point_at_nothing() -> None:
    rows = rows_seen()
    random.Random(0).shuffle(rows)
    pointer = train_pointer(rows[:72], seed=0, passes=40, width=16, layers=1, dropout=0.0, size=12)
    right = 0
    for one in rows[72:]:
        scores, none = pointer.scores(
            one.seen.vectors, one.seen.parts, one.seen.message, one.seen.item
        )
        if one.tokens is None:
            right += none > 0
            continue
        old = 7 + int(scores[7:12, 0].argmax())
        new = 1 + int(scores[1:6, 2].argmax())
        right += none < 0 and (old, new) == (one.tokens[0], one.tokens[2])
    assert right >= 20
    with pytest.raises(BadInput, match="name more files"):
        train_pointer([one for one in rows if one.tokens is None], seed=0)
