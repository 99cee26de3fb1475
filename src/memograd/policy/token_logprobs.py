"""From hidden states to log-probabilities and values, only where a token needs one, in chunks.

A vocabulary has tens of thousands of entries, so the logits of a whole batch would be the largest
tensor of a step. Only the states that predict an answer token go through the output layer; more
than `CHUNK` of them go in pieces whose logits are recomputed in the backward pass instead of being
kept. So the token tree needs the two halves of a model apart, `body_of` and `head_of`:
`head(body(ids))` must be its logits; `memograd.policy.forward_choice` checks that for each run, and
`tests/policy/test_verify.py` that it notices. A `ValueHead` reads the same states.

Where an answer is held to a grammar, a `Constraint` says token after token what may come next; the
sampler draws from softmax(logits / temperature) over the allowed tokens and keeps the masks, and
what is computed here uses the same masks.

Invariants: the chunk size changes neither values nor gradients beyond float rounding; under the
weights that drew an answer its log-probabilities are the drawn ones, grammar or none, so the ratio
of on-policy learning is 1; a value head that was saved and loaded gives the same values to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.utils.checkpoint import checkpoint

from memograd.errors import BadInput
from memograd.rollout.types import TokenMask

if TYPE_CHECKING:
    from transformers import PreTrainedModel


CHUNK = 512
"""States a chunk: 512 x 49,152 fp32 logits are 100 MB."""

VALUE_HEAD_FILE = "value_head.safetensors"
"""Its place in a checkpoint, beside the adapter."""


@dataclass(frozen=True)
class BranchLogprobs:
    """Scores of R branches padded to T tokens.

    `logprobs_RT` natural logs of the answer tokens; `entropies_RT` in nats, of the distribution
    each token was drawn from; `mask_RT` bool, True where a token of the policy's own is: padding
    and observations are False. `values_RT`, of a policy with a value head: what the rollout was
    expected to earn from before each token on. Numbers off the mask are 0.
    """

    logprobs_RT: torch.Tensor
    entropies_RT: torch.Tensor
    mask_RT: torch.Tensor
    values_RT: torch.Tensor | None = None


def token_logprobs(
    hidden_MD: torch.Tensor,
    head: Callable[[torch.Tensor], torch.Tensor],
    rows_N: torch.Tensor,
    tokens_N: torch.Tensor,
    *,
    temperature: float,
    entropy_gradient: bool,
    allowed: Sequence[TokenMask | None] = (),
    chunk: int = CHUNK,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each of N tokens, and the entropy at each of M states.

    Token n is predicted by state `rows_N[n]`; several tokens may share a state. `head` maps states
    to logits. Returns `logprobs_N` and `entropies_M`, fp32, under softmax(logits / temperature),
    over the tokens that `allowed` names for each state where it is given.
    """

    def score(
        hidden: torch.Tensor,
        rows: torch.Tensor,
        tokens: torch.Tensor,
        masks: Sequence[TokenMask | None],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = restricted(head(hidden).float() / temperature, masks)
        all_logprobs = torch.log_softmax(scores, dim=-1)
        with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
            entropies = -(all_logprobs.exp() * all_logprobs).sum(-1)
        return all_logprobs[rows, tokens], entropies

    states = hidden_MD.shape[0]
    if states <= chunk:
        return score(hidden_MD, rows_N, tokens_N, allowed)
    logprobs, order, entropies = [], [], []
    for start in range(0, states, chunk):
        chosen = torch.nonzero((rows_N >= start) & (rows_N < start + chunk)).flatten()
        arguments = (
            hidden_MD[start : start + chunk],
            rows_N[chosen] - start,
            tokens_N[chosen],
            allowed[start : start + chunk],
        )
        if torch.is_grad_enabled():
            logprob, entropy = checkpoint(score, *arguments, use_reentrant=False)
        else:
            logprob, entropy = score(*arguments)
        logprobs.append(logprob)
        order.append(chosen)
        entropies.append(entropy)
    position_N = torch.argsort(torch.cat(order))
    return torch.cat(logprobs)[position_N], torch.cat(entropies)


class Constraint(Protocol):
    """Where an answer stands in its grammar."""

    def fork(self) -> Constraint:
        """An answer of its own, from here on."""
        ...

    def allowed(self) -> TokenMask | None:
        """The tokens that may come next; None: all. Raises MemogradError where that is not
        known."""
        ...

    def advance(self, token: int) -> None:
        """This token has come."""
        ...


def restricted(scores_NV: torch.Tensor, masks: Sequence[TokenMask | None]) -> torch.Tensor:
    """The scores with those of forbidden tokens so low that their probability is 0; row n is held
    to `masks[n]`. Not minus infinity: an entropy multiplies it by 0."""
    held = [row for row, mask in enumerate(masks) if mask is not None]
    if not held:
        return scores_NV
    size = scores_NV.shape[-1]
    forbidden = np.ones((len(held), size), dtype=bool)
    for line, row in enumerate(held):
        bits = np.frombuffer(masks[row] or b"", dtype=np.uint8)
        known = np.unpackbits(bits, bitorder="little", count=min(size, 8 * len(bits)))
        forbidden[line, : len(known)] = known == 0
    rows = torch.tensor(held, device=scores_NV.device)
    lowest = torch.finfo(scores_NV.dtype).min
    mask_HV = torch.from_numpy(forbidden).to(scores_NV.device)
    return scores_NV.index_copy(0, rows, scores_NV[rows].masked_fill(mask_HV, lowest))


def body_of(model: PreTrainedModel) -> Callable[..., Any]:
    """The decoder: token ids to hidden states, with a cache of keys and values."""
    body: Callable[..., Any] = model.get_decoder()
    return body


def head_of(model: PreTrainedModel) -> Callable[[torch.Tensor], torch.Tensor]:
    """The output layer: hidden states to logits. Raises `BadInput` if the model has none."""
    head = model.get_output_embeddings()
    if head is None:
        raise BadInput(
            f"{type(model).__name__} has no output layer over the vocabulary, so it cannot answer; "
            "use a causal language model"
        )
    layer: Callable[[torch.Tensor], torch.Tensor] = head
    return layer


class ValueHead(torch.nn.Module):
    """What a rollout will still earn, said from the state before each token: hidden states [..., D]
    to values [...], in fp32 whatever the model computes in.

    One linear layer on the very state that predicts the token: no second model, no second forward.
    It begins at zero, so that it expects nothing, draws nothing at random, and at first pulls at no
    weight but its own.
    """

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
                folder / VALUE_HEAD_FILE,
            )
        except SafetensorError as error:
            raise OSError(f"the value head: {error}") from error

    def load(self, folder: Path) -> None:
        """Take over the weights in `folder`; raises `BadInput` if they are not this model's."""
        try:
            self.load_state_dict(load_file(folder / VALUE_HEAD_FILE))
        except (OSError, RuntimeError, SafetensorError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise BadInput(
                f"{folder / VALUE_HEAD_FILE} is no value head of this model ({reason})"
            ) from error
