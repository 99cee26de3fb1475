"""`memograd reward-model`: convert, train, evaluate, merge and serve.

Each is a few lines over a function of `memograd.warm_start` or `memograd.reward_model`, which
arrive, and torch with them, when a command runs.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.help import epilog, setting_paragraphs
from memograd.cli.training import GivenSettings, Out, SettingsFile, room, told
from memograd.cli.warm_start import NumberType
from memograd.errors import BadInput, Stopped
from memograd.warm_start.settings import RewardModelSettings

app = typer.Typer()
reward_model_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    reward_model_app,
    name="reward-model",
    help="Train, measure and serve a model that scores answers.",
    epilog=epilog(
        "Examples:\n"
        "  memograd reward-model convert raw.jsonl --out pairs.jsonl --held-out test.jsonl\n"
        "  memograd reward-model train --data pairs.jsonl --eval test.jsonl --out runs/rm\n"
        "  memograd reward-model serve --model runs/rm\n"
        "  memograd train text --data prompts.jsonl --rewards 'reward_model(path=\"runs/rm\")'"
    ),
)


class StringPrompts(StrEnum):
    """What a prompt that is a text means."""

    chat = "chat"
    text = "text"


Model = Annotated[
    str, typer.Option(metavar="MODEL", help="Run folder, folder of a saved model, or hub id.")
]
Strings = Annotated[
    StringPrompts,
    typer.Option(help="A prompt that is a text is a user's message (chat), or stays a text."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]


@reward_model_app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd reward-model convert raw.jsonl.gz --out pairs.jsonl\n"
        "  memograd reward-model convert raw.jsonl --out pairs.jsonl --held-out test.jsonl "
        "--fraction 0.2\n"
        "  memograd reward-model convert raw.jsonl --out pairs.jsonl --apart-from test.jsonl"
    )
)
def convert(
    data: Annotated[
        Path, typer.Argument(metavar="FILE", help="Pairs: strings, messages or Human:/Assistant:.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The pairs in one format.")],
    held_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A part of the conversations, kept for measuring."),
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(min=0.001, max=0.999, help="The size of that part; else 0.1."),
    ] = None,
    apart_from: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Pairs to measure on; their conversations are left out."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The whole report as JSON.")
    ] = None,
    string_prompts: Strings = StringPrompts.chat,
) -> None:
    """Bring raw preference data into one format, and list what is wrong with it."""
    from memograd.data.record_files import check_new, write_new

    if fraction is not None and held_out is None:
        raise BadInput("--fraction is the size of the part in --held-out: name its file too.")
    if report is not None:
        check_new(report)
    done = room("warm_start.reward_model_rows", "trl,gateway").convert(
        data,
        out,
        held_out=held_out,
        fraction=0.1 if fraction is None else fraction,
        apart_from=apart_from,
        string_prompts=string_prompts.value,
    )
    if report is not None:
        write_new(report, done.as_json())
    for line in done.lines():
        typer.echo(line)


@reward_model_app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd reward-model train --data pairs.jsonl\n"
        "  memograd reward-model train --data pairs.jsonl --eval test.jsonl model=./qwen\n"
        "  memograd reward-model train --data pairs.jsonl tuning=full epochs=2",
        *setting_paragraphs(RewardModelSettings),
    )
)
def train(
    settings: GivenSettings = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pairs with prompt, chosen and rejected.")
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option("--eval", metavar="FILE", help="Pairs to measure on; else a part of --data."),
    ] = None,
    begun: Annotated[
        Path | None,
        typer.Option("--from", metavar="RUN", help="Reward model whose adapter this begins with."),
    ] = None,
    out: Out = None,
    config: SettingsFile = None,
) -> None:
    """Train a reward model on pairs and measure it on held-out ones (needs memograd[trl])."""
    options = {"data": data, "eval_data": evaluate, "adapter": begun, "out": out}
    resolved = told(RewardModelSettings, options, settings, config)
    run = room("warm_start.reward_model", "trl,gateway").train_reward_model(resolved)
    typer.echo(f"The run is in {run}")


@reward_model_app.command(
    epilog=epilog("Examples:\n  memograd reward-model evaluate --model runs/rm --data test.jsonl")
)
def evaluate(
    model: Model,
    data: Annotated[Path, typer.Option(metavar="FILE", help="Pairs to measure on.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder of the report.")
    ] = None,
    string_prompts: Strings = StringPrompts.chat,
    device: Device = "auto",
) -> None:
    """Measure a reward model: accuracy, margins, calibration, length bias."""
    folder = room("warm_start.reward_model", "trl,gateway").evaluate_reward_model(
        model, data, out, string_prompts=string_prompts.value, device=device
    )
    typer.echo(f"The report is in {folder}")


@reward_model_app.command(
    epilog=epilog("Examples:\n  memograd reward-model merge --run runs/rm --out my-reward-model")
)
def merge(
    run: Annotated[Path, typer.Option(metavar="RUN", help="Folder of a reward model's run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder of the whole model.")],
    dtype: Annotated[
        NumberType, typer.Option(help="Number type of the weights.")
    ] = NumberType.float32,
) -> None:
    """Write a trained reward model as one model, which loads without peft."""
    folder = room("warm_start.reward_model", "trl,gateway").merge_reward_model(
        run, out, dtype.value
    )
    typer.echo(f"The model is in {folder}")


@reward_model_app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd reward-model serve --model runs/rm --port 8200\n"
        "  MEMOGRAD_REWARD_MODEL_KEY=secret memograd reward-model serve --model runs/rm "
        "--host 0.0.0.0"
    )
)
def serve(
    model: Model,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8200,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="MEMOGRAD_REWARD_MODEL_KEY", help="Key that requests must bring; none: open."
        ),
    ] = None,
    max_batch: Annotated[int, typer.Option(min=1, help="Answers of one forward, at most.")] = 64,
    max_body_kib: Annotated[
        int, typer.Option(min=1, help="Size of a request, in KiB, at most.")
    ] = 4096,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that clients may call it by; repeat."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Answer scores by HTTP: /score, /score-pair, /score-batch, /health."""
    server = room("reward_model.server", "trl,gateway")
    server.check_binding(host, api_key)
    scorer = room("reward_model.model", "trl,gateway").RewardModel.open(model, device=device)
    typer.echo(f"Scoring with {model} on http://{host}:{port}")
    ended_by = server.serve(
        scorer,
        name=model,
        host=host,
        port=port,
        api_key=api_key,
        max_batch=max_batch,
        max_body_bytes=max_body_kib * 1024,
        hosts=allow_host or (),
    )
    if ended_by is not None:
        raise Stopped("The server has ended; what it was asked is answered.", ended_by)
