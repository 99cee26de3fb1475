"""Keys and values while answers are drawn: where they are written, and which of them are kept.

    KVBuffer       answers that begin together: every step writes into the next free slot
    SlotCache      rows of different lengths that come and go while others are decoded
    KeptPrefixes   what later prompts begin with: a turn goes on from the turn before it, an agent's
                   next call from its last one, and G attempts at one scenario begin alike
    TurnSampler    draws the actions of episodes with them

Growing a cache by concatenation copies all of it at every token. A buffer has room to grow, and is
enlarged by half only when there is none. In a `SlotCache` the live rows are always the first ones,
so a step reads a slice, and the place of a row that leaves is overwritten by the last row.

Invariants: what is read are the keys and values of the very tokens that were written, in their
order, whoever came or went beside them; what is kept for a prompt never holds its last token, whose
state predicts what follows. Whoever changes the weights must `clear` what is kept; `TurnSampler`
notices by itself that they have moved in place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from transformers import Cache
from transformers.cache_utils import DynamicLayer

from memograd.policy.protocol import SampledGroup

KeysValues = tuple[torch.Tensor, torch.Tensor]
"""Keys and values of one row in one layer, [H, T, D] each."""

ROOM = 256
"""Slots beyond the prompt that a buffer begins with."""

LEAST_SHARED = 8
"""Tokens that a prompt must share with a kept sequence before copying is worth it."""


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


@dataclass(frozen=True)
class Beginning:
    """Keys and values of a prompt's first `length` tokens, a layer each; of none if that is 0."""

    length: int
    keys_values: Sequence[KeysValues]


NOTHING = Beginning(0, ())


class KeptPrefixes:
    """Sequences with their keys and values, at most `limit` tokens in all; the oldest make room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[int, ...], tuple[np.ndarray, Sequence[KeysValues]]]
        self._kept = OrderedDict()

    @property
    def tokens(self) -> int:
        """How many tokens are held."""
        return sum(map(len, self._kept))

    def keep(self, ids: Sequence[int], keys_values: Sequence[KeysValues]) -> None:
        """Remember a sequence, unless it alone is over the limit or another one begins with it."""
        key, array = tuple(ids), np.asarray(ids)
        if len(key) > self._limit:
            return
        shared = {kept: common(own, array) for kept, (own, _) in self._kept.items()}
        if len(key) in shared.values():
            return
        for kept, length in shared.items():
            if length == len(kept):
                del self._kept[kept]  # the new one begins with it
        self._kept[key] = (array, keys_values)
        while self.tokens > self._limit:
            self._kept.popitem(last=False)

    def longest(self, prompt: Sequence[int]) -> Beginning:
        """The longest beginning of `prompt` that is kept, without its last token."""
        array = np.asarray(prompt)
        best, source = 0, None
        for kept, (own, _) in self._kept.items():
            length = common(own, array)
            if length > best:
                best, source = length, kept
        length = min(best, len(prompt) - 1)
        if source is None or length < LEAST_SHARED:
            return NOTHING
        self._kept.move_to_end(source)
        return Beginning(
            length,
            [(keys[:, :length], values[:, :length]) for keys, values in self._kept[source][1]],
        )

    def clear(self) -> None:
        """Forget all sequences."""
        self._kept.clear()


def common(one: np.ndarray, other: np.ndarray) -> int:
    """How many tokens two sequences begin with in common."""
    length = min(len(one), len(other))
    differ = one[:length] != other[:length]
    return int(differ.argmax()) if differ.any() else length


TURN_TOKENS = {"cpu": 32_768, "cuda": 65_536, "mps": 16_384}
"""Tokens of all live episodes whose keys and values are kept between two turns, by device."""


class Draws(Protocol):
    """A policy that can go on from keys and values that are kept."""

    def weights_version(self) -> tuple[int, ...]:
        """Differs from what it was if a weight has moved."""
        ...

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None = None,
        kept: KeptPrefixes | None = None,
    ) -> list[SampledGroup]:
        """Draw answers."""
        ...


class TurnSampler:
    """`ModelPolicy.sample` with a memory from one call to the next, of at most `tokens` tokens;
    fulfils `memograd.rollout.lockstep.Sampler`.

    The prompt of an episode's next turn is the tokens of the turn before it and a new observation.
    So their keys and values stay, and only the new tokens are run: the last action's last token,
    which was drawn and never run, and the observation.

        turn 1   [prompt: run once for the group] action
        turn 2   [kept ............................... ] observation, action

    One serves one batch of episodes, as `memograd.rollout.lockstep` plays them. It keeps what the
    last call drew: an episode that was not in the next call is over, and an episode that starts a
    new row finds of its old one just what the new one begins with. Where there is no room, the
    prompt is run anew; `Turn.reused_tokens` says of every turn what was spared. What is drawn, and
    its log-probabilities, is what `ModelPolicy.sample` would draw, to rounding.
    """

    def __init__(self, policy: Draws, tokens: int) -> None:
        self._policy = policy
        self._kept = KeptPrefixes(tokens)
        self._versions: tuple[int, ...] = ()

    @property
    def kept_tokens(self) -> int:
        """Tokens whose keys and values are held at the moment."""
        return self._kept.tokens

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None,
    ) -> list[SampledGroup]:
        """Draw answers; raises what `ModelPolicy.sample` raises."""
        versions = self._policy.weights_version()
        if versions != self._versions:
            self._kept.clear()
            self._versions = versions
        return self._policy.sample(
            prompts,
            num_generations=num_generations,
            temperature=temperature,
            max_completion_length=max_completion_length,
            generator=generator,
            kept=self._kept,
        )
