"""Fits the gate of a relation model and says what it misses. One JSON line an author batch.

    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --others h,i
    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --write
    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --write --only secrets
    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --write --only crowded
    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --write --only few
    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --write --only requests
    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --write --only worth --others as
    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --talks longmemeval_oracle_dev180.json.gz

Fitted to the dialogues that the weights that ship were trained on, its bound chosen by those that
calibrated them, and to what assistants say in the conversations that they were trained on, the
bound chosen by the other ones. What weighs many items is learnt from lives that the weights have
not read, what weighs a request to forget, what weighs a few items and what corrects the worth of a
user's sentences from dialogues that they have not read. `--others` are
batches that neither has read, `--talks` other conversations with assistants (every tenth of them).
`--write` puts the gate beside the weights; with `--only` one function is fitted anew and the others
stay as they are. Ten minutes of one core, two for secrets alone, fifteen for many items, twenty for
few.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

from memograd.data import Conversation, load_any
from memograd.memory.relations.gate import Linear, gate_file, read_gate, write_gate
from memograd.memory.relations.model import SHIPPED, RelationModel, read_parts
from memograd.memory.relations.weights import Weights, read_weights
from memograd.tasks.relations.few import fitted_few, told_few
from memograd.tasks.relations.gate import (
    answers,
    fitted,
    fitted_secrets,
    fitted_worth,
    judged,
    judged_answers,
    judged_secrets,
    judged_worth,
    seen,
    told,
    told_worths,
)
from memograd.tasks.relations.lives import fitted_crowded, told_lives
from memograd.tasks.relations.requests import fitted_requests, told_requests
from memograd.tasks.relations.rows import WrittenTurn, read_dialogues

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


def written(names: list[str]) -> list[WrittenTurn]:
    """The turns of these files of the corpus."""
    return [said for name in names for said in read_dialogues(CORPUS / f"{name}.jsonl")]


def talked(names: list[str]) -> list[Conversation]:
    """The conversations in these files of the corpus."""
    return [talk for name in names for talk in load_any(CORPUS / f"{name}.jsonl")]


def plainly_weighing(path: Path) -> RelationModel:
    """The model of these weights without what weighs evidence, which may be of another kind."""
    parts = read_parts(path)
    if parts.gate is not None:
        plain = replace(parts.gate, crowded=None, requests=None, few=None)
        parts = parts._replace(gate=plain)
    return RelationModel(*parts)


def crowded(weights: Path, names: list[str]) -> Linear:
    """What weighs many items, learnt from the lives in these files of the corpus."""
    model = plainly_weighing(weights)
    return fitted_crowded(
        [one for name in names for one in told_lives(model, CORPUS / f"{name}.jsonl")]
    )


def few(weights: Path, names: list[str]) -> Linear:
    """What weighs a few items, learnt from these files of the corpus."""
    model = plainly_weighing(weights)
    return fitted_few([one for name in names for one in told_few(model, CORPUS / f"{name}.jsonl")])


def requests(weights: Path, names: list[str]) -> Linear:
    """What weighs what a request to forget means, learnt from these files of the corpus."""
    model = plainly_weighing(weights)
    return fitted_requests(
        [one for name in names for one in told_requests(model, CORPUS / f"{name}.jsonl")]
    )


def worth(weights: Weights, names: list[str]) -> Linear:
    """What corrects the worth of a user's sentences, learnt from these files of the corpus."""
    return fitted_worth(told_worths(RelationModel(weights), written(names)))


def main() -> None:
    """Fit, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    parser.add_argument("--others", default="", help="author batches to measure on, such as h,i")
    parser.add_argument("--talks", type=Path, help="conversations with assistants to measure on")
    parser.add_argument("--write", action="store_true", help="keep the gate beside the weights")
    parser.add_argument(
        "--only",
        choices=["secrets", "crowded", "requests", "worth", "few"],
        help="fit this function, keep the others",
    )
    arguments = parser.parse_args()
    split = json.loads((CORPUS / "split.json").read_text(encoding="utf-8"))["relations"]
    weights = read_weights(arguments.weights)
    gate = read_gate(gate_file(arguments.weights), weights)
    went_on = [name for name in split["continued_with"] if name.startswith("dialogues/")]
    learnt_of = split["train"] + went_on
    worth_of = split["worth_of"] + split["requests_of"]
    few_of = split["few_of"]
    if arguments.only:
        if gate is None:
            parser.error(
                f"There is no gate beside {arguments.weights} to keep the other functions of: leave"
                " --only out, and all are fitted."
            )
        if arguments.only == "secrets":
            plain = RelationModel(weights)
            taught, bounding = (
                told(plain, written(names)) for names in (learnt_of, split["chosen_by"])
            )
            gate = replace(gate, secrets=fitted_secrets(taught, bounding))
        elif arguments.only == "worth":
            gate = replace(gate, worth=worth(weights, worth_of))
        elif arguments.only == "few":
            gate = replace(gate, few=few(arguments.weights, few_of))
        elif arguments.only == "crowded":
            gate = replace(gate, crowded=crowded(arguments.weights, split["weighed_by"]))
        else:
            gate = replace(gate, requests=requests(arguments.weights, split["requests_of"]))
    elif gate is None or arguments.write:
        every = sorted(f"conversations/{file.stem}" for file in CORPUS.glob("conversations/*"))
        learnt = [name for name in every if name in split["continued_with"]]
        gate = fitted(
            weights,
            written(learnt_of),
            written(split["chosen_by"]),
            talked(learnt),
            talked([name for name in every if name not in learnt]),
        )
        gate = replace(gate, worth=worth(weights, worth_of))
        if arguments.write:  # what is weighed is read through the rest of the gate
            write_gate(gate, gate_file(arguments.weights))
            gate = replace(
                gate,
                crowded=crowded(arguments.weights, split["weighed_by"]),
                requests=requests(arguments.weights, split["requests_of"]),
                few=few(arguments.weights, few_of),
            )
    if arguments.write:
        write_gate(gate, gate_file(arguments.weights))
    model = RelationModel(weights)
    for batch in filter(None, arguments.others.split(",")):
        for language in ("en", "zh"):
            turns = written([f"dialogues/{language}-{batch}"])
            found = judged(gate, seen(model, turns), weights.about.thresholds.link_above)
            print(json.dumps({"bench": "relations_gate", "batch": batch, "language": language}
                             | asdict(found)), flush=True)  # fmt: skip
            if gate.worth is not None:
                found_worth = told_worths(model, turns)
                kept = judged_worth(gate.worth, found_worth, weights.about.thresholds.keep_above)
                print(json.dumps({"bench": "worth", "batch": batch, "language": language}
                                 | asdict(kept)), flush=True)  # fmt: skip
            if gate.secrets is not None:
                of_secrets = judged_secrets(gate.secrets, told(model, turns))
                print(json.dumps({"bench": "secrets", "batch": batch, "language": language}
                                 | asdict(of_secrets)), flush=True)  # fmt: skip
    if arguments.talks is not None and gate.keeps is not None:
        found_answers = answers(model, load_any(arguments.talks)[::10])
        above = weights.about.thresholds.keep_assistant_above
        missed = judged_answers(gate.keeps, found_answers, above)
        print(json.dumps({"bench": "relations_gate", "talks": arguments.talks.name}
                         | asdict(missed)), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
