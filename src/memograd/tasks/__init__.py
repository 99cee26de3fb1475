"""What is practised: one folder a task, with its settings, scenarios, recipe and measures.

`base` is the life of a run that all of them share.
"""
