"""The rows of the index: what events leave in it, how they are written, how hits are merged.

No text of a user is stored in Milvus or enters a filter expression, only digests in hexadecimal.
Terms come segmented, and Milvus must not segment them again. Milvus Lite has no whitespace
analyser, and the standard one differs between Lite and servers (one Chinese word, or its
characters). So each term is written as eight letters and digits of its SHA-256: one token for every
analyser. Milvus itself hashes tokens to 32 bits, fewer than these 40. Scores of the two lists that
a search gives cannot be compared (Lite's BM25 is negative, and counted file by file), so only ranks
are.

Invariants: two rows share a key only if layer, owner and id are the same; a term is found by itself
and by nothing else, in every script; applying a batch of events at once, or one by one, or either
of them twice, leaves the same rows; equal scores rank by age, whatever file they came from.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b32encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from memograd.memory.records.events import RECORDS, Event, EventKind
from memograd.memory.records.turns import RawTurn
from memograd.memory.text_caches import of_texts

if TYPE_CHECKING:
    from pymilvus import MilvusClient

SCHEMA_VERSION: Final = 1
MAX_STRING_BYTES: Final = 65_535  # Milvus' limit for one VARCHAR value
MAX_HITS: Final = 16_384  # Milvus' limit for one search
OWNERS_PER_FILTER: Final = 1_000  # 67 kB of expression
TOKEN_LETTERS: Final = 8
MAX_TERMS: Final = MAX_STRING_BYTES // (TOKEN_LETTERS + 1)
META_LAYER: Final = "meta"
META_KEY: Final = hashlib.sha256(b"memograd").hexdigest()
FIELDS: Final = frozenset(
    {
        *("key", "layer", "owner_key", "agent_key", "run_key", "owner", "item_id", "seq"),
        *("vector", "terms", "lexical"),
    }
)
SCORE_NOISE: Final = 1e-6
RRF_K: Final = 20  # as in `search/retriever.py`
Layer = Literal["item", "turn"]


def create_collection(
    client: MilvusClient, collection: str, *, dimension: int, partitioned: bool
) -> None:
    """Create the collection, loaded and ready.

    partitioned: by owner, which speeds up servers. In Milvus Lite it would only multiply the files.
    """
    from pymilvus import DataType, Function, FunctionType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("key", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("layer", DataType.VARCHAR, max_length=8)
    schema.add_field("owner_key", DataType.VARCHAR, max_length=64, is_partition_key=partitioned)
    for key in ("agent_key", "run_key"):
        schema.add_field(key, DataType.VARCHAR, max_length=64)
    for key in ("owner", "item_id"):
        schema.add_field(key, DataType.VARCHAR, max_length=MAX_STRING_BYTES)
    schema.add_field("seq", DataType.INT64)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    schema.add_field(
        "terms",
        DataType.VARCHAR,
        max_length=MAX_STRING_BYTES,
        enable_analyzer=True,
        analyzer_params={"tokenizer": "standard"},
    )
    schema.add_field("lexical", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(
        Function(
            name="bm25",
            function_type=FunctionType.BM25,
            input_field_names=["terms"],
            output_field_names=["lexical"],
        )
    )
    index = client.prepare_index_params()
    index.add_index("vector", index_type="FLAT", metric_type="COSINE")
    index.add_index(
        "lexical",
        index_type="SPARSE_INVERTED_INDEX",
        metric_type="BM25",
        params={"bm25_k1": 1.2, "bm25_b": 0.75},
    )
    client.create_collection(
        collection, schema=schema, index_params=index, consistency_level="Strong"
    )


def digest(text: str | None) -> str:
    """SHA-256 of an id in hexadecimal, "" for no id."""
    return "" if text is None else hashlib.sha256(text.encode("utf-8")).hexdigest()


def row_key(layer: str, owner: str, item_id: str) -> str:
    """The primary key; JSON is unambiguous, unlike joining with any separator."""
    return digest(json.dumps([layer, owner, item_id]))


@of_texts
@lru_cache(maxsize=100_000)
def token(term: str) -> str:
    """The term as one word of eight letters and digits."""
    digest_5 = hashlib.sha256(term.encode("utf-8")).digest()[:5]
    return b32encode(digest_5).decode("ascii").lower()


def encode_terms(terms: Sequence[str]) -> str:
    """The first 7,281 terms as tokens: what fits in one value; longer texts are found by these."""
    return " ".join(token(term) for term in terms[:MAX_TERMS])


def filters(
    layer: str,
    owner_keys: Sequence[str] | None,
    agent_key: str | None,
    run_key: str | None,
) -> Iterator[str]:
    """The expressions whose results together are the rows asked for; several for many owners."""
    conditions = [f'layer == "{layer}"']
    if agent_key is not None:
        conditions.append(f'agent_key == "{agent_key}"')
    if run_key is not None:
        conditions.append(f'run_key == "{run_key}"')
    if owner_keys is None:
        yield " and ".join(conditions)
        return
    for start in range(0, len(owner_keys), OWNERS_PER_FILTER):
        yield " and ".join(
            [*conditions, one_of("owner_key", owner_keys[start : start + OWNERS_PER_FILTER])]
        )


def one_of(field: str, digests: Sequence[str]) -> str:
    """`field in ["..."]`."""
    return f"{field} in {json.dumps(list(digests))}"


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One searchable item or turn. seq: the event that gave it its present form."""

    key: str
    layer: Layer
    owner: str
    agent_id: str | None
    run_id: str | None
    item_id: str
    seq: int
    text: str

    def digests(self) -> dict[str, str]:
        """The fields that filters may name."""
        return {
            "owner_key": digest(self.owner),
            "agent_key": digest(self.agent_id),
            "run_key": digest(self.run_id),
        }


@dataclass(slots=True)
class Effects:
    """Do these in order: remove all rows of `owners`, remove the rows of `removed`, write `rows`.

    removed: key to the sequence number of the event that removed it. purged_at: sequence number of
    the last PURGE, 0 without one.
    """

    owners: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    rows: dict[str, IndexRow] = field(default_factory=dict)
    purged_at: int = 0


def fold(events: Iterable[Event]) -> Effects:
    """The effects of events that stand in the order of their sequence numbers."""
    effects = Effects()
    for event in events:
        owner = event.scope.owner
        if event.kind is EventKind.PURGE:
            effects.purged_at = event.seq
            if event.subject == owner:
                _forget_owner(effects, owner, event.seq)
            else:
                _remove(effects, row_key("item", owner, event.subject), event.seq)
                _remove(effects, row_key("turn", owner, event.subject), event.seq)
        elif event.erased or event.kind in RECORDS:
            continue
        elif event.kind is EventKind.DELETE:
            _remove(effects, row_key("item", owner, event.subject), event.seq)
        elif event.kind is EventKind.FORGET:
            _remove(effects, row_key("turn", owner, event.subject), event.seq)
        else:
            row = _row(event, event.after or {})
            if row is not None:
                effects.rows[row.key] = row
                effects.removed.pop(row.key, None)
    return effects


def _row(event: Event, after: Mapping[str, Any]) -> IndexRow | None:
    """The row that a TURN, ADD or UPDATE leaves; None for a turn that an item repeats verbatim."""
    layer: Layer = "item"
    if event.kind is EventKind.TURN:
        if after.get("verbatim") is True:
            return None
        layer, text = "turn", RawTurn.from_json(after["turn"]).index_text()
    else:
        text = after["text"]
    scope = event.scope
    key = row_key(layer, scope.owner, event.subject)
    return IndexRow(
        key, layer, scope.owner, scope.agent_id, scope.run_id, event.subject, event.seq, text
    )


def _remove(effects: Effects, key: str, seq: int) -> None:
    effects.rows.pop(key, None)
    effects.removed[key] = seq


def _forget_owner(effects: Effects, owner: str, seq: int) -> None:
    for key in [key for key, row in effects.rows.items() if row.owner == owner]:
        del effects.rows[key]
    effects.owners[digest(owner)] = seq


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A row that a search found: whose it is, its id, and its places in the two lists.

    Ranks start at 1 and are None where the list does not hold the row. similarity: cosine, None
    without a dense rank.
    """

    owner: str
    id: str
    dense_rank: int | None
    similarity: float | None
    lexical_rank: int | None

    @property
    def fused(self) -> float:
        """Reciprocal rank fusion: the sum of 1 / (20 + rank) over the lists that hold the row."""
        ranks = (self.dense_rank, self.lexical_rank)
        return sum(1.0 / (RRF_K + rank) for rank in ranks if rank is not None)


def merged(
    dense: Sequence[tuple[float, dict[str, Any]]], lexical: Sequence[tuple[float, dict[str, Any]]]
) -> list[IndexHit]:
    """One hit a row, best fused rank first; equals in the order of the dense list."""
    ids = [(row["owner"], row["item_id"]) for _, row in dense]
    dense_ranks = {place: rank for rank, place in enumerate(ids, start=1)}
    similarities = {place: score for place, (score, _) in zip(ids, dense, strict=True)}
    lexical_ranks = {
        (row["owner"], row["item_id"]): rank for rank, (_, row) in enumerate(lexical, start=1)
    }
    hits = [
        IndexHit(*place, dense_ranks.get(place), similarities.get(place), lexical_ranks.get(place))
        for place in dense_ranks | lexical_ranks
    ]
    return sorted(hits, key=lambda hit: -hit.fused)


def score(field: str, distance: float) -> float:
    """The higher the better, on servers and in Lite, whose BM25 distances are negative."""
    return distance if field == "vector" else abs(distance)


def ordered(scored: Sequence[tuple[float, dict[str, Any]]]) -> list[tuple[float, dict[str, Any]]]:
    """Best first, equal scores by age: the same text scores float noise apart in another file."""
    falling = sorted(scored, key=lambda pair: -pair[0])
    keyed = []
    group, previous = 0, float("inf")
    for score, row in falling:
        group += previous - score > SCORE_NOISE
        keyed.append((group, row["seq"], score, row))
        previous = score
    return [(score, row) for _, _, score, row in sorted(keyed, key=lambda entry: entry[:2])]
