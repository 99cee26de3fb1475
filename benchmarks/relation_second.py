"""Trains the second reading of what looks closed, and says what both readings tell apart.

One JSON line a file.

    OMP_NUM_THREADS=2 python benchmarks/relation_second.py --dialogues FILES
    OMP_NUM_THREADS=2 python benchmarks/relation_second.py --steps 1400 --write

Last messages of twins beside the facts that were told before, in the reader's words: of the
messages that close one, how sure a reading is of that fact; of the calm ones, how sure it is at
most. `first` and `second` are areas under the curve between the two, `harmless` what share of the
calm ones stays below the bound that lets pass nine tenths of the closing ones. By default the
batches that neither reading has learnt from. `--write` trains another one on the batches
`second_of` and the talks and met messages of `corpus/split.json` and keeps it beside the weights
(an hour of two cores beside other work), and takes what weighed the old one out of the gate: fit it anew with
`relations_gate.py --write --only few`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from retrieval import auroc

from memograd.errors import BadInput
from memograd.memory.relations.gate import gate_file, write_gate
from memograd.memory.relations.model import SHIPPED, RelationModel, read_parts
from memograd.memory.relations.rows import ITEMS_A_ROW
from memograd.memory.relations.second import second_file, write_second
from memograd.memory.relations.weights import CLOSING, Weights
from memograd.tasks.relations.met import read_met
from memograd.tasks.relations.rows import CLOSES, Examples, WrittenTurn, read_dialogues
from memograd.tasks.relations.second import train_second, turns_to_learn
from memograd.tasks.relations.settings import RelationsConfig
from memograd.tasks.relations.talks import read_talks

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


def trained(weights: Weights, steps: int, seed: int) -> Weights:
    """A second reading of those weights, learnt from what the split names."""
    split = json.loads((CORPUS / "split.json").read_text(encoding="utf-8"))["relations"]
    files = {name: CORPUS / f"{name}.jsonl" for name in split["second_of"]}
    turns: list[WrittenTurn] = []
    for name, file in files.items():
        if name.startswith("dialogues/"):
            turns += turns_to_learn(read_dialogues(file), seed)
        elif name.startswith("met/"):
            turns += read_met(file)
    talks = read_talks([f for name, f in files.items() if name.startswith("conversations/")])
    config = RelationsConfig(
        steps=steps,
        seed=seed,
        learning_rate=1.5e-4,
        absent=0.35,
        alone_share=0.12,
        talk_share=0.12,
        crowded=0.45,
        unrelated_weight=1.0,
        closing_weight=1.5,
    )

    def say(step: int, loss: float) -> None:
        if step % 50 == 0:
            print(f"step {step} of {steps}: loss {loss:.3f}", flush=True)

    return train_second(weights, lambda b: Examples(turns, b, config, talks), config, say)


def last_ones(path: Path) -> list[WrittenTurn]:
    """The last message of each dialogue, where it meets an earlier fact."""
    last = {said.dialogue: said for said in read_dialogues(path)}
    return [said for said in last.values() if said.items]


def told_apart(model: RelationModel, messages: Sequence[WrittenTurn]) -> dict[str, float | int]:
    """What both readings tell apart."""
    sure: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for said in messages:
        facts = said.items[:ITEMS_A_ROW]
        items = [fact.item or fact.quote for fact in facts]
        before = [turn for turn in said.before[-1:] if turn[0] == "assistant"]
        closed = np.array([name in CLOSING for name in said.relations[:ITEMS_A_ROW]])
        first = model.relate(said.text, before, items)[:, CLOSES].sum(1)
        second = model.closes(said.text, before, items)
        asked = closed if closed.any() else ~closed
        sure[bool(closed.any())].append((float(first[asked].max()), float(second[asked].max())))
    found: dict[str, float | int] = {"closing": len(sure[True]), "calm": len(sure[False])}
    if not all(sure.values()):
        return found
    closing, calm = (np.array(sure[one]) for one in (True, False))
    for n, name in enumerate(("first", "second")):
        closes = np.repeat([True, False], [len(closing), len(calm)])
        found[name] = round(auroc(np.concatenate([closing, calm])[:, n], closes), 3)
        bound = np.quantile(closing[:, n], 0.1)
        found[f"{name}_harmless"] = round(float((calm[:, n] < bound).mean()), 3)
    return found


def main() -> None:
    """Train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    parser.add_argument("--steps", type=int, default=1400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="train, and keep it")
    parser.add_argument(
        "--dialogues",
        nargs="+",
        type=Path,
        default=[
            CORPUS / "dialogues" / f"{lang}-{a}.jsonl"
            for a in ("bi", "bm")
            for lang in ("en", "zh")
        ],
    )
    arguments = parser.parse_args()
    try:
        weights, gate, _, second = read_parts(arguments.weights)
        told = {path: last_ones(path) for path in arguments.dialogues}
        if arguments.write:
            second = trained(weights, arguments.steps, arguments.seed)
            if gate is not None:
                write_gate(replace(gate, few=None), gate_file(arguments.weights))
            write_second(second, weights, second_file(arguments.weights))
        model = RelationModel(weights, None, None, second)
        for path, messages in told.items():
            line = {"bench": "relation_second", "batch": path.stem} | told_apart(model, messages)
            print(json.dumps(line), flush=True)
    except BadInput as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
