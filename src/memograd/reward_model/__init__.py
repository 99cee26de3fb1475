"""Reward models: a language model with one number as its output, trained on which answer is better.

`model` opens the classifier and scores answers, `length` and `held_out` say how good it is and what
it owes to mere length. `server` (over `api`) answers scores by HTTP, and `reward` makes a model or
a server a reward function. Training, which needs TRL, is in `memograd.warm_start.reward_model`.

Nothing heavy is loaded here: import the files by name.
"""
