"""Keys and values of one layer in a buffer with room to grow: decoding copies nothing.

Growing a cache by concatenation copies all of it at every token. Here a step writes into free
slots; only when these run out is the buffer enlarged by half.

Invariant: `update` returns everything written so far, in slot order, whatever the room. Tested in
`tests/policy/test_sampler.py` (the cache that grows past its room). May import torch, transformers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers.cache_utils import DynamicLayer

ROOM = 256
"""Slots beyond the prompt that a buffer begins with."""


class KVBuffer(DynamicLayer):
    """One layer's cache: prompts in slots 0 to P - 1 (right padded), answers from P on."""

    def __init__(self, prompt_slots: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._prompt_slots = prompt_slots
        self._used = 0
        self._keys_BHKD = torch.empty(0)
        self._values_BHKD = torch.empty(0)

    def place(
        self, keys: torch.Tensor, values: torch.Tensor, rows: Sequence[int], batch: int
    ) -> None:
        """Store prefilled keys and values [b, H, P, D] as the given rows of a batch."""
        if self._used == 0:
            heads, slots = keys.shape[1], self._prompt_slots + ROOM
            self._keys_BHKD = keys.new_zeros((batch, heads, slots, keys.shape[3]))
            self._values_BHKD = values.new_zeros((batch, heads, slots, values.shape[3]))
            self._used = self._prompt_slots
        index = torch.tensor(rows, device=keys.device)
        self._keys_BHKD[index, :, : keys.shape[2]] = keys
        self._values_BHKD[index, :, : values.shape[2]] = values

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write one step's keys and values behind what is there; returns all of them."""
        end = self._used + key_states.shape[2]
        slots = self._keys_BHKD.shape[2]
        if end > slots:
            more = (0, 0, 0, max(end - slots, slots // 2))
            self._keys_BHKD = torch.nn.functional.pad(self._keys_BHKD, more)
            self._values_BHKD = torch.nn.functional.pad(self._values_BHKD, more)
        self._keys_BHKD[:, :, self._used : end] = key_states
        self._values_BHKD[:, :, self._used : end] = value_states
        self._used = end
        return self._keys_BHKD[:, :, :end], self._values_BHKD[:, :, :end]

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep only these rows of the batch."""
        self._keys_BHKD = self._keys_BHKD[indices]
        self._values_BHKD = self._values_BHKD[indices]

    def get_seq_length(self) -> int:
        """Slots in use."""
        return self._used
