"""The rows of the index: how keys, owners and search terms are written into Milvus, and no text.

Invariants: no text of a user ever enters a filter expression, only digests in hexadecimal; two rows
share a key only if layer, owner and id are the same; a term is found by itself and by nothing else,
in every script.

Terms come segmented, and Milvus must not segment them again. Milvus Lite has no whitespace
analyser, and the standard one differs between Lite and servers (one Chinese word, or its
characters). So each term is written as eight letters and digits of its SHA-256: one token for
every analyser. Milvus itself hashes tokens to 32 bits, fewer than these 40.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b32encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

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


def digest(text: str | None) -> str:
    """SHA-256 of an id in hexadecimal, "" for no id."""
    return "" if text is None else hashlib.sha256(text.encode("utf-8")).hexdigest()


def row_key(layer: str, owner: str, item_id: str) -> str:
    """The primary key; JSON is unambiguous, unlike joining with any separator."""
    return digest(json.dumps([layer, owner, item_id]))


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
    for field in ("agent_key", "run_key"):
        schema.add_field(field, DataType.VARCHAR, max_length=64)
    for field in ("owner", "item_id"):
        schema.add_field(field, DataType.VARCHAR, max_length=MAX_STRING_BYTES)
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
