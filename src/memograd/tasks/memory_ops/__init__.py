"""The task memory-ops: one statement, one memory, one operation; what was it worth later?

`material` reads and embeds life logs, `walk` goes through one, `delta_qa` rewards every operation
by the questions that come later.
"""
