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

    algorithms  GRPO, supervised on gold operations, REINFORCE, PPO and DQN (or some of them, by
                --algorithms), and every baseline, on
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
import json
from pathlib import Path

import torch
from policies_bench.learning import ALGORITHMS, CREDITS, learn_and_measure, plot_credit
from policies_bench.other_data import other_data
from policies_bench.results import Results, summarise
from policies_bench.speed import adding_speed, training_speed
from policies_bench.transfer import transfer

from memograd.config.load import load_settings
from memograd.memory.embedders.load import open_embedder
from memograd.tasks.memory_ops.settings import OperationsConfig

PARTS = ("algorithms", "credit", "transfer", "data", "speed")
QUICK = ["steps=3", "logs=4", "eval_logs=2"]


def main() -> None:
    """Run the parts that are wanted and print what they come to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument(
        "--algorithms", choices=ALGORITHMS, nargs="+", default=list(ALGORITHMS), help="of that part"
    )
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
        *(asked.algorithms if "algorithms" in asked.only else ()),
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
