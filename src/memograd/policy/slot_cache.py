"""Keys and values of rows of different lengths that come and go while others are decoded.

`KVBuffer` is for answers that begin together; here every row writes behind its own last token. The
live rows are always the first ones, so a step reads a slice and copies nothing; a row that leaves
is overwritten by the last row.

Invariant: row r holds exactly the keys and values of its own tokens, in order, whoever came or went
beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import Cache
from transformers.cache_utils import DynamicLayer

KeysValues = tuple[torch.Tensor, torch.Tensor]
"""Keys and values of one row in one layer, [H, T, D] each."""


class SlotLayer(DynamicLayer):
    """One layer's buffers [R, H, S, D]: `lengths[r]` slots of row r are in use."""

    def __init__(self, lengths: list[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._lengths = lengths  # shared by the layers of a cache, which alone changes it
        self._keys_RHSD = torch.empty(0, 0, 0, 0)
        self._values_RHSD = torch.empty(0, 0, 0, 0)

    def place(self, row: int, keys: torch.Tensor, values: torch.Tensor, room: int) -> None:
        """Store a row's keys and values [H, T, D], with room for `room` slots in all."""
        self._make_room(row + 1, max(room, keys.shape[1]), keys, values)
        self._keys_RHSD[row, :, : keys.shape[1]] = keys
        self._values_RHSD[row, :, : values.shape[1]] = values

    def row(self, row: int, length: int) -> KeysValues:
        """A copy of the first `length` slots of a row."""
        keys, values = self._keys_RHSD[row, :, :length], self._values_RHSD[row, :, :length]
        return keys.clone(), values.clone()

    def move(self, source: int, target: int) -> None:
        """Overwrite one row by another."""
        length = self._lengths[source]
        self._keys_RHSD[target, :, :length] = self._keys_RHSD[source, :, :length]
        self._values_RHSD[target, :, :length] = self._values_RHSD[source, :, :length]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> KeysValues:
        """Write one token a row behind its last; returns the live rows up to the longest."""
        live, longest = key_states.shape[0], max(self._lengths) + 1
        self._make_room(live, longest, key_states[0], value_states[0])
        rows = torch.arange(live, device=key_states.device)
        slots = torch.tensor(self._lengths, device=key_states.device)
        self._keys_RHSD[rows, :, slots] = key_states[:, :, 0]
        self._values_RHSD[rows, :, slots] = value_states[:, :, 0]
        return self._keys_RHSD[:live, :, :longest], self._values_RHSD[:live, :, :longest]

    def get_seq_length(self) -> int:
        """Slots of the longest row."""
        return max(self._lengths, default=0)

    def _make_room(self, rows: int, slots: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Enlarge the buffers by half where they are too small; `keys` shows heads, size, type."""
        had_rows, _, had_slots, _ = self._keys_RHSD.shape
        if rows <= had_rows and slots <= had_slots:
            return
        rows = had_rows if rows <= had_rows else max(rows, had_rows + had_rows // 2)
        slots = had_slots if slots <= had_slots else max(slots, had_slots + had_slots // 2)
        for name, like in (("_keys_RHSD", keys), ("_values_RHSD", values)):
            larger = like.new_zeros((rows, like.shape[0], slots, like.shape[2]))
            if had_rows:
                larger[:had_rows, :, :had_slots] = getattr(self, name)
            setattr(self, name, larger)


class SlotCache:
    """The layers of a model, and how long each row is."""

    def __init__(self, layers: int) -> None:
        self.lengths: list[int] = []
        self._layers = [SlotLayer(self.lengths) for _ in range(layers)]
        self.cache = Cache(layers=list(self._layers))

    def add(self, kept: Sequence[KeysValues], room: int) -> None:
        """A new last row with these keys and values a layer."""
        for layer, (keys, values) in zip(self._layers, kept, strict=True):
            layer.place(len(self.lengths), keys, values, room)
        self.lengths.append(kept[0][0].shape[1])

    def row(self, row: int, length: int) -> list[KeysValues]:
        """Copies of the first `length` slots of a row, a layer each."""
        return [layer.row(row, length) for layer in self._layers]

    def grown(self) -> None:
        """Every row has written one token."""
        self.lengths[:] = [length + 1 for length in self.lengths]

    def remove(self, row: int) -> None:
        """The last row takes the place of this one."""
        last = len(self.lengths) - 1
        if row != last:
            for layer in self._layers:
                layer.move(last, row)
            self.lengths[row] = self.lengths[last]
        self.lengths.pop()
