"""`memograd plan`: what a run would need on GPUs, before one is rented.

A few lines over `memograd.planning`, which is arithmetic: nothing is loaded or downloaded.
"""

from __future__ import annotations

from typing import Annotated

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog
from memograd.errors import BadInput

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
    from memograd.planning import Workload, make_plan, parse_cluster, report, shape_of
    from memograd.planning.hardware import Efficiency
    from memograd.planning.simulation import play

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
        show.as_json(report.as_data(made, played))
        return
    typer.echo(report.headline(made))
    typer.echo(f"Best: {made.best.name}.\n")
    show.table(["learner's device", "GiB"], report.memory_rows(made.best))
    typer.echo("")
    show.table(["of a step", "seconds"], report.time_rows(made.best))
    typer.echo("")
    headings = ["placement", "s a step", "tokens/s", "micro-batch", "GiB"]
    show.table(headings, report.placement_rows(made))
    typer.echo("")
    headings = ["staleness", "s a step", "learner idle", "sampler idle", "mean age", "oldest"]
    show.table(headings, [report.played_row(staleness, one) for staleness, one in played.items()])
    for line in made.refused:
        typer.echo(f"Left out: {line}")
