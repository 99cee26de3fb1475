"""The parts of `benchmarks/memory.py`.

`worker` drives one side (`ours`, `mem0`, `plain_numpy`) in a process of its own; `peers` starts and
talks to workers; `speed` and `quality` measure; `texts` and `stand_in` make what is remembered.
Files that a worker needs import neither memograd nor mem0 at their top, because each side's
interpreter has only one of them.
"""
