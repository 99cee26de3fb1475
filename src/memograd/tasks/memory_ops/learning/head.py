"""`OperationHead`: the small policy over memory operations, as torch trains it.

The same function as `memograd.memory.manager.trained.network` (its docstring has the architecture),
with gradients, a value of the state for PPO, and normalisation of the features fitted once on the
first decisions that are seen. Logits are read as unnormalised log-probabilities by policy gradients
and as action values by Q-learning.

Invariants: numpy and torch agree to float rounding; actions that are not allowed have probability
zero and never a gradient; the order of the items does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.network import NORM_EPSILON, Batch, Shape
from memograd.memory.manager.trained.observation import FACT_FEATURES, PAIR_FEATURES

LEAST_STD = 0.05


class Network(nn.Module):
    """What can be trained and put in service: maps a `Batch` to logits [B, actions], -inf where not
    allowed, and the value of each state [B]."""

    def trained(self, embedder: str, about: Mapping[str, Any]) -> TrainedHead:
        """The head that decides as this network does, as a running memory loads it."""
        raise NotImplementedError(f"{type(self).__name__} says by `trained` which head it is")


class OperationHead(Network):
    """A Transformer over one fact and its related items; see the module's docstring."""

    def __init__(self, shape: Shape, *, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        width = shape.width
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.fact = nn.Linear(shape.dimension, width)
            self.fact_features = nn.Linear(len(FACT_FEATURES), width)
            self.item = nn.Linear(2 * shape.dimension, width)
            self.pair = nn.Linear(len(PAIR_FEATURES), width)
            self.layers = nn.ModuleList(_Layer(width, shape.heads) for _ in range(shape.layers))
            self.norm = nn.LayerNorm(width, eps=NORM_EPSILON)
            self.whole = nn.Linear(width, 2)
            self.each = nn.Linear(width, 2)
            self.value = nn.Linear(width, 1)
        # Every operation equally likely at first: exploration then needs no schedule of its own.
        for layer in (self.whole, self.each, self.value):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        for name, count in (("fact_features", len(FACT_FEATURES)), ("pair", len(PAIR_FEATURES))):
            self.register_buffer(f"{name}_mean", torch.zeros(count))
            self.register_buffer(f"{name}_std", torch.ones(count))

    def fit_scales(self, batch: Batch) -> None:
        """Take mean and spread of the features from these observations."""
        present_BK = batch.allowed_BA[:, 2 + batch.items_BKD.shape[1] :]
        for name, rows in (
            ("fact_features", batch.fact_BF),
            ("pair", batch.pairs_BKP[present_BK]),
        ):
            if len(rows):
                std = np.maximum(rows.std(axis=0), LEAST_STD)
                getattr(self, f"{name}_mean").copy_(torch.from_numpy(rows.mean(axis=0)))
                getattr(self, f"{name}_std").copy_(torch.from_numpy(std.astype(np.float32)))

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [B, actions], -inf where not allowed, and the value of each state [B]."""
        fact_BD, items_BKD = torch.from_numpy(batch.fact_BD), torch.from_numpy(batch.items_BKD)
        allowed_BA = torch.from_numpy(batch.allowed_BA)
        present_BK = allowed_BA[:, 2 + items_BKD.shape[1] :]
        features_BF = self._scaled("fact_features", torch.from_numpy(batch.fact_BF))
        pairs_BKP = self._scaled("pair", torch.from_numpy(batch.pairs_BKP))
        fact_BW = self.fact(fact_BD) + self.fact_features(features_BF)
        beside_BKD = (items_BKD - fact_BD[:, None]).abs()
        items_BKW = self.item(torch.cat([items_BKD, beside_BKD], dim=2)) + self.pair(pairs_BKP)
        x_BTW = torch.cat([fact_BW[:, None], items_BKW], dim=1)
        seen_BT = torch.cat([torch.ones_like(present_BK[:, :1]), present_BK], dim=1)
        for layer in self.layers:
            x_BTW = layer(x_BTW, seen_BT)
        x_BTW = self.norm(x_BTW)
        whole_B2, each_BK2 = self.whole(x_BTW[:, 0]), self.each(x_BTW[:, 1:])
        each_BK2 = each_BK2 - present_BK.sum(dim=1).clamp_min(1).log()[:, None, None]
        raw_BA = torch.cat([whole_B2, each_BK2[:, :, 0], each_BK2[:, :, 1]], dim=1)
        return raw_BA.masked_fill(~allowed_BA, -math.inf), self.value(x_BTW[:, 0])[:, 0]

    def trained(self, embedder: str, about: Mapping[str, Any]) -> TrainedHead:
        """The head as a running memory loads it; the value is for training only."""
        weights = {
            name: value.detach().numpy().copy()
            for name, value in self.state_dict().items()
            if not name.startswith("value.")
        }
        return TrainedHead(weights, self.shape, embedder, about)

    @classmethod
    def from_trained(cls, head: TrainedHead) -> OperationHead:
        """A head that goes on learning from where `head` stopped; its value starts anew."""
        module = cls(head.shape)
        state = {name: torch.from_numpy(value.copy()) for name, value in head.weights.items()}
        module.load_state_dict({**module.state_dict(), **state})
        return module

    def _scaled(self, name: str, x: torch.Tensor) -> torch.Tensor:
        mean = cast(torch.Tensor, getattr(self, f"{name}_mean"))
        return (x - mean) / cast(torch.Tensor, getattr(self, f"{name}_std"))


class _Layer(nn.Module):
    """One pre-norm Transformer layer; tokens that are not `seen_BT` are attended to by nobody."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.norm1 = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x_BTW: torch.Tensor, seen_BT: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x_BTW.shape
        query, key, value = (
            part.view(batch, tokens, self._heads, width // self._heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x_BTW)).chunk(3, dim=-1)
        )
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=seen_BT[:, None, None]
        )
        x_BTW = x_BTW + self.out(mixed.transpose(1, 2).reshape(x_BTW.shape))
        hidden: torch.Tensor = self.down(functional.relu(self.up(self.norm2(x_BTW))))
        return x_BTW + hidden
