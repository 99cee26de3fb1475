"""Policies over memory operations: algorithms, credit, transfer, speed. One JSON line a result.

    python benchmarks/memory_policies.py --quick
    python benchmarks/memory_policies.py --only algorithms --seeds 3 --out results.jsonl
    python benchmarks/memory_policies.py --only credit --out results.jsonl --plot credit.png
    python benchmarks/memory_policies.py --only transfer --locomo locomo.json --out results.jsonl
    python benchmarks/memory_policies.py --only data --data longmemeval FILE... --out results.jsonl
    python benchmarks/memory_policies.py --only speed

Each finished (what, seed) is appended to --out and skipped when it is there already with the same
settings, so that a long run may be stopped and gone on with. The summary, with 95% intervals over
seeds (Student's t), is of everything in --out that was made with these settings. KEY=VALUE are
settings of `memograd train memory-ops`.

    algorithms  GRPO, supervised on gold operations, REINFORCE, PPO and DQN, and every baseline, on
                generated logs of held-out forms, under budgets of all, half and a quarter of the
                tokens
    credit      delta_qa in groups on the same state (`grpo` above) against one reward for the whole
                walk, of questions answered (`trajectory`) or as Mem-alpha's code has it. Whole
                walks of one log are compared, num_generations of them a step: with 16, four times
                the decisions of a step of GRPO, so every curve is drawn over decisions.
    transfer    trained on generated logs and LoCoMo conv-26, both as raw turns; which half of
                conv-30 is kept, and what is found there; needs --locomo
    data        trained on generated logs as raw turns (and on conv-26 where --locomo is given);
                what is found of the files behind --data NAME when half of the tokens may be kept,
                by everybody: a Markdown table, intervals over questions of the mean over seeds.
                --limit takes the first so many conversations of each file, --heard leaves out what
                an assistant says, as the running memory does
    speed       decisions a second in training and the share of each phase; seconds of `Memory.add`
                with a trained head, with rules, and with a chat model at a local HTTP stub that
                answers at once: a lower bound of what any chat model costs
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from memograd.config.load import load_settings
from memograd.config.operations_settings import OperationsConfig
from memograd.data.lifelog import Lifelog
from memograd.evaluation.bootstrap import clustered_interval
from memograd.evaluation.figures import (
    BLUE,
    GREEN,
    GRID,
    INK,
    ORANGE,
    new_figure,
    save_figure,
)
from memograd.evaluation.memory_policies.deciders import ByHead
from memograd.evaluation.memory_policies.keep_half import compare_halves, half_methods
from memograd.evaluation.memory_policies.measure import Measured, measure
from memograd.memory import Memory
from memograd.memory.chat_model import OpenAIChatModel
from memograd.memory.embedders import Embedder
from memograd.memory.manager import ChatManager, RuleManager
from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.manager import TrainedManager
from memograd.memory.manager.trained.network import Shape
from memograd.policy.operation_head import OperationHead
from memograd.recipes.memory_ops import head_trainer, one_step, standard_of
from memograd.recipes.memory_ops_data import (
    evaluation_logs,
    logs_of_files,
    open_embedder,
    training_logs,
)
from memograd.recipes.memory_ops_measure import BUDGETS, budget_name, methods_of
from memograd.tasks.memory_ops import walk as walk_module
from memograd.tasks.memory_ops.log_memory import LogMemory
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs

PARTS = ("algorithms", "credit", "transfer", "data", "speed")
ALGORITHMS = ("grpo", "supervised", "reinforce", "ppo", "dqn")
CREDITS = ("trajectory", "mem_alpha_original")
CURVE_LOGS, CURVE_POINTS = 4, 8
KS = (5, 10)
REAL_COPIES = 8  # of conv-26 among the generated logs, so that it is met in every few steps
QUICK = ["steps=3", "logs=4", "eval_logs=2"]
STUDENT_T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306}
Row = dict[str, Any]


class Results:
    """The file of finished results, one JSON line each; `settings` names what made them."""

    def __init__(self, path: Path, config: OperationsConfig) -> None:
        self._path = path
        same = config.model_copy(update={"seed": 0, "out": None}).model_dump_json()
        self._settings = hashlib.sha256(same.encode()).hexdigest()[:8]
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        rows = [json.loads(line) for line in lines]
        self.rows: list[Row] = [row for row in rows if row["settings"] == self._settings]

    def once(self, what: str, seed: int, make: Callable[[], Row]) -> None:
        """Make the result, unless it is there, and write it down."""
        if any((row["what"], row["seed"]) == (what, seed) for row in self.rows):
            return
        began = time.perf_counter()
        row = {"bench": "memory_policies", "what": what, "seed": seed, "settings": self._settings}
        row |= make()
        row["seconds"] = round(time.perf_counter() - began, 1)
        self.rows.append(row)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        shown = {key: value for key, value in row.items() if key not in ("curve", "asked")}
        print(json.dumps(shown, ensure_ascii=False), flush=True)


def trained_head(
    config: OperationsConfig,
    material: list[EmbeddedLog],
    watched: Sequence[EmbeddedLog],
    embedder: Embedder,
) -> tuple[TrainedHead, list[Row]]:
    """The head after training, and on the way the reward and the answerability of a few logs."""
    torch.manual_seed(config.seed)
    shape = Shape(embedder.dimension, config.width, config.layers, config.heads)
    head = OperationHead(shape, seed=config.seed)
    trainer = head_trainer(config, head)
    every = max(1, config.steps // CURVE_POINTS)
    curve: list[Row] = []
    decided = 0
    while trainer.step < config.steps:
        decisions, _, _ = one_step(trainer, material, config)
        decided += len(decisions)
        by_outcome = len(decisions.outcomes_W) > 0
        reward = (decisions.outcomes_W if by_outcome else decisions.rewards_NG).mean()
        if watched and (trainer.step % every == 0 or trainer.step == config.steps):
            now = head.trained(embedder.name, {})
            asked = measure("now", lambda now=now: ByHead(now), watched, standard_of(config))
            point = {"step": trainer.step, "decisions": decided, "reward": float(reward)}
            curve.append({**point, "answerable": _mean(asked.scores)})
    return head.trained(embedder.name, {"seed": config.seed}), curve


def summary_of(measured: Measured) -> Row:
    """The means that stand in the table."""
    weights, hits = measured.balance(), measured.hits()
    balanced = sum(w * hit for w, hit in zip(weights, hits, strict=True)) / sum(weights)
    return {
        "answerable": _mean(measured.scores),
        **{f"recall@{k}": _mean([one.recalls[k] for one in measured.needing]) for k in KS},
        "misled": _mean([float(one.asked.misled) for one in measured.misleadable] or [0.0]),
        "operations": _mean(hits),
        "balanced": round(balanced, 4),
        "items": round(measured.items, 1),
        "tokens": round(measured.tokens, 1),
        "ms_a_decision": round(1e3 * measured.seconds, 3),
    }


def under_budgets(make: Any, logs: Sequence[EmbeddedLog], config: OperationsConfig) -> Row:
    """What a decider reaches under each budget."""
    return {
        budget_name(share): summary_of(
            measure("x", make, logs, standard_of(config), budget_share=share, ks=KS)
        )
        for share in BUDGETS
    }


def config_of(what: str, seed: int, base: OperationsConfig) -> OperationsConfig:
    """The settings of an algorithm or a credit; the rest as given."""
    given: Row = {"seed": seed}
    if what in CREDITS:
        given |= {"algorithm": "grpo", "credit": what, "logs_per_step": 1}
    else:
        given |= {"algorithm": what, "credit": "delta_qa"}
    return OperationsConfig.model_validate({**base.model_dump(), **given})


def learn_and_measure(
    wanted: Sequence[str], seeds: int, base: OperationsConfig, results: Results, embedder: Embedder
) -> None:
    """Train and measure each on generated logs; the baselines once."""
    unseen = embed_logs(evaluation_logs(base), embedder, view=base.view)
    tuning = embed_logs(training_logs(base)[:4], embedder, view=base.view)
    for name, make in methods_of({}, tuning, standard_of(base)).items():
        results.once(name, 0, lambda make=make: under_budgets(make, unseen, base))
    for seed in range(seeds):
        for what in wanted:

            def work(what: str = what, seed: int = seed) -> Row:
                config = config_of(what, seed, base)
                material = embed_logs(training_logs(config), embedder, view=config.view)
                head, curve = trained_head(config, material, unseen[:CURVE_LOGS], embedder)
                return {**under_budgets(lambda: ByHead(head), unseen, config), "curve": curve}

            results.once(what, seed, work)


def transfer(
    locomo: Path, seeds: int, base: OperationsConfig, results: Results, embedder: Embedder
) -> None:
    """Trained on generated logs and conv-26; which half of conv-30 is kept."""
    real = {log.id: log for log in logs_of_files([locomo])}
    [unseen] = embed_logs([real["conv-30"]], embedder)
    untrained = _halves({}, [unseen])
    for name in next(iter(untrained.values())):
        found = {unit: halves[name] for unit, halves in untrained.items()}
        results.once(f"transfer: {name}", 0, lambda found=found: dict(found))
    for seed in range(seeds):
        for what in ("grpo", "supervised"):

            def work(what: str = what, seed: int = seed) -> Row:
                config = config_of(what, seed, base)
                logs: list[Lifelog] = training_logs(config)
                if what != "supervised":  # conv-26 has no gold operations
                    logs = [*logs, *[real["conv-26"]] * REAL_COPIES]
                material = embed_logs(logs, embedder, view="turns")
                head, _ = trained_head(config, material, [], embedder)
                walked = measure(
                    *("x", lambda: ByHead(head), [unseen], standard_of(config)),
                    budget_share=0.5,
                    ks=KS,
                )
                halves = _halves({"head": head}, [unseen])
                kept = {unit: found["head, half"] for unit, found in halves.items()}
                memory = {
                    f"recall@{k}": _mean([one.recalls[k] for one in walked.needing]) for k in KS
                }
                return {**kept, "memory of 50%": {**memory, "tokens": walked.tokens}}

            results.once(f"transfer: {what}", seed, work)


def _halves(heads: dict[str, TrainedHead], logs: Sequence[EmbeddedLog]) -> Row:
    return {
        f"half of {unit}": {
            one.name: {
                **{mode: _mean(found) for mode, found in one.recalls.items()},
                "tokens": one.tokens,
            }
            for one in compare_halves(logs, half_methods(heads), unit=unit)
        }
        for unit in ("tokens", "turns")
    }


# Other people's data


def other_data(
    named: Sequence[str],
    limit: int | None,
    heard: bool,
    locomo: Path | None,
    seeds: int,
    base: OperationsConfig,
    results: Results,
    embedder: Embedder,
) -> None:
    """Trained elsewhere, measured on the files: half of the tokens, kept by each method."""
    [name, *files] = named
    logs = [log for path in files for log in logs_of_files([Path(path)])[:limit]]
    logs = [_heard(log) for log in logs] if heard else logs
    unseen = embed_logs([log for log in logs if log.probes], embedder)
    name = f"{name}, {len(unseen)} conversations" + ", users only" * heard
    real = [log for log in logs_of_files([locomo]) if log.id == "conv-26"] if locomo else []
    tuning = embed_logs(training_logs(base)[:4], embedder, view="turns")
    for kept in _kept_halves({}, unseen):
        results.once(f"{name}: {kept}", 0, lambda kept=kept: _kept_halves({}, unseen)[kept])
    for method, make in methods_of({}, tuning, standard_of(base)).items():
        results.once(f"{name}: {WALKED}{method}", 0, lambda make=make: _walked(make, unseen, base))
    for seed in range(seeds):
        for what in ("grpo", "supervised"):
            config = config_of(what, seed, base)
            trained: list[TrainedHead] = []
            also = real * REAL_COPIES if what != "supervised" else []  # it has no gold operations

            def head_of(
                config: OperationsConfig = config, trained: Any = trained, also: Any = also
            ) -> TrainedHead:
                if not trained:
                    taught = [*training_logs(config), *also]
                    material = embed_logs(taught, embedder, view="turns")
                    trained.append(trained_head(config, material, [], embedder)[0])
                head: TrainedHead = trained[0]
                return head

            results.once(
                f"{name}: {what}, half",
                seed,
                lambda what=what, head_of=head_of: _kept_halves({what: head_of()}, unseen)[
                    f"{what}, half"
                ],
            )
            results.once(
                f"{name}: {WALKED}{what}",
                seed,
                lambda head_of=head_of: _walked(lambda: ByHead(head_of()), unseen, base),
            )
    print(_table(results, name, [log.log.id for log in unseen for one in log.probes if one.needed]))


def _heard(log: Lifelog) -> Lifelog:
    """The log without what an assistant says, and without questions that only that answers."""
    unheard = {turn.id for turn in log.turns if turn.speaker in ("assistant", "助手")}
    statements = tuple(one for one in log.statements if one.turn_id not in unheard)
    left = {one.id for one in statements}
    probes = (replace(p, needed=tuple(n for n in p.needed if n in left)) for p in log.probes)
    return replace(log, statements=statements, probes=tuple(p for p in probes if p.needed))


WALKED = "memory of "


def _kept_halves(heads: dict[str, TrainedHead], logs: Sequence[EmbeddedLog]) -> dict[str, Row]:
    """By method: recall of every question by the number of items found, and tokens kept."""
    found: dict[str, Row] = {}
    for k in KS:
        for one in compare_halves(logs, half_methods(heads), top_k=k):
            row = found.setdefault(one.name, {"of half": {"tokens": one.tokens}, "asked": {}})
            row["asked"][f"recall@{k}"] = one.recalls["dense"]
            row["of half"][f"recall@{k}"] = _mean(one.recalls["dense"])
    return found


def _walked(make: Any, logs: Sequence[EmbeddedLog], config: OperationsConfig) -> Row:
    """The same of the memory that a method keeps, never with more than half of all tokens."""
    walked = measure("x", make, logs, standard_of(config), budget_share=0.5, ks=KS)
    # Questions of one conversation come in the order in which they are asked; here it has one.
    asked = {f"recall@{k}": [one.recalls[k] for one in walked.needing] for k in KS}
    means = {name: _mean(values) for name, values in asked.items()}
    return {"of half": {**means, "tokens": walked.tokens}, "asked": asked}


def _table(results: Results, name: str, conversations: Sequence[str]) -> str:
    """Markdown: mean over seeds with the 95% interval over questions, and tokens kept."""
    lines = ["| " + " | ".join(("method", "seeds", *(f"recall@{k}" for k in KS), "tokens")) + " |"]
    lines.append("|---" * (3 + len(KS)) + "|")
    for what in dict.fromkeys(row["what"] for row in results.rows):
        if not what.startswith(f"{name}: "):
            continue
        rows = [row for row in results.rows if row["what"] == what]
        cells = [what.removeprefix(f"{name}: "), str(len(rows))]
        for k in KS:
            each = np.mean([row["asked"][f"recall@{k}"] for row in rows], axis=0).tolist()
            low, high = clustered_interval(each, conversations)
            cells.append(f"{100 * np.mean(each):.1f} [{100 * low:.1f}, {100 * high:.1f}]")
        cells.append(f"{np.mean([row['of half']['tokens'] for row in rows]):.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([f"\n{name}: evidence recall, half of the tokens\n", *lines, ""])


# Speed


@contextmanager
def timed(owner: Any, name: str, spent: dict[str, float]) -> Iterator[None]:
    """Adds the seconds of every call of `owner.name` to `spent`."""
    inner = getattr(owner, name)

    def around(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return inner(*args, **kwargs)
        finally:
            spent[name] = spent.get(name, 0.0) + time.perf_counter() - began

    with mock.patch.object(owner, name, around):
        yield


def training_speed(
    base: OperationsConfig, embedder: Embedder, steps: int
) -> tuple[Row, TrainedHead]:
    """Decisions a second, and the share of each phase, after one step that warms the caches."""
    material = embed_logs(training_logs(base), embedder, view=base.view)
    head = OperationHead(Shape(embedder.dimension, base.width, base.layers, base.heads), seed=0)
    trainer = head_trainer(config_of("grpo", 0, base), head)
    one_step(trainer, material, base)
    spent: dict[str, float] = {}
    walked = learnt = 0.0
    count = 0
    processor = time.process_time()
    with ExitStack() as stack:
        stack.enter_context(timed(LogMemory, "related", spent))
        for name in ("observe", "delta_qa"):
            stack.enter_context(timed(walk_module, name, spent))
        for _ in range(steps):
            decisions, _, seconds = one_step(trainer, material, base)
            count += len(decisions)
            walked, learnt = walked + seconds["walk"], learnt + seconds["learn"]
    phases = {
        "related search": spent["related"],
        "observe": spent["observe"],
        "score every operation (delta_qa)": spent["delta_qa"],
        "choose and apply": walked - sum(spent.values()),
        "update the network": learnt,
    }
    whole = walked + learnt
    row = {
        "decisions": count,
        "decisions_a_second": round(count / whole, 1),
        "scored_operations_a_second": round(count * base.num_generations / whole, 1),
        "share": {name: round(seconds / whole, 3) for name, seconds in phases.items()},
        "ms_a_decision": {name: round(1e3 * s / count, 3) for name, s in phases.items()},
        "cpu_seconds": round(time.process_time() - processor, 1),
    }
    return row, head.trained(embedder.name, {})


class Stub(BaseHTTPRequestHandler):
    """A chat model that adds everything, at once."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        content = json.dumps({"op": "ADD", "id": None, "text": "It was said.", "reason": "new"})
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "stub"}
        said = json.dumps({**answer, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *arguments: Any) -> None:
        """Stay quiet."""


def adding_speed(head: TrainedHead, embedder: Embedder, adds: int) -> Row:
    """Median milliseconds of `Memory.add`, the three managers taking turns on the same texts."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{served.server_port}/v1"
    managers: dict[str, Any] = {
        "trained head": TrainedManager(head),
        "rules": RuleManager(),
        "chat model at a stub": ChatManager(OpenAIChatModel("stub", api_key="k", base_url=url)),
    }
    logs = evaluation_logs(OperationsConfig(eval_logs=1))
    texts = [turn.text for turn in logs[0].turns][: adds + 5]
    taken: dict[str, list[float]] = {name: [] for name in managers}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        memories = {
            name: stack.enter_context(
                Memory.open(
                    Path(folder) / str(number), embedder=embedder, manager=manager, env_file=None
                )
            )
            for number, (name, manager) in enumerate(managers.items())
        }
        for text in texts:
            for name, memory in memories.items():
                began = time.perf_counter()
                memory.add(text, user_id="ann")
                taken[name].append(time.perf_counter() - began)
    served.shutdown()
    medians = {name: statistics.median(times[5:]) for name, times in taken.items()}
    return {
        "adds": adds,
        "median_ms": {name: round(1e3 * seconds, 2) for name, seconds in medians.items()},
        "times_the_trained_head": {
            name: round(seconds / medians["trained head"], 2) for name, seconds in medians.items()
        },
    }


# What it comes to


def summarise(results: Results) -> None:
    """One line for each method and budget: mean over seeds with its interval."""
    for what in dict.fromkeys(row["what"] for row in results.rows):
        rows = [row for row in results.rows if row["what"] == what]
        groups = [key for key, value in rows[0].items() if isinstance(value, dict)]
        for group in groups:
            names = [k for k, v in rows[0][group].items() if isinstance(v, int | float)]
            found = {name: over_seeds([row[group][name] for row in rows]) for name in names}
            if found:
                line = {"bench": "memory_policies", "summary": what, "of": group}
                print(json.dumps({**line, "seeds": len(rows), **found}, ensure_ascii=False))


def over_seeds(values: Sequence[float]) -> list[float]:
    """Mean, and the 95% interval of Student's t where there are several seeds."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return [round(mean, 4)]
    half = STUDENT_T.get(n, 2.262) * float(np.std(values, ddof=1)) / n**0.5
    return [round(mean, 4), round(mean - half, 4), round(mean + half, 4)]


def plot_credit(results: Results, out_png: Path) -> None:
    """Answerability over decisions for each credit: mean and range over seeds."""
    figure = new_figure(width=7.0)
    axes = figure.subplots()
    names = {"grpo": "delta_qa, same state", "trajectory": "one reward a walk"}
    names["mem_alpha_original"] = "Mem-alpha's reward a walk"
    for (what, label), colour in zip(names.items(), (BLUE, ORANGE, GREEN), strict=True):
        curves = [row["curve"] for row in results.rows if row["what"] == what]
        if not curves:
            continue
        decisions = [point["decisions"] for point in curves[0]]
        scores = np.array([[point["answerable"] for point in curve] for curve in curves])
        axes.plot(decisions, scores.mean(axis=0), color=colour, label=f"{label} ({len(curves)})")
        low, high = scores.min(axis=0), scores.max(axis=0)
        axes.fill_between(decisions, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("decisions in training", color=INK)
    axes.set_title("Answerable questions on held-out logs (seeds)", loc="left", color=INK)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.legend(frameon=False, fontsize=9)
    save_figure(figure, out_png)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def main() -> None:
    """Run the parts that are wanted and print what they come to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="three steps, a few logs, one seed")
    parser.add_argument("--locomo", type=Path, help="file with conv-26 and conv-30")
    parser.add_argument("--data", nargs="+", metavar="NAME FILE", help="for --only data")
    parser.add_argument("--limit", type=int, help="conversations of each file of --data")
    parser.add_argument("--heard", action="store_true", help="leave out what an assistant says")
    parser.add_argument("--out", type=Path, default=Path("memory_policies.jsonl"))
    parser.add_argument("--plot", type=Path, help="PNG of the curves of --only credit")
    asked = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    base = load_settings(OperationsConfig, None, [*(QUICK if asked.quick else []), *asked.settings])
    seeds = 1 if asked.quick else asked.seeds
    results, embedder = Results(asked.out, base), open_embedder(base.embedder)
    wanted = [
        *(ALGORITHMS if "algorithms" in asked.only else ()),
        *(("grpo", *CREDITS) if "credit" in asked.only else ()),
    ]
    if wanted:
        learn_and_measure(list(dict.fromkeys(wanted)), seeds, base, results, embedder)
    if "transfer" in asked.only and asked.locomo is not None:
        transfer(asked.locomo, seeds, base, results, embedder)
    elif asked.only == ["transfer"]:
        parser.error("--only transfer needs --locomo FILE")
    if "data" in asked.only and len(asked.data or ()) > 1:
        given = (asked.data, asked.limit, asked.heard, asked.locomo)
        other_data(*given, seeds, base, results, embedder)
    elif asked.only == ["data"]:
        parser.error("--only data needs --data NAME FILE...")
    if "speed" in asked.only:
        row, head = training_speed(base, embedder, 2 if asked.quick else 5)
        line = {"bench": "memory_policies", "what": "training speed", **row}
        print(json.dumps(line), flush=True)
        # Not the stored embedder: what is added is new, so it must be embedded.
        from memograd.memory.embedders.load import load_embedder

        row = adding_speed(head, load_embedder(base.embedder), 20 if asked.quick else 100)
        print(json.dumps({"bench": "memory_policies", "what": "Memory.add", **row}), flush=True)
    summarise(results)
    if asked.plot is not None:
        plot_credit(results, asked.plot)


if __name__ == "__main__":
    main()
