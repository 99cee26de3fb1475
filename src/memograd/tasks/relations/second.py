"""Trains the second reading of what looks closed (`memory/relations/second.py`).

The last layers of the encoder and the head of the relations go on learning from the weights that
they begin with; the layers below them do not, and their vectors are the served ones. The rows are
those of `rows.py`: messages of written dialogues beside the facts that they meet, of which a part
stands without what it closes. Of twins (dialogues of kind `life` whose last message closes a fact,
or only sounds so) mostly that last message counts: in what comes before it facts are only told.

Invariant: what is trained computes what `RelationModel.closes` serves, up to the rounding of 8
bits.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np
import torch

from memograd.errors import BadInput
from memograd.memory.embedders.e5_weights import read_e5
from memograd.memory.relations.encoder import Encoder
from memograd.memory.relations.rows import RowBuilder
from memograd.memory.relations.second import second_layers, second_of
from memograd.memory.relations.values import DEPTHS
from memograd.memory.relations.weights import Weights
from memograd.tasks.relations.learning import loss_of_relations
from memograd.tasks.relations.network import RelationBatch, RelationNetwork, WordTable, batch_of
from memograd.tasks.relations.rows import Example, Examples, WrittenTurn
from memograd.tasks.relations.settings import RelationsConfig

OTHERS: Final = 0.5  # share of the messages of other dialogues that are read
EARLIER: Final = 0.15  # share of those before the last one of a twin
TWINS: Final = 12  # messages; a longer life is no twin

Batch = Sequence[Example]
Entering = tuple[RelationBatch, torch.Tensor]


def turns_to_learn(turns: Sequence[WrittenTurn], seed: int) -> list[WrittenTurn]:
    """The turns of a batch of dialogues that are read: of twins the last ones and few before them,
    of other dialogues a share."""
    draw = random.Random(f"second:{seed}")
    last = {said.dialogue: n for n, said in enumerate(turns)}
    length = Counter(said.dialogue for said in turns)

    def share(n: int, said: WrittenTurn) -> float:
        if said.kind != "life" or length[said.dialogue] > TWINS:
            return OTHERS
        return 1.0 if last[said.dialogue] == n else EARLIER

    return [said for n, said in enumerate(turns) if draw.random() < share(n, said)]


def train_second(
    weights: Weights,
    examples: Callable[[RowBuilder], Examples],
    config: RelationsConfig,
    say: Callable[[int, float], None] = lambda step, loss: None,
) -> Weights:
    """A second reading of those weights.

    Raises BadInput where no message meets a fact, and where the weights have no layers to repeat.

    examples: draws the rows, of tokens that the builder makes. config: of it steps, seed, batch,
    learning_rate, warmup, weight_decay, dropout, smoothing and closing_weight count. say: is told
    the number and the loss of each step.
    """
    if not second_layers(weights.layers):
        raise BadInput(
            f"A second reading begins behind layer {DEPTHS[-1]}, and these weights have"
            f" {weights.layers} layers: train some with layers=12."
        )
    e5 = read_e5()
    builder = RowBuilder(e5)
    encoder, table = Encoder(weights, builder), WordTable(e5)
    torch.manual_seed(config.seed)
    network = RelationNetwork(e5, layers=weights.layers, dropout=config.dropout)
    network.load_weights(weights)
    network.freeze(len(second_layers(weights.layers)))
    network.train()
    learning = [p for p in network.parameters() if p.requires_grad]
    learning = [p for p in learning if id(p) not in {id(q) for q in network.worths.parameters()}]
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in learning if p.ndim > 1], "weight_decay": config.weight_decay},
            {"params": [p for p in learning if p.ndim == 1], "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        fused=True,
    )
    drawn = examples(builder)

    def entering(batch: Batch) -> Entering:
        entered = batch_of([example.row for example in batch], table, e5.pad)
        return entered, _below(encoder, batch, entered)

    steps = _ahead(entering, _batches(drawn, config.steps))
    for made, (batch, (entered, below)) in enumerate(steps):
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate * _share(made, config)
        relations, _ = network.read(below, entered)
        loss = loss_of_relations(relations, batch, config)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimiser.step()
        say(made + 1, float(loss.detach()))
    return second_of(network.to_weights(origin={"steps": config.steps, "seed": config.seed}))


def _batches(drawn: Examples, steps: int) -> Iterator[Batch]:
    """So many batches of the messages that meet facts.

    Raises BadInput where there is no such message.
    """
    made, number = 0, 0
    while made < steps:
        batches = [[one for one in batch if one.relations] for batch in drawn.batches(number)]
        batches = [batch for batch in batches if batch]
        if not batches:
            raise BadInput("No message of these dialogues meets a fact: name others to learn from.")
        yield from batches[: steps - made]
        made, number = made + len(batches), number + 1


def _ahead(
    entering: Callable[[Batch], Entering], batches: Iterable[Batch]
) -> Iterator[tuple[Batch, Entering]]:
    """Each batch with what enters the layers, which is computed while the one before is learnt."""
    coming: deque[tuple[Batch, Future[Entering]]] = deque()
    with ThreadPoolExecutor(max_workers=1) as beside:
        for batch in batches:
            coming.append((batch, beside.submit(entering, batch)))
            if len(coming) > 1:
                first, made = coming.popleft()
                yield first, made.result()
        for first, made in coming:
            yield first, made.result()


def _below(encoder: Encoder, batch: Sequence[Example], entered: RelationBatch) -> torch.Tensor:
    """float32 `[B, T, hidden]`: what the served layers below make of the rows."""
    found = np.zeros(entered.words.shape, np.float32)
    for n, example in enumerate(batch):
        vectors = encoder.behind_each(example.row, len(DEPTHS))[-1]
        found[n, : len(vectors)] = vectors
    return torch.from_numpy(found)


def _share(made: int, config: RelationsConfig) -> float:
    """Of the learning rate: up in a line, then down to nothing."""
    rising = min(1.0, (made + 1) / max(1.0, config.warmup * config.steps))
    return rising * max(0.02, 1 - made / config.steps)
