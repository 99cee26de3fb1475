"""The one life of a run, and what every task needs for it."""
