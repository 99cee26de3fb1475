"""What happened: scenarios, turns, rollouts, groups, and the token tree that they share.

Knows neither tasks nor models. May import numpy and `memograd.errors`.
"""

from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Group, Message, Rollout, Scenario, Turn

__all__ = ["Group", "Message", "Rollout", "Scenario", "TokenTree", "Turn"]
