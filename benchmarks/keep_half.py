"""Which half of the turns is worth showing? Evidence recall at 10 of what each method keeps.

    OMP_NUM_THREADS=1 python benchmarks/keep_half.py --data DATA_FOLDER
    OMP_NUM_THREADS=1 python benchmarks/keep_half.py --data DATA_FOLDER --seeds 0 \\
        --embedder minilm --sets LoCoMo LongMemEval

Half of the turns, then half of the tokens, of LoCoMo's two conversations, LongMemEval's 180
questions (with and without what the assistant says) and MemDaily; then a search by meaning, or by
meaning and words, among what was kept. `surface` is a logistic model of "some question needs
this turn" over how a turn is written and where it stands, with a level of its own for each
conversation, since how much is asked about differs between sets and says nothing of the turns. It
is fitted on LongMemEval and the project's written conversations, for LongMemEval on the half of the
questions and of the authors that is not measured; `surface + LoCoMo` on LoCoMo's two conversations
too, but never on the one that is measured. `head of today` is the operation head trained on
generated lives as raw turns, --seeds of them (the settings of docs/log.md, "Transfer to LoCoMo").
Prints Markdown; 95% intervals over conversations and their questions, of the mean over seeds; the
last row is the paired difference of `surface` to the best method that was not fitted.

Invariant: no method looks at a question that is measured, or at another text of its conversation
than the turns.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from policies_bench.learning import config_of, trained_head
from policies_bench.other_data import heard_alone
from retrieval import SECOND

from memograd.data import Conversation, load_any, load_locomo, load_longmemeval, load_memdaily
from memograd.data.lifelog import Lifelog, lifelog_of
from memograd.evaluation.bootstrap import clustered_interval
from memograd.memory.analysis import analyse
from memograd.memory.embedders import Embedder
from memograd.memory.embedders.load import open_embedder
from memograd.memory.language import language_of
from memograd.memory.reader import RuleReader
from memograd.memory.search import Mode
from memograd.memory.state.columns import BIT, describe, surface
from memograd.memory.state.corpus_view import Layout
from memograd.tasks.memory_ops.baselines.keep_half import (
    ALL_TURNS,
    MODES,
    KeptHalf,
    Liking,
    Unit,
    compare_halves,
    half_methods,
    head_likes,
)
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs, training_logs
from memograd.tasks.memory_ops.settings import OperationsConfig

TOP_K: Final = 10
UNITS: Final[tuple[Unit, ...]] = ("turns", "tokens")
SURFACE, WITH_LOCOMO, HEAD = "surface", "surface + LoCoMo", "head of today"
HEAD_SETTINGS: Final = OperationsConfig(
    languages=["en", "zh"], token_cost=0.001, change_cost=0.01, steps=20,
    learning_rate=1e-3, logs=16, entropy_coef=0.01, weight_decay=0.1,
)  # fmt: skip
SEEN: Final = (
    "time", "number", "place", "name", "reason", "first", "suggest", "prefer",
    "question", "caption", "assistant", "user",
)  # fmt: skip
LONG: Final = 40.0  # terms from which on a turn counts as long
SHORT: Final = 5
FEATURES: Final = (
    "length", "length squared", "long", "short", "opens", "answers", "read", "read, dated",
    "rarity", "new words", *SEEN,
)  # fmt: skip
BY_WORDS: Final = ("rarity", "new words")
RIDGE: Final = 3.0
NEWTON_STEPS: Final = 30
CLOSE: Final = 1e-6
Grouped = list[tuple[str, Lifelog]]
"""Conversations, each with the group that is held out together."""


def features_of(log: Lifelog) -> np.ndarray:
    """float64 `[statements, FEATURES]`: how the turns that say them are written and where they
    stand; made once of a log."""
    if log.id not in _MADE:
        _MADE[log.id] = _features(log)
    return _MADE[log.id]


_MADE: Final[dict[str, np.ndarray]] = {}


def _features(log: Lifelog) -> np.ndarray:
    by_id = {turn.id: turn for turn in log.turns}
    turns = [by_id[statement.turn_id] for statement in log.statements]
    words = [analyse(turn.index_text()) for turn in turns]
    terms = np.array([len(one) for one in words], np.int64)
    columns = describe(turns)
    flags = {name: (columns.flags & BIT[name]) != 0 for name in SEEN}
    goes_on = np.concatenate([[False], Layout(None, terms, columns).sittings().joined])
    asked, other = np.roll(flags["question"], 1), columns.speaker != np.roll(columns.speaker, 1)
    read: set[str] = set()
    dated: set[str] = set()
    for fact in RuleReader().read(turns):
        read.update(fact.sources)
        if surface(fact.text, "", False) & BIT["time"]:
            dated.update(fact.sources)
    length = np.log1p(terms)
    found = {
        "length": length,
        "length squared": length**2,
        "long": np.log1p(np.maximum(terms - LONG, 0.0)),
        "short": terms < SHORT,
        "opens": ~goes_on,
        "answers": goes_on & asked & other,
        "read": np.array([turn.id in read for turn in turns]),
        "read, dated": np.array([turn.id in dated for turn in turns]),
        "rarity": _rarity(words),
        "new words": _new_words(words),
        **flags,
    }
    return np.stack([found[name].astype(float) for name in FEATURES], axis=1)


def _rarity(words: Sequence[Sequence[str]]) -> np.ndarray:
    """From 0 to 1 for each turn: how few turns of the conversation say its words, on average."""
    said_by = Counter(word for one in words for word in set(one))
    count = len(words)
    rare = [np.mean([np.log(count / said_by[w]) for w in set(one)]) if one else 0 for one in words]
    shares: np.ndarray = np.array(rare) / np.log(count + 1)
    return shares


def _new_words(words: Sequence[Sequence[str]]) -> np.ndarray:
    """The share of each turn's words that no turn before it said."""
    said: set[str] = set()
    shares = []
    for one in words:
        shares.append(len(set(one) - said) / max(1, len(set(one))))
        said.update(one)
    return np.array(shares)


@dataclass(frozen=True)
class Surface:
    """mean, weights: float64 `[f]`."""

    mean: np.ndarray
    weights: np.ndarray

    def likes(self, log: EmbeddedLog) -> list[float]:
        """Log odds that somebody asks about each statement, up to a constant."""
        odds: list[float] = ((features_of(log.log) - self.mean) @ self.weights).tolist()
        return odds


def fitted(logs: Sequence[Lifelog], without: Sequence[str] = ()) -> Surface:
    """The model of these conversations; those where all or no turns are needed teach nothing.

    without: features that get no weight.
    """
    rows, needed = [], []
    for log in logs:
        asked = {name for probe in log.probes for name in probe.needed}
        hit = np.array([statement.id in asked for statement in log.statements])
        if hit.any() and not hit.all():
            rows.append(features_of(log))
            needed.append(hit)
    mean = np.concatenate(rows).mean(axis=0)
    spread = np.sqrt(np.mean([one.var(axis=0) for one in rows], axis=0))
    used = (spread > CLOSE) & np.array([name not in without for name in FEATURES])
    scale = np.where(used, spread, np.inf)  # what never varies has no weight either
    weights = logistic([(one - mean) / scale for one in rows], needed)
    return Surface(mean, weights / scale)


def logistic(features: Sequence[np.ndarray], needed: Sequence[np.ndarray]) -> np.ndarray:
    """Weights `[f]` of a logistic model with a level for each conversation, by Newton's method.

    A conversation weighs as the square root of its size.
    """
    width = features[0].shape[1]
    weights, levels = np.zeros(width), np.zeros(len(features))
    for _ in range(NEWTON_STEPS):
        slope, curve = RIDGE * weights, RIDGE * np.eye(width)
        for at, (rows, hit) in enumerate(zip(features, needed, strict=True)):
            chance = 1 / (1 + np.exp(-(rows @ weights + levels[at])))
            certain = chance * (1 - chance)
            share = 1 / np.sqrt(len(hit))
            # The level is solved for beside the weights (block elimination).
            apart = rows - certain @ rows / certain.sum()
            error = chance - hit
            levels[at] -= np.clip(error.sum() / certain.sum(), -2, 2)
            slope = slope + share * (apart.T @ error)
            curve = curve + share * (apart.T * certain) @ apart
        step = np.linalg.solve(curve, slope)
        weights = weights - np.clip(step, -1, 1)
        if np.abs(step).max() < CLOSE:
            break
    return weights


def load_sets(data: Path, corpus: Path) -> dict[str, Grouped]:
    """The sets by name; `written` is trained on and not measured."""
    oracle = load_longmemeval(data / "longmemeval" / "longmemeval_oracle_dev180.json.gz")
    order = np.random.default_rng(0).permutation(len(oracle)).tolist()
    longmemeval = [_logged(f"half{place % 2}", oracle[at]) for place, at in enumerate(order)]
    sets = {
        f"LoCoMo {one.id}": [_logged(one.id, one)]
        for one in load_locomo(data / "locomo" / "locomo_conv26_conv30.json")
    }
    sets["LongMemEval"] = longmemeval
    sets["LongMemEval, users only"] = [
        (group, replace(heard_alone(log), id=f"{log.id}, users only")) for group, log in longmemeval
    ]
    sets["MemDaily"] = []
    for path in sorted((data / "memdaily").glob("*.json.gz")):
        told = [stream for stream in load_memdaily(path) if stream.questions]
        chosen = np.random.default_rng(1).permutation(len(told))[:12].tolist()
        sets["MemDaily"] += [_logged(path.stem, told[at]) for at in chosen]
    sets["written"] = [
        _logged(path.stem, one) for path in sorted(corpus.glob("*.jsonl")) for one in load_any(path)
    ]
    return sets


def _logged(group: str, one: Conversation) -> tuple[str, Lifelog]:
    language = language_of(" ".join(turn.text for turn in one.turns[:20]))
    return group, lifelog_of(replace(one, id=f"{group}/{one.id}"), language)


def fitted_for(name: str, second: bool, sets: Mapping[str, Grouped]) -> dict[str, Liking]:
    """The fitted methods for one half of a set, which they have not seen."""
    crossed = name.startswith("LongMemEval")
    mixture = [
        log
        for part in ("LongMemEval", "written")
        for group, log in sets[part]
        if not crossed or (group in SECOND) != second
    ]
    locomo = [log for part in sets if part.startswith("LoCoMo") if part != name
              for _, log in sets[part]]  # fmt: skip
    return {
        SURFACE: fitted(mixture).likes,
        f"{SURFACE} without rarity and new words": fitted(mixture, BY_WORDS).likes,
        WITH_LOCOMO: fitted(mixture + locomo).likes,
    }


def heads_of(seeds: int, name: str, embedder: Embedder) -> dict[str, Liking]:
    """The operation head as it is trained today, once a seed."""
    heads: dict[str, Liking] = {}
    for seed in range(seeds):
        config = config_of("grpo", seed, HEAD_SETTINGS.model_copy(update={"embedder": name}))
        material = embed_logs(training_logs(config), embedder, view="turns")
        heads[f"{HEAD} {seed}"] = partial(
            head_likes, trained_head(config, material, [], embedder)[0]
        )
    return heads


def halves(
    name: str, sets: Mapping[str, Grouped], heads: Mapping[str, Liking], embedder: Embedder
) -> dict[Unit, list[KeptHalf]]:
    """By unit, every method on every question of a set that needs evidence."""
    found: dict[Unit, list[KeptHalf]] = {}
    for second in (False, True):
        logs = [log for group, log in sets[name] if (group in SECOND) == second]
        logs = [log for log in logs if any(probe.needed for probe in log.probes)]
        if not logs:
            continue
        embedded = embed_logs(logs, embedder, view="turns")
        methods = {**half_methods({}), **heads, **fitted_for(name, second, sets)}
        likings = {
            method: {one.log.id: list(liking(one)) for one in embedded}
            for method, liking in methods.items()
        }
        for unit in UNITS:
            known: dict[str, Liking] = {
                method: partial(_looked_up, liked) for method, liked in likings.items()
            }
            kept = compare_halves(embedded, known, top_k=TOP_K, unit=unit)
            before = found.get(unit)
            found[unit] = kept if before is None else list(map(_joined, before, kept))
    return found


def _looked_up(liked: Mapping[str, list[float]], log: EmbeddedLog) -> list[float]:
    return liked[log.log.id]


def _joined(one: KeptHalf, other: KeptHalf) -> KeptHalf:
    recalls = {mode: one.recalls[mode] + other.recalls[mode] for mode in MODES}
    return KeptHalf(one.name, one.tokens + other.tokens, recalls, one.logs + other.logs)


def column(kept: Sequence[KeptHalf], mode: Mode) -> dict[str, str]:
    """By method its recall with the interval; heads as the mean of their seeds."""
    logs = kept[0].logs
    values = {one.name: np.array(one.recalls[mode]) for one in kept}
    seeds = [values.pop(name) for name in list(values) if name.startswith(HEAD)]
    fixed = {name: of for name, of in values.items() if not name.startswith((SURFACE, ALL_TURNS))}
    best = max(fixed, key=lambda name: float(fixed[name].mean()))
    if seeds:
        values[f"{HEAD} ({len(seeds)} seeds)"] = np.mean(seeds, axis=0)
    cells = {name: told(of, logs) for name, of in values.items()}
    cells[f"{SURFACE} - best not fitted"] = f"{told(values[SURFACE] - fixed[best], logs)} ({best})"
    return cells


def told(values: np.ndarray, logs: Sequence[str]) -> str:
    """The mean in points with its interval."""
    low, high = clustered_interval(values.tolist(), logs)
    return f"{100 * values.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--corpus", type=Path, default=Path("corpus/conversations"))
    parser.add_argument("--embedder", default="e5")
    parser.add_argument("--seeds", type=int, default=3, help="heads of today; 0 for none")
    parser.add_argument("--sets", nargs="+", help="beginnings of the names of sets; all by default")
    asked = parser.parse_args()
    sets, embedder = load_sets(asked.data, asked.corpus), open_embedder(asked.embedder)
    wanted = [one for one in sets if one != "written" and one.startswith(tuple(asked.sets or [""]))]
    if not wanted:
        parser.error(f"no set begins with {' or '.join(asked.sets)}; there are {', '.join(sets)}")
    heads = heads_of(asked.seeds, asked.embedder, embedder)
    found = {name: halves(name, sets, heads, embedder) for name in wanted}
    for mode in MODES:
        for unit in UNITS:
            columns = {name: column(of[unit], mode) for name, of in found.items()}
            counts = {name: len(of[unit][0].logs) for name, of in found.items()}
            print(f"\nhalf of the {unit}, {mode} search\n")
            print("| kept | " + " | ".join(f"{name} ({n})" for name, n in counts.items()) + " |")
            print("|---" * (1 + len(columns)) + "|")
            for method in next(iter(columns.values())):
                cells = " | ".join(cells[method] for cells in columns.values())
                print(f"| {method} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
