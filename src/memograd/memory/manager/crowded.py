"""How surely a message closes one of many items.

Among the memories of months some item always looks closed. In a row of twelve the model gives the
right one 0.6 and, when nothing is closed, a bystander as much. So the few that stand out are read
again alone, with what came before the message and without it, and sentence by sentence; and all
that is known of them (by how much they stand out, whether the model points at another value, which
words both share) is weighed by one linear function. It is fitted to written lives that the model
has not read (`tasks/relations/lives.py`).

Invariant: an item below `LEAST` in its row keeps what the row says, so what is weighed is at most
`MOST` items a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.memory.language import is_chinese
from memograd.memory.manager.counted import of_one_unit
from memograd.memory.manager.cues import ADDS, ADDS_SURELY, CORRECTS
from memograd.memory.manager.other_value import pointed_at
from memograd.memory.manager.past import parts_of, present, shared_content
from memograd.memory.manager.rewriting import closing_of_parts
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.sentences import split_sentences
from memograd.memory.records.items import MemoryItem

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel

LEAST: Final = 0.1  # of closing, in the row
MOST: Final = 5  # items of a message that are read again
SENTENCES: Final = 6  # of a message that are read alone: half of a day's talk hides what ends
EVIDENCE: Final = (
    "row", "alone", "bare", "part", "row_margin", "alone_margin", "points", "shared", "shares",
    "place", "recent", "assistant", "row_unrelated", "row_comment", "row_beside",
    "alone_unrelated", "alone_same", "alone_detail", "alone_comment", "alone_beside",
    "row_correct", "alone_correct", "row_end", "alone_end", "corrects", "corrects_recent", "adds",
    "adds_surely", "other_unit", "item_length", "message_length", "items", "chinese", "questions",
    "sentence",
)  # fmt: skip
"""What is known of an item, in the order of the function's weights."""
_IN_ROW: Final = ("unrelated", "comment", "beside", "correct", "end")
_ALONE: Final = ("unrelated", "same", "detail", "comment", "beside", "correct", "end")


def stand_out(closing: np.ndarray) -> list[int]:
    """The places of the items `[n]` that are weighed, the surest first."""
    order = np.argsort(-closing, kind="stable")[:MOST]
    return [int(n) for n in order if closing[n] >= LEAST]


def evidence(
    model: RelationModel,
    heard: Heard,
    items: Sequence[MemoryItem],
    recent: frozenset[str],
    found: np.ndarray,
    places: Sequence[int],
) -> np.ndarray:
    """float32 `[places, EVIDENCE]`: what is known of each of these items.

    found: `[items, RELATIONS]`, the probabilities of the row.
    """
    from memograd.memory.relations import CLOSING, RELATIONS

    closes = [RELATIONS.index(name) for name in CLOSING]
    of = {name: n for n, name in enumerate(RELATIONS)}
    texts = {n: present(items[n].text) for n in places}
    alone = {n: model.relate(heard.turn.text, heard.before, [texts[n]])[0] for n in places}
    bare = {n: model.relate(heard.turn.text, (), [texts[n]])[0] for n in places}
    closing = found[:, closes].sum(1)
    closing_alone = {n: float(alone[n][closes].sum()) for n in places}
    sentences = split_sentences(heard.own or heard.turn.text)[:SENTENCES]
    by_sentence = [
        model.relate(one, (), list(texts.values()))[:, closes].sum(1) for one in sentences if places
    ]
    surest = dict(zip(texts, np.max(by_sentence, axis=0), strict=True)) if by_sentence else {}
    corrects = CORRECTS.search(heard.own) is not None
    adds, surely = ADDS.search(heard.own) is not None, ADDS_SURELY.search(heard.own) is not None
    rows = []
    for n in places:
        item, text = items[n], texts[n]
        value = pointed_at(model, heard, text)
        shared = shared_content(text, heard.own)
        others = np.delete(closing, n)
        others_alone = [closing_alone[m] for m in places if m != n]
        part = closing_alone[n]
        if len(parts_of(text)) > 1:
            part = max(closing_of_parts(model, heard, item.text))
        known = {
            "row": log_odds(closing[n]),
            "alone": log_odds(closing_alone[n]),
            "bare": log_odds(bare[n][closes].sum()),
            "part": log_odds(part),
            "row_margin": closing[n] - others.max(initial=0.0),
            "alone_margin": closing_alone[n] - max(others_alone, default=0.0),
            "points": log_odds(value.sure if value else 0.0),
            "shared": min(shared, 4),
            "shares": shared > 0,
            "place": n,
            "recent": item.id in recent,
            "assistant": item.role == "assistant",
            **{f"row_{name}": log_odds(found[n][of[name]]) for name in _IN_ROW},
            **{f"alone_{name}": log_odds(alone[n][of[name]]) for name in _ALONE},
            "corrects": corrects,
            "corrects_recent": corrects and item.id in recent,
            "adds": adds,
            "adds_surely": surely,
            "other_unit": not of_one_unit(text, heard.own),
            "item_length": len(text) / 100,
            "message_length": min(len(heard.own), 400) / 100,
            "items": len(items) / 10,
            "chinese": is_chinese(text),
            "questions": heard.own.rstrip().endswith(("?", "？")),
            "sentence": log_odds(surest.get(n, 0.0)),
        }
        rows.append([known[name] for name in EVIDENCE])
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(EVIDENCE))


def log_odds(probability: float) -> float:
    """Natural, of a probability that is neither 0 nor 1: bounded at a thousandth."""
    sure = min(max(float(probability), 1e-3), 1 - 1e-3)
    return float(np.log(sure / (1 - sure)))
