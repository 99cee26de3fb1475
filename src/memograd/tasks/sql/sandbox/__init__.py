"""SQL that a model wrote, run where it can do no harm: read one database, briefly, and a little.

    Sandbox.run(sql) ──pipe──> a process that can be killed: check ─> execute ──> Result
     (`database`)                (`processes` keeps some warm; `worker` is what runs in them)

Fences, each enough against what the others may miss:

1. `check`: sqlglot must read the text as exactly one query, within a number of its parser's steps.
   What the query grows to, once every CTE, view and column stands for what it means, is bounded;
   SQLite would otherwise double its work with every level before it runs anything.
2. `worker`: the connection is read-only and immutable; an authorizer allows reading the tables and
   the functions in `FUNCTIONS`; SQLite's own limits bound values, patterns, program and heap; a
   count of SQLite's steps, the same on every machine, ends what runs on.
3. `functions`: no time of day, no zone; what may take long within one step counts as many.
4. The process itself: bounded memory, CPU time and files of 0 bytes, set by the kernel; and its
   owner ends it when the clock says so.

The counts come first, so that a run can be repeated to the bit. The clocks are the last resort, and
say so in the error. What goes wrong is a text in `Result.error`, for the model to read.

Invariant: whatever is run, the file's bytes stay the same; no statement holds up its caller for
more than `SqlLimits.wall_seconds` (and the start of a process), or takes memory of it beyond the
result (`tests/tasks/test_sql_attacks.py`).
"""

from memograd.tasks.sql.sandbox.database import Sandbox, Table, open_sandbox, run_cached
from memograd.tasks.sql.sandbox.result import Result, SqlLimits, Value

__all__ = ["Result", "Sandbox", "SqlLimits", "Table", "Value", "open_sandbox", "run_cached"]
