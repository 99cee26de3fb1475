"""What happened: scenarios, turns, rollouts, groups, the token tree that they share, and how
episodes of several turns are played.

A policy is whatever samples (`lockstep.Sampler`). The modules of multi-turn play (`episode`,
`lockstep`, `environment`,...) are imported by their names.
"""

from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Group, Message, Rollout, Scenario, Turn

__all__ = ["Group", "Message", "Rollout", "Scenario", "TokenTree", "Turn"]
