"""What is known of a part of a memory that a request to forget may mean.

A request is read by the relation model with every part of the items near it ("User rents in
Leeds"), with what came before it and alone, with the whole items, and clause by clause; where the
model has a second reading (`memory/relations/second.py`), by that, too. Beside it stands what needs
no model: which words a part shares with the clauses that ask and with those that say what is to
stay, where it stands, whether it was just said.

Invariants: pure functions of the request, the items and the weights; a row has one number for each
name of `names_of_requests`, in their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.memory.manager.crowded import log_odds
from memograd.memory.manager.left_over import ALL_OF_IT, THE_PAST
from memograd.memory.manager.past import (
    not_present,
    parts_of,
    present,
    with_subject,
    words_of,
)
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import MAY_ASK, says_what_stays
from memograd.memory.records.items import MemoryItem

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel

CLAUSES: Final = 8  # of a request that are read alone
REQUEST_EVIDENCE: Final = (
    "item_before", "item_alone", "part_before", "part_alone", "margin_in_item", "margin_before",
    "margin_alone", "clause", "clause_margin", "clause_of_what_stays", "words_asked",
    "words_to_stay", "recent", "share_recent", "all_of_it", "of_surest_item", "place", "parts",
    "items", "asks_surely", "says_what_stays",
)  # fmt: skip
"""What is known of a part of an item, in the order of the function's weights."""
SECOND_OF_REQUESTS: Final = (
    "second_before", "second_alone", "second_margin", "second_clause", "second_clause_margin",
)  # fmt: skip
"""What the second reading says of it: with what came before the request and alone, by how much
more than of any other part, and of the clauses that ask."""
_CLAUSE: Final = re.compile(
    r"(?<=[.;!?])\s+|,\s+|[，。；！？：,]|(?<=[\u4e00-\u9fff])\s+|\s+[-–—]+\s+"
    r"|\s+(?=(?:because|'?cause|cos|so that|in case|before|but|except)\b)|(?=但)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Part:
    """A part of the item at `item`, at `place` of its `among` parts."""

    item: int
    place: int
    among: int
    text: str


def names_of_requests(model: RelationModel) -> tuple[str, ...]:
    """The names of what this model knows of a part."""
    return (*REQUEST_EVIDENCE, *SECOND_OF_REQUESTS) if model.reads_twice else REQUEST_EVIDENCE


def parts_of_items(items: Sequence[MemoryItem]) -> list[Part]:
    """Of the present of each item, and then what each tells of the past."""
    parts = []
    for n, item in enumerate(items):
        texts = parts_of(present(item.text))
        parts += [
            Part(n, place, len(texts), with_subject(item.text, text))
            for place, (text, _) in enumerate(texts)
        ]
    return parts + [
        Part(n, THE_PAST, 1, past)
        for n, item in enumerate(items)
        if (past := not_present(item.text))
    ]


def request_evidence(
    model: RelationModel,
    heard: Heard,
    items: Sequence[MemoryItem],
    parts: Sequence[Part],
    recent: frozenset[str],
) -> np.ndarray:
    """float32 `[parts, names_of_requests(model)]`: what is known of each part."""
    from memograd.memory.relations import CLOSING, RELATIONS

    closing = [RELATIONS.index(name) for name in CLOSING]
    own = heard.own or heard.turn.text

    def read(message: str, before: Sequence[tuple[str, str]], texts: Sequence[str]) -> np.ndarray:
        found: np.ndarray = model.relate(message, before, texts)[:, closing].sum(1)
        return found

    texts = [part.text for part in parts]
    wholes = [present(item.text) for item in items]
    part_before, part_alone = (read(heard.turn.text, b, texts) for b in (heard.before, ()))
    item_before, item_alone = (read(heard.turn.text, b, wholes) for b in (heard.before, ()))
    clauses = clauses_of(own)
    by_clause = np.stack([read(one, (), texts) for one in clauses])
    stays = np.array([says_what_stays(one) for one in clauses])
    asks = np.array([MAY_ASK.search(one) is not None for one in clauses]) & ~stays
    words = [words_of(text) for text in texts]
    asked, kept = (_words_shared(clauses, chosen, words) for chosen in (asks, stays))
    of_asking = by_clause[asks].max(0, initial=0.0)
    told_now = [items[n].id in recent for n in range(len(items))]
    surest = int(np.argmax(item_before + item_alone))
    rows = []
    for n, part in enumerate(parts):
        first = n - max(part.place, 0)
        here = slice(first, first + part.among)  # the parts of its item
        known = {
            "item_before": log_odds(item_before[part.item]),
            "item_alone": log_odds(item_alone[part.item]),
            "part_before": log_odds(part_before[n]),
            "part_alone": log_odds(part_alone[n]),
            "margin_in_item": _margin(part_before[here], n - here.start)
            + _margin(part_alone[here], n - here.start),
            "margin_before": _margin(part_before, n),
            "margin_alone": _margin(part_alone, n),
            "clause": log_odds(by_clause[:, n].max()),
            "clause_margin": _margin(of_asking, n),
            "clause_of_what_stays": log_odds(by_clause[stays, n].max(initial=0.0)),
            "words_asked": asked[n],
            "words_to_stay": kept[n],
            "recent": told_now[part.item],
            "share_recent": np.mean(told_now),
            "all_of_it": ALL_OF_IT.search(own) is not None,
            "of_surest_item": part.item == surest,
            "place": min(max(part.place, 0), 3),
            "parts": min(part.among, 6),
            "items": np.log(len(items)),
            "asks_surely": not heard.perhaps,
            "says_what_stays": stays.any(),
        }
        if part.place == THE_PAST:  # of which the item by itself says nothing
            known["item_before"], known["item_alone"] = (
                log_odds(one[n]) for one in (part_before, part_alone)
            )
        rows.append([known[name] for name in REQUEST_EVIDENCE])
    first = np.array(rows, dtype=np.float32).reshape(len(rows), len(REQUEST_EVIDENCE))
    if not model.reads_twice:
        return first
    asking = [one for one, is_asking in zip(clauses, asks, strict=True) if is_asking]
    return np.concatenate([first, _read_again(model, heard, texts, asking)], axis=1)


def _read_again(
    model: RelationModel, heard: Heard, texts: Sequence[str], asking: Sequence[str]
) -> np.ndarray:
    """float32 `[texts, SECOND_OF_REQUESTS]`: what the second reading says of each part."""
    from memograd.memory.relations.second import MOST

    before, alone = (model.closes(heard.turn.text, b, texts) for b in (heard.before, ()))
    clauses = [model.closes(one, (), texts) for one in asking if one != heard.turn.text] or [alone]
    clause = np.max(clauses, axis=0)
    both = (before + alone) / 2
    margins = [[_margin(odds, n, -MOST) for n in range(len(texts))] for odds in (both, clause)]
    return np.stack([before, alone, margins[0], clause, margins[1]], axis=1).astype(np.float32)


def clauses_of(own: str) -> list[str]:
    """The clauses of a request that are read: of a long message those that ask, or say what is to
    stay, go first."""
    found = [one.strip() for one in _CLAUSE.split(own) if one and re.search(r"\w", one)]
    found.sort(key=lambda one: not (MAY_ASK.search(one) or says_what_stays(one)))
    return found[:CLAUSES] or [own]


def _words_shared(
    clauses: Sequence[str], chosen: np.ndarray, words: Sequence[frozenset[str]]
) -> list[float]:
    """How many words each part shares with the chosen clauses, at most 2; one that many parts have
    counts less."""
    said = frozenset().union(
        *(words_of(one) for one, is_chosen in zip(clauses, chosen, strict=True) if is_chosen)
    )
    having = Counter(word for one in words for word in one)
    return [min(sum(1 / having[word] for word in said & one), 2.0) for one in words]


def _margin(sure: np.ndarray, n: int, least: float = 0.0) -> float:
    """By how much one is surer than every other; 0 where there is no other. least: of all."""
    return 0.0 if len(sure) == 1 else float(sure[n] - np.delete(sure, n).max(initial=least))
