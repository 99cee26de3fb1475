"""`memograd plan`: what a run would need on GPUs, before one is rented.

`memograd.planning` is the arithmetic, for which nothing is loaded or downloaded; here is how a plan
reads: what it needs, where the time goes, what was tried beside it.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog
from memograd.errors import BadInput
from memograd.planning import Placement, RankedPlacements, Workload, make_plan, parse_cluster
from memograd.planning.costs import room
from memograd.planning.hardware import GIB, Efficiency
from memograd.planning.shapes import shape_of
from memograd.planning.simulation import Played, play

app = typer.Typer()


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd plan --model Qwen/Qwen2.5-7B-Instruct --gpus 8xH200\n"
        "  memograd plan --model Qwen2.5-1.5B --gpus 1xH100 --tuning full --group 16 --answer 512\n"
        "  memograd plan --model my-model/config.json --gpus 16xA100 --staleness 2 --json",
        "Seconds follow from data sheets and assumed efficiencies (docs/planning.md): trust the\n"
        "memory first, the proportions second, and the seconds last.",
    )
)
def plan(
    model: Annotated[str, typer.Option(help="A built-in name, or the path of a config.json.")],
    gpus: Annotated[str, typer.Option(help="Count and device, such as 8xH200.")],
    tuning: Annotated[str, typer.Option(help="lora or full.")] = "lora",
    rank: Annotated[int, typer.Option(help="Rank of the adapter.")] = 16,
    prompts: Annotated[int, typer.Option(help="Prompts a step.")] = 16,
    group: Annotated[int, typer.Option(help="Answers to a prompt.")] = 8,
    prompt: Annotated[int, typer.Option(help="Mean tokens of a prompt.")] = 1024,
    answer: Annotated[int, typer.Option(help="Mean tokens of an answer.")] = 256,
    spread: Annotated[
        float, typer.Option(help="Deviation of the answers' lengths over their mean.")
    ] = 0.5,
    passes: Annotated[int, typer.Option(help="Optimisation passes over a step.")] = 1,
    reference: Annotated[
        bool, typer.Option("--reference", help="A KL term against a frozen copy (beta above 0).")
    ] = False,
    checkpointing: Annotated[
        bool, typer.Option(help="Compute activations again in the backward pass.")
    ] = True,
    staleness: Annotated[
        int, typer.Option(min=0, help="Versions that a rollout may be old (0: synchronous).")
    ] = 0,
    per_machine: Annotated[int, typer.Option(min=1, help="GPUs of a machine.")] = 8,
    mfu: Annotated[
        float,
        typer.Option(help="Share of the peak that the matrix products of learning reach."),
    ] = 0.45,
    json: given.AsJson = False,
) -> None:
    """Say what a run needs: memory by part, seconds a step, the best placement."""
    if tuning not in ("lora", "full"):
        raise BadInput(f'--tuning must be "lora" or "full", not {tuning!r}.')
    if not 0 < mfu <= 1:
        raise BadInput(f"--mfu must be above 0 and at most 1, not {mfu}.")
    work = Workload(
        prompts=prompts,
        group=group,
        prompt=prompt,
        answer=answer,
        spread=spread,
        train="full" if tuning == "full" else "lora",
        rank=rank,
        passes=passes,
        reference=reference,
        checkpointing=checkpointing,
    )
    cluster = parse_cluster(gpus, per_machine=per_machine)
    made = make_plan(
        shape_of(model), cluster, work, efficiency=Efficiency(mfu=mfu), max_staleness=staleness
    )
    played = {staleness: play(made.best, work, max_staleness=staleness)}
    if json:
        show.as_json(_as_data(made, played))
        return
    typer.echo(_headline(made))
    typer.echo(f"Best: {made.best.name}.\n")
    show.table(["learner's device", "GiB"], _memory_rows(made.best))
    typer.echo("")
    show.table(["of a step", "seconds"], _time_rows(made.best))
    typer.echo("")
    headings = ["placement", "s a step", "tokens/s", "micro-batch", "GiB"]
    show.table(headings, _placement_rows(made))
    typer.echo("")
    headings = ["staleness", "s a step", "learner idle", "sampler idle", "mean age", "oldest"]
    show.table(headings, [_played_row(staleness, one) for staleness, one in played.items()])
    for line in made.refused:
        typer.echo(f"Left out: {line}")


def _headline(plan: RankedPlacements) -> str:
    """One sentence: does it fit, and how long does a step take?"""
    best = plan.best
    needs, has = best.memory.total / GIB, room(plan.cluster) / GIB
    return (
        f"{plan.shape.name} ({plan.shape.weights / 1e9:.2f}B weights), {plan.work.train}, on "
        f"{plan.cluster.count} x {plan.cluster.device.name}: a learner's device needs about "
        f"{needs:.0f} GiB of the {has:.0f} that can be filled; a step of {plan.work.rollouts} "
        f"answers takes about {best.step.seconds:.0f} s."
    )


def _memory_rows(placement: Placement) -> list[list[str]]:
    """What fills a learner's device, in GiB."""
    rows = [[name, f"{size / GIB:.2f}"] for name, size in placement.memory.parts().items()]
    return [*rows, ["sampler's cache (a replica)", f"{placement.cache / GIB:.2f}"]]


def _time_rows(placement: Placement) -> list[list[str]]:
    """Where the seconds of a step go."""
    step = placement.step
    parts = {
        "prefill": step.prefill,
        "decoding": step.decode,
        "learning": step.learn,
        "new weights to the sampler": step.sync,
        "sleeping and waking": step.sleep,
    }
    return [[name, f"{seconds:.2f}"] for name, seconds in parts.items()]


def _placement_rows(plan: RankedPlacements) -> list[list[str]]:
    """The eight fastest placements, the fastest first."""
    return [
        [
            placement.name,
            f"{placement.step.seconds:.1f}",
            f"{plan.work.answer_tokens / placement.step.seconds:.0f}",
            str(placement.micro_batch),
            f"{placement.memory.total / GIB:.0f}",
        ]
        for placement in plan.placements[:8]
    ]


def _played_row(staleness: int, played: Played) -> list[str]:
    """One simulated run."""
    return [
        str(staleness),
        f"{played.seconds_a_step:.1f}",
        f"{played.learner_idle:.0%}",
        f"{played.sampler_idle:.0%}",
        f"{played.staleness_mean:.2f}",
        str(played.staleness_max),
    ]


def _as_data(plan: RankedPlacements, played: dict[int, Played]) -> dict[str, Any]:
    """The whole plan as plain data, for `--json`."""
    return {
        "model": {**asdict(plan.shape), "weights": plan.shape.weights},
        "cluster": asdict(plan.cluster),
        "workload": asdict(plan.work),
        "placements": [
            {
                "name": placement.name,
                "seconds_a_step": placement.step.seconds,
                "sampled_tokens_a_second": plan.work.answer_tokens / placement.step.seconds,
                "seconds": asdict(placement.step),
                "learner_bytes": {**placement.memory.parts(), "total": placement.memory.total},
                "micro_batch_tokens": placement.micro_batch,
                "rollouts_at_once": placement.at_once,
            }
            for placement in plan.placements
        ],
        "refused": list(plan.refused),
        "simulated": {str(staleness): asdict(one) for staleness, one in played.items()},
    }
