"""What chooses: the `Policy` protocol and the language model that fulfils it."""

from memograd.policy.protocol import Policy, SampledGroup

__all__ = ["Policy", "SampledGroup"]
