"""A manager trained by `memograd train memory-ops`, in service: numpy alone.

`observation` turns a decision into numbers, `network` turns them into probabilities, `files` keeps
the weights, `manager` decides; `versions` is a folder of heads of which one is current, and
`following` decides by that one.
"""
