"""The command `memograd`: one verb a command, each a few lines over a function anyone can import.

Rooms above `config` are imported when a command runs, so that `--help` answers at once and never
loads torch. It holds no logic of its own: `training` is
over `memograd.tasks`, `memory` and `chat` over `memograd.memory` and `memograd.assistant`,
`memory_upkeep` over `memograd.memory.doctor`. `app` puts them together, `show` and `given` are what
they share: how results are printed, and how files and options are read.

Invariant: the exit code says whose turn it is: 0 done, 1 a failure, 2 the input is wrong (one
sentence on standard error), 130 interrupted. A bug keeps its traceback.
"""

from __future__ import annotations

from memograd.cli.app import main

__all__ = ["main"]
