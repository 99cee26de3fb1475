"""A manager trained by `memograd train memory-ops`, in service: numpy alone.

`observation` turns a decision into numbers, `network` turns them into probabilities, `files` keeps
the weights, `manager` decides: by one head, or by the current one of a folder of heads.
"""
