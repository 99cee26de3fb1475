"""The memory as a server of the Model Context Protocol, over stdio and at `/mcp`.

`server.py` runs it, `tools.py` holds what is offered, `recalled.py` marks what was remembered as
data. Invariant: whose memory it is comes from the key or from the settings, never from the model's
arguments.
"""
