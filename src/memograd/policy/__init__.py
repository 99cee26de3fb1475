"""What chooses: the `Policy` protocol and the language model that fulfils it.

May import `memograd.rollout`, `memograd.config`, `memograd.errors`; torch, transformers and peft
only inside its modules, which are imported on first use, so that `import memograd.policy` stays
light.
"""

from memograd.policy.protocol import Policy, SampledGroup

__all__ = ["Policy", "SampledGroup"]
