"""memograd inside other frameworks: one file an adapter, each over `Memory` and an extra.

An adapter is imported by its own name, as in `from memograd.integrations.langgraph import
LangGraphStore`, and is the only place that imports its framework. `shelf.py` is what those that
keep documents by name share. Invariants: an adapter sees one owner's memory and nobody else's, and
what it keeps is in the journal, so `as_of`, history and purge work on it.
"""
