"""`ValueHead`: what a rollout will still earn, said from the state before each token.

One linear layer on the last hidden state of the policy's own body, the very state that predicts the
token: no second model, no second forward. It begins at zero, so that it expects nothing, draws
nothing at random, and at first pulls at no weight but its own.

Invariant: a head that was saved and loaded gives the same values to the bit.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from memograd.errors import BadInput

FILE = "value_head.safetensors"
"""Its place in a checkpoint, beside the adapter."""


class ValueHead(torch.nn.Module):
    """Hidden states [..., D] to values [...], in fp32 whatever the model computes in."""

    def __init__(self, hidden_size: int, device: torch.device) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(hidden_size, 1, device=device, dtype=torch.float32)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """The value of every state."""
        values: torch.Tensor = self.linear(hidden.float())
        return values[..., 0]

    def save(self, folder: Path) -> None:
        """Write the weights into `folder`; raises `OSError` where that fails."""
        try:
            save_file(
                {name: weight.contiguous() for name, weight in self.state_dict().items()},
                folder / FILE,
            )
        except SafetensorError as error:
            raise OSError(f"the value head: {error}") from error

    def load(self, folder: Path) -> None:
        """Take over the weights in `folder`; raises `BadInput` if they are not this model's."""
        try:
            self.load_state_dict(load_file(folder / FILE))
        except (OSError, RuntimeError, SafetensorError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise BadInput(f"{folder / FILE} is no value head of this model ({reason})") from error
