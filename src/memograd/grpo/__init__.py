"""The trainer: advantages, loss, optimisation, checkpoints, run folder.

Knows neither tasks nor models: policies by their protocol, rewards by their signature.
"""

from memograd.grpo.run_folder import RunFolder

__all__ = ["RunFolder"]
