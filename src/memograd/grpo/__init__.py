"""The trainer: advantages, loss, optimisation, checkpoints, run folder.

It takes policies by their protocol and rewards by their signature.
"""

from memograd.grpo.run_folder import RunFolder

__all__ = ["RunFolder"]
