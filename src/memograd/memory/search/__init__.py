"""From a query to what answers it, and from that to the text in a prompt.

`retrieve` ranks the records of a corpus by meaning and by words and fuses both, weighs them by age
and may let a model read the best of them again (`rerank`). `turns_behind` finds the raw turns
behind the items found. `build_context` writes it all down within a token budget. Every hit says why
it is there.
"""

from memograd.memory.search.behind import turns_behind
from memograd.memory.search.context import Context, build_context
from memograd.memory.search.hits import Hit, Mode, Query, Why
from memograd.memory.search.rerank import CrossEncoderReranker, Reranker
from memograd.memory.search.retriever import DEPTH_PER_RESULT, Weighing, retrieve

__all__ = [
    "DEPTH_PER_RESULT",
    "Context",
    "CrossEncoderReranker",
    "Hit",
    "Mode",
    "Query",
    "Reranker",
    "Weighing",
    "Why",
    "build_context",
    "retrieve",
    "turns_behind",
]
