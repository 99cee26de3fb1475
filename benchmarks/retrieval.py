"""What the trained ranker finds, beside rank fusion. One JSON line a measure.

    python benchmarks/retrieval.py --data DATA_FOLDER --corpus corpus/conversations
    python benchmarks/retrieval.py --data DATA_FOLDER --quick --only recall scores mem0

Trained on the licence-clean mixture (LongMemEval's development sample, the project's written
conversations) by cross-validation in two halves: half of LongMemEval's questions with half of the
authors of written conversations. LoCoMo and MemDaily are measured by the ranker of the whole
mixture and never trained on. Recall at k is the mean share of a question's evidence turns among the
first k turns, from the same candidates for both sides; intervals are 95% bootstraps over questions,
of the paired gain too.

    recall    every set, and every kind of question where a set tells kinds
    mem0      mem0's search of the same turns, each added by `add(infer=False)` with the same
              embedder to its own pipeline (faiss, no language model)
    scores    ECE of the ten best hits, and how well the best probability tells questions that are
              answered from those that are not (AUROC), beside the best cosine alone
    ablation  LoCoMo without one group of features: the weights of
              all are taken on from for a quarter of the steps without it
    curve     10, 25, 50, 150 and all questions
    grpo      Plackett-Luce on the reward alone against supervised, three seeds each

`--quick` takes 60 of LongMemEval's 180 questions, alone and 30 together, and no MemDaily. `--rows
FILE` keeps the features of all questions, most of the work, so that parts can be run one by one.
The shipped weights are those of `memograd train retrieval` on the mixture (docs/retrieval.md).
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memograd.data import load_any, load_locomo, load_longmemeval, load_memdaily
from memograd.evaluation import bootstrap_interval
from memograd.memory.embedders import Embedder
from memograd.memory.embedders.load import open_embedder
from memograd.memory.search.ranker.features import FEATURES, GROUPS, group_of
from memograd.memory.search.ranker.files import LinearRanking, Probability, with_best
from memograd.tasks.retrieval.learning import AGREE, fit_probability, recalls, turns_part
from memograd.tasks.retrieval.material import MemoryMaterial, Row, rows_of, told_of
from memograd.tasks.retrieval.settings import RetrievalConfig
from memograd.tasks.retrieval.trainer import RankerTrainer

KS = (5, 10, 20)
SIZES = (1, 30, 90)
STRANGERS = 20
SECOND = ("half1", "en-f", "en-g", "zh-f", "zh-g")
"""The groups that are held out together; the others are the other half."""
RETRAINED = 75
"""Steps without a group of features, from the weights of all."""
Line = dict[str, Any]
Sets = dict[str, list[Row]]


def load_memories(data: Path, corpus: Path, *, quick: bool) -> dict[str, list[MemoryMaterial]]:
    """The memories of every set, by its name; groups are what is held out together."""
    sets: dict[str, list[MemoryMaterial]] = {}
    oracle = load_longmemeval(data / "longmemeval" / "longmemeval_oracle_dev180.json.gz")
    order = np.random.default_rng(0).permutation(len(oracle)).tolist()
    for half in (0, 1):
        told = [oracle[at] for at in order[half : 60 if quick else None : 2]]
        for size in SIZES[: 2 if quick else 3]:
            name = f"LongMemEval, {size} together"
            memories = told_of(told, set_name=f"lme{size}", group=f"half{half}", together=size)
            sets.setdefault(name, []).extend(memories)
    for path in sorted(corpus.glob("*.jsonl")):
        memories = told_of(load_any(path), set_name="written", group=path.stem)
        sets.setdefault("written conversations", []).extend(memories)
    for one in load_locomo(data / "locomo" / "locomo_conv26_conv30.json"):
        sets[f"LoCoMo {one.id}"] = told_of([one], set_name="locomo", group=one.id)
    for path in [] if quick else sorted((data / "memdaily").glob("*.json.gz")):
        streams = [stream for stream in load_memdaily(path) if stream.questions]
        chosen = np.random.default_rng(1).permutation(len(streams))[:12].tolist()
        memories = told_of([streams[at] for at in chosen], set_name="memdaily", group=path.stem)
        sets.setdefault("MemDaily", []).extend(memories)
    return sets


def rows_of_sets(memories: dict[str, list[MemoryMaterial]], embedder: Embedder) -> Sets:
    """The rows of every set; turns alone, which is what is measured."""
    sets: Sets = {}
    for name, told in memories.items():
        asks_strangers = name in ("LongMemEval, 30 together", "written conversations")
        rows = rows_of(told, embedder, strangers=STRANGERS if asks_strangers else 0)
        sets[name] = [replace(row, items=None) for row in rows]
        print(f"{name}: {len(sets[name])} questions", file=sys.stderr)
    return sets


def kept_rows(
    file: Path | None, memories: dict[str, list[MemoryMaterial]], embedder: Embedder
) -> Sets:
    """The rows of every set: those in the file if it is there, else made, and kept in it."""
    if file is not None and file.exists():
        with file.open("rb") as stream:
            kept: Sets = pickle.load(stream)
        return kept
    sets = rows_of_sets(memories, embedder)
    if file is not None:
        with file.open("wb") as stream:
            pickle.dump(sets, stream, protocol=5)
    return sets


def mixture(sets: Sets) -> list[Row]:
    """What may be trained on."""
    return [
        row
        for name, rows in sets.items()
        if name.startswith("LongMemEval") or name == "written conversations"
        for row in rows
    ]


def trained(rows: Sequence[Row], **settings: Any) -> LinearRanking:
    """A ranker of turns."""
    return _advanced(RankerTrainer(rows, RetrievalConfig(**settings)))


def _advanced(trainer: RankerTrainer) -> LinearRanking:
    while trainer.step < trainer.config.steps:
        trainer.advance()
    return trainer.linear(0)


def trained_without(rows: Sequence[Row], group: str, start: LinearRanking) -> LinearRanking:
    """A ranker of turns that knows nothing of a group of features, begun at the weights of all."""
    kept = np.array([group_of(name) != group for name in FEATURES], np.float32)
    blind = [
        replace(row, turns=replace(row.turns, features=row.turns.features * kept))
        for row in rows
        if row.turns is not None
    ]
    trainer = RankerTrainer(blind, RetrievalConfig(steps=RETRAINED))
    trainer.weights[0] = start.weights * kept
    return _advanced(trainer)


def folds(sets: Sets) -> Iterator[tuple[str, list[Row], list[Row]]]:
    """Name of the set, rows to train on and rows to measure on."""
    rows = mixture(sets)
    for name, own in sets.items():
        if name.startswith("LongMemEval") or name == "written conversations":
            for second in (False, True):
                held = [row for row in own if (row.group in SECOND) == second]
                yield name, [row for row in rows if (row.group in SECOND) != second], held
        else:
            yield name, rows, own


_TRAINED: dict[frozenset[str], LinearRanking] = {}


def _trained_once(rows: Sequence[Row]) -> LinearRanking:
    """The ranker of these groups, which several sets are measured by."""
    groups = frozenset(row.group for row in rows)
    if groups not in _TRAINED:
        _TRAINED[groups] = trained(rows)
    return _TRAINED[groups]


def recall_lines(sets: Sets) -> Iterator[Line]:
    """Fusion and the ranker, by set and by kind."""
    held: Sets = {}
    found: dict[tuple[str, str, int], list[float]] = {}
    for name, to_train, to_measure in folds(sets):
        linear = _trained_once(to_train)
        held.setdefault(name, []).extend(row for row in to_measure if row.evidence)
        for k in KS:
            for side, used in (("fusion", None), ("trained", linear)):
                values = recalls(to_measure, turns_part, used, k).tolist()
                found.setdefault((name, side, k), []).extend(values)
    for name, rows in held.items():
        kinds = np.array([row.kind for row in rows])
        for kind in ["all", *sorted(set(kinds.tolist()))]:
            chosen = np.ones(len(rows), bool) if kind == "all" else kinds == kind
            if chosen.sum() < 10:
                continue
            line: Line = {
                "bench": "recall", "set": name, "kind": kind, "questions": int(chosen.sum())
            }  # fmt: skip
            for k in KS:
                sides = [np.array(found[name, side, k])[chosen] for side in ("fusion", "trained")]
                line |= {
                    f"fusion@{k}": _percent(sides[0]),
                    f"trained@{k}": _percent(sides[1]),
                    f"gain@{k}": _percent(sides[1] - sides[0]),
                }
            yield line


def score_lines(sets: Sets) -> Iterator[Line]:
    """Are the probabilities right, and do they tell what is not answered?"""
    judged: dict[str, list[tuple[Row, np.ndarray, np.ndarray]]] = {}
    for name, to_train, to_measure in folds(sets):
        linear = _trained_once(to_train)
        probability = fit_probability(linear, to_train, turns_part)
        judged.setdefault(name, []).extend(
            (row, *_best_hits(row, linear, probability)) for row in to_measure if row.turns
        )
    for name, told in judged.items():
        chances = np.concatenate([chances for _, chances, _ in told])
        hits = np.concatenate([hits for *_, hits in told])
        line: Line = {"bench": "scores", "set": name, "ece": round(ece(chances, hits), 4)}
        answered = np.array([row.evidence > 0 for row, *_ in told])
        for kind in ("unanswerable", "stranger"):
            of_kind = np.array([row.kind == kind for row, *_ in told])
            if of_kind.any():
                best = np.array([found.max() for _, found, _ in told])
                cosine = np.array([row.turns.facts[0] if row.turns else 0 for row, *_ in told])
                both = answered | of_kind
                line[f"auroc_{kind}"] = round(auroc(best[both], answered[both]), 3)
                line[f"auroc_{kind}_cosine"] = round(auroc(cosine[both], answered[both]), 3)
        yield line


def ablation_lines(sets: Sets) -> Iterator[Line]:
    """Without one group of features: LoCoMo by the whole mixture."""
    rows = mixture(sets)
    measured = [row for name, own in sets.items() if name.startswith("LoCoMo") for row in own]
    everything = _trained_once(rows)
    for group in ["", *GROUPS]:
        linear = trained_without(rows, group, everything) if group else everything
        values = recalls(measured, turns_part, linear, 10)
        yield {"bench": "ablation", "without": group or "nothing", "LoCoMo@10": _percent(values)}


def curve_lines(sets: Sets) -> Iterator[Line]:
    """How many questions are needed; three draws each."""
    rows = [row for row in mixture(sets) if row.evidence]
    measured = [row for name, own in sets.items() if name.startswith("LoCoMo") for row in own]
    for count in (10, 25, 50, 150, len(rows)):
        values = []
        for seed in range(1 if count == len(rows) else 3):
            chosen = np.random.default_rng(seed).permutation(len(rows))[:count].tolist()
            # The ridge stays what it is for a question of the whole mixture.
            ridge = 300.0 * max(count / len(rows), 0.1)
            linear = trained([rows[at] for at in chosen], ridge=ridge)
            values.append(float(recalls(measured, turns_part, linear, 10).mean()))
        yield {
            "bench": "curve",
            "questions": count,
            "LoCoMo@10": [round(100 * value, 1) for value in values],
        }


def grpo_lines(sets: Sets) -> Iterator[Line]:
    """Reward alone against supervised."""
    rows = mixture(sets)
    measured = {name: own for name, own in sets.items() if name.startswith(("LoCoMo", "MemDaily"))}
    for algorithm in ("supervised", "grpo"):
        for seed in (0, 1, 2):
            linear = trained(rows, algorithm=algorithm, seed=seed)
            line: Line = {"bench": "grpo", "algorithm": algorithm, "seed": seed}
            for name, own in measured.items():
                line[f"{name}@10"] = _percent(recalls(own, turns_part, linear, 10))
            yield line


def mem0_lines(memories: dict[str, list[MemoryMaterial]], embedder: Embedder) -> Iterator[Line]:
    """mem0's own search of the same turns: LoCoMo, and LongMemEval's larger memories."""
    from long_messages import Mem0

    for name, told in memories.items():
        if name != "LongMemEval, 30 together" and not name.startswith("LoCoMo"):
            continue
        found: dict[int, list[float]] = {k: [] for k in KS}
        for memory in told:
            with tempfile.TemporaryDirectory() as folder:
                peer = Mem0(Path(folder), embedder)
                for turn in (turn for one in memory.conversations for turn in one):
                    said = {"role": "user", "content": turn.index_text()}
                    peer.memory.add([said], user_id="u", metadata={"turn": turn.id}, infer=False)
                for asking in memory.asked:
                    if not asking.evidence:
                        continue
                    hits = peer.memory.search(asking.text, filters={"user_id": "u"}, top_k=max(KS))
                    ids = [hit["metadata"]["turn"] for hit in hits["results"]]
                    for k in KS:
                        found[k].append(len(asking.evidence & set(ids[:k])) / len(asking.evidence))
        line: Line = {"bench": "mem0", "set": name, "questions": len(found[KS[0]])}
        yield line | {f"mem0@{k}": _percent(np.array(found[k])) for k in KS}


def _best_hits(
    row: Row, linear: LinearRanking, probability: Probability
) -> tuple[np.ndarray, np.ndarray]:
    assert row.turns is not None
    scores = linear.scores(row.turns.features)
    facts = with_best(row.turns.facts, scores, row.turns.features[:, AGREE])
    best = np.argsort(-scores, kind="stable")[:10]
    return probability.of(scores, facts)[best], row.turns.hit[best]


def ece(chances: np.ndarray, hits: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error over bins of equally many hits."""
    order = np.argsort(chances, kind="stable")
    parts = np.array_split(order, bins)
    return float(
        sum(
            abs(chances[part].mean() - hits[part].mean()) * len(part) for part in parts if len(part)
        )
        / len(order)
    )


def auroc(values: np.ndarray, positive: np.ndarray) -> float:
    """How often a positive has the larger value; ties count half."""
    high, low = values[positive][:, None], values[~positive][None, :]
    return float((high > low).mean() + 0.5 * (high == low).mean())


def _percent(values: np.ndarray) -> list[float]:
    low, high = bootstrap_interval(values.tolist())
    return [round(100 * float(one), 1) for one in (values.mean(), low, high)]


PARTS = {
    "recall": recall_lines,
    "scores": score_lines,
    "ablation": ablation_lines,
    "curve": curve_lines,
    "grpo": grpo_lines,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--corpus", type=Path, default=Path("corpus/conversations"))
    parser.add_argument("--quick", action="store_true", help="60 questions of LongMemEval")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="where features are kept")
    parser.add_argument("--only", choices=[*PARTS, "mem0"], nargs="+")
    arguments = parser.parse_args()
    wanted = arguments.only or [*PARTS, "mem0"]
    embedder = open_embedder("e5")
    memories = load_memories(arguments.data, arguments.corpus, quick=arguments.quick)
    if any(name in PARTS for name in wanted):
        sets = kept_rows(arguments.rows, memories, embedder)
        for name in (name for name in PARTS if name in wanted):
            _print(PARTS[name](sets))
    if "mem0" in wanted:
        _print(mem0_lines(memories, embedder))


def _print(lines: Iterator[Line]) -> None:
    for line in lines:
        line["cpu_s"] = round(time.process_time())
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
