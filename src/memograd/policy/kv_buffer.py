"""Keys and values of one layer in a buffer with room to grow: decoding copies nothing.

Growing a cache by concatenation copies all of it at every token. Here a step writes into free
slots; only when these run out is the buffer enlarged by half.

Invariant: `update` returns everything written so far, in slot order, whatever the room.
"""

from __future__ import annotations

import torch
from transformers.cache_utils import DynamicLayer

from memograd.policy.slot_cache import KeysValues

ROOM = 256
"""Slots beyond the prompt that a buffer begins with."""


class KVBuffer(DynamicLayer):
    """One layer's cache: prompts in slots 0 to P - 1 (right padded), answers from P on."""

    def __init__(self, rows: int, prompt_slots: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._rows = rows
        self._used = prompt_slots
        self._keys_BHKD = torch.empty(0)
        self._values_BHKD = torch.empty(0)

    def place(
        self, row: int, keys_HTD: torch.Tensor, values_HTD: torch.Tensor, *, start: int = 0
    ) -> None:
        """Store keys and values of a row's prompt, or of a part of it, from slot `start` on."""
        if not self._keys_BHKD.numel():
            heads, _, size = keys_HTD.shape
            slots = self._used + ROOM
            self._keys_BHKD = keys_HTD.new_zeros((self._rows, heads, slots, size))
            self._values_BHKD = values_HTD.new_zeros(
                (self._rows, heads, slots, values_HTD.shape[2])
            )
        end = start + keys_HTD.shape[1]
        self._keys_BHKD[row, :, start:end] = keys_HTD
        self._values_BHKD[row, :, start:end] = values_HTD

    def slots(self, row: int, slots: torch.Tensor) -> KeysValues:
        """A copy of the given slots of a row."""
        return self._keys_BHKD[row, :, slots], self._values_BHKD[row, :, slots]

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
