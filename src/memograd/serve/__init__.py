"""`memograd serve`: a memory over HTTP, in one process on one port, without torch.

    request ─> HostCheck ─> BodyLimit ─> identity (key or session) ─> OwnedMemory ─> Memory
                                              │                            │
                                            keys                      access log

`app` makes the web application, `rest/` holds the routes, `mcp/` and `page/` are mounted beside
them. Whoever answers a request reads and writes through `OwnedMemory`, the memory as one key may
see it. Invariant: what a key may reach is decided by the key alone, never by what a request says.

Its modules are imported by their names: FastAPI arrives with `app`.
"""
