"""The living memory of one owner: exact search in process, forks in no time."""

from memograd.memory.state.corpus import Corpus, Eligible, Ranked
from memograd.memory.state.memory_state import Lookup, LookupMany, MemoryState

__all__ = ["Corpus", "Eligible", "Lookup", "LookupMany", "MemoryState", "Ranked"]
