"""relations from end to end: train the model on author batches, calibrate it, fit its thresholds,
measure it on others.

    run = train(RelationsConfig(data=[...], eval_data=[...]))    run/final/relations.npz is served

Invariant: a run that was stopped and resumed gives the weights of the run that never stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.trainer import Stage
from memograd.memory.embedders.e5_weights import read_e5
from memograd.memory.relations.model import SHIPPED, RelationModel
from memograd.memory.relations.rows import RowBuilder
from memograd.memory.relations.weights import Weights, read_weights, write_weights
from memograd.tasks.base.progress import console
from memograd.tasks.base.recipe import Job, Recipe, located
from memograd.tasks.base.steps import check_began_with, environment, one_process
from memograd.tasks.relations.cases import Case, read_cases
from memograd.tasks.relations.fit import fit
from memograd.tasks.relations.later import QuestionTraining
from memograd.tasks.relations.learning import MODEL_FILE, Steps, SupervisedTraining
from memograd.tasks.relations.lives import met_in_lives
from memograd.tasks.relations.measure import (
    answered,
    answers_table,
    calibrated,
    measured,
    related,
    write_report,
)
from memograd.tasks.relations.met import read_met
from memograd.tasks.relations.network import RelationNetwork
from memograd.tasks.relations.questions import AskedDialogue, read_asked
from memograd.tasks.relations.rows import Examples, WrittenTurn, read_dialogues, read_pairs
from memograd.tasks.relations.settings import RelationsConfig
from memograd.tasks.relations.talks import Talks, read_talks

SPLIT: Final = Path("corpus/split.json")
_FILES: Final = ("data", "eval_data", "pairs", "lives", "met", "talks", "cases")


def make_job(config: RelationsConfig, checkpoint: Path | None) -> Job[None]:
    """Training on author batches; measured on others once it is done."""
    check_settings(config)
    start = _start(config)
    if start is not None and start.layers != config.layers:
        raise BadInput(
            f"start={config.start or SHIPPED} has {start.layers} layers, and layers="
            f"{config.layers}: set layers={start.layers}."
        )
    by_grpo = config.algorithm == "grpo"
    asked = [one for path in config.data for one in read_asked(path)] if by_grpo else []
    asked = [one for one in asked if one.written]
    if by_grpo and not asked:
        raise BadInput(
            "algorithm=grpo learns from the later questions of dialogues (q), and data has none:"
            " name other author batches with data=FILES."
        )
    cases = read_cases(config.cases, config.case_authors)
    turns = [said for path in config.data for said in read_dialogues(path)]
    turns += [said for path in config.pairs for said in read_pairs(path)]
    turns += [said for path in config.met for said in read_met(path)]
    unseen = [one for path in config.eval_data for one in read_asked(path)]
    talks = read_talks(config.talks)
    # Last of what is read, for it is told to a memory.
    turns += [said for path in config.lives for said in met_in_lives(path)]
    e5 = read_e5()
    examples = Examples(turns, RowBuilder(e5), config, talks)
    torch.manual_seed(config.seed)
    network = RelationNetwork(e5, layers=config.layers, dropout=config.dropout)
    if config.learning_layers is not None:
        network.freeze(config.learning_layers)
    kept: dict[str, Any] = {}
    if start is not None:
        network.load_weights(start)
        about = start.about
        kept = {
            "relation_temperature": about.relation_temperature,
            "worth_temperature": about.worth_temperature,
            "close_above": about.close_above,
            "thresholds": about.thresholds,
        }

    def describe(run: RunFolder) -> None:
        check_began_with(run, fingerprint(turns, start, talks))
        heard = len(asked) or len(turns)
        console.print(
            f"{heard} {'dialogues' if asked else 'turns'} to train on, {len(unseen)} dialogues of"
            " other authors to measure on;"
            f" {sum(p.numel() for p in network.parameters()) / 1e6:.1f} million weights"
        )

    def training(stage: Stage) -> Steps:
        if by_grpo:
            return QuestionTraining(
                stage, config, network, examples, e5, kept, start, dialogues=asked
            )
        return SupervisedTraining(stage, config, network, examples, e5, kept, start)

    def finish(folder: Path) -> None:
        if config.algorithm == "supervised":
            finished(folder, unseen, cases)
        if unseen:
            console.print(measure_run(folder, unseen, config))

    return Job(
        training=training,
        environment=lambda: environment("torch"),
        describe=describe,
        share=one_process("relations"),
        finish=finish,
        describe_step=_describe_step,
    )


def check_settings(config: RelationsConfig) -> None:
    """Raise BadInput for settings that contradict each other, or name a file that is not there;
    reads nothing."""
    if not config.data:
        raise BadInput("relations needs author batches to train on: name them with data=FILES.")
    twice = {*config.data, *config.lives, *config.met} & set(config.eval_data)
    if twice:
        raise BadInput(
            f"{sorted(map(str, twice))[0]} is named by data, lives or met, and by eval_data: an"
            " author batch is used for training or for measuring, never for both."
        )
    by_grpo = config.algorithm == "grpo"
    useless = next((n for n in ("pairs", "lives", "met") if getattr(config, n)), None)
    if by_grpo and useless:
        raise BadInput(
            f"algorithm=grpo learns from the questions of dialogues, and {useless} have none: leave"
            f" out {useless}."
        )
    if by_grpo and config.cases:
        raise BadInput(
            "algorithm=grpo learns for the thresholds that it began with: leave out cases."
        )
    if config.start_share and config.start is None:
        raise BadInput(
            "start_share is a share of the weights that training begins with: name them with"
            " start=FILE."
        )
    if config.learning_layers is not None and config.learning_layers > config.layers:
        raise BadInput(
            f"learning_layers={config.learning_layers} is more than layers={config.layers}: set it"
            " to at most that."
        )
    for name in _FILES:
        for path in getattr(config, name):
            if not path.exists():
                raise BadInput(f"{name} names {path}, which does not exist: correct the path.")


def _start(config: RelationsConfig) -> Weights | None:
    """The weights that training begins with; None: fresh heads."""
    if config.start is None and config.algorithm == "supervised":
        return None
    return read_weights(config.start or SHIPPED)


def _describe_step(metrics: dict[str, Any]) -> str:
    if "reward_mean" in metrics:
        return (
            f"reward {metrics['reward_mean']:.3f}  varied {metrics['varied']:.2f}"
            f"  KL {metrics['kl']:.4f}"
        )
    return f"relations {metrics['relation_loss']:.3f}  worths {metrics['worth_loss']:.3f}"


def finished(folder: Path, unseen: Sequence[AskedDialogue], cases: Sequence[Case]) -> None:
    """Calibrates the final model of a run on `unseen`, then fits its thresholds to the cases.

    After GRPO neither is done: it has learnt for what it began with.
    """
    path = folder / "final" / MODEL_FILE
    weights = read_weights(path)
    if unseen:
        weights = calibrated(weights, [said for one in unseen for said in one.turns])
    if cases:
        console.print(f"Fitting the thresholds to {len(cases)} behaviour cases.")
        fitted = fit(weights, cases, say=console.print)
        (folder / "thresholds.md").write_text(fitted.report + "\n", encoding="utf-8")
        console.print(f"\n{fitted.report}\n")
        weights = replace(weights, about=replace(weights.about, thresholds=fitted.thresholds))
    write_weights(weights, path)


def measure_run(folder: Path, unseen: Sequence[AskedDialogue], config: RelationsConfig) -> str:
    """Measures the final model of a run and returns the report."""
    path = folder / "final" / MODEL_FILE
    turns = [said for one in unseen for said in one.turns]
    model = RelationModel(read_weights(path))
    report = write_report(
        {
            "Items as the memory's reader words them, with what came before": measured(
                model, turns
            ),
            "Items as the memory's reader words them, nothing before": measured(
                model, turns, lambda model, turns: related(model, turns, before=False)
            ),
            "Statements, with what came before": measured(
                model, turns, lambda model, turns: related(model, turns, as_read=False)
            ),
        },
        folder,
    )
    table = answers_table({"this run": answered(model, unseen, config.later)})
    (folder / "later_questions.md").write_text(table + "\n", encoding="utf-8")
    return f"{report}\n\n## Later questions\n\n{table}"


def settled(config: RelationsConfig) -> RelationsConfig:
    """The same settings for any working directory; those of a resumed run as they were given.

    Without data it is what the weights that ship are trained on, and without cases what their
    thresholds are fitted to, where `corpus/split.json` is.
    """
    if config.resume is None and not config.data and SPLIT.is_file():
        shipped = _shipped_data(config)
        left_out = {name: shipped[name] for name in shipped.keys() - config.model_fields_set}
        config = config.model_copy(update=left_out)
    if config.resume is None and config.bfloat16 is None:
        # Written down with the run, which goes on alike on another machine.
        fast = bool(torch.cpu.get_capabilities().get("amx_bf16"))
        config = config.model_copy(update={"bfloat16": fast})
    return located(config)


def _shipped_data(config: RelationsConfig) -> dict[str, Any]:
    split = json.loads(SPLIT.read_text(encoding="utf-8"))["relations"]

    def files(use: str) -> list[Path]:
        return [SPLIT.parent / f"{name}.jsonl" for name in split.get(use, [])]

    found: dict[str, Any] = {"data": files("train"), "eval_data": files("chosen_by")}
    if config.algorithm == "supervised":
        found |= {"cases": files("fitted_to"), "case_authors": split.get("fitted_to_authors", [])}
    return found


def fingerprint(
    turns: Sequence[WrittenTurn], start: Weights | None = None, talks: Talks | None = None
) -> str:
    """Changes with any turn, and with the weights that training began with."""
    found = hashlib.sha256(repr(list(turns)).encode())
    for talk in talks.turns if talks else []:
        found.update(repr((talk.text, talk.before)).encode())
    if start is not None:
        for name in sorted(start.vectors):
            found.update(start.vectors[name].tobytes())
    return found.hexdigest()


RECIPE: Recipe[RelationsConfig, None] = Recipe(make_job, console, settled)
"""The task `relations`."""
