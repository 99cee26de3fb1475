"""The REST interface: mem0's own routes, those that mem0's client calls, and ours.

Every route is a few lines over `OwnedMemory`. Invariant: the same request means the same on every
version of a path.
"""
