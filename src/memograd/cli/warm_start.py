"""The commands around training: `sft`, `dpo` and `reward-model` before it, `merge` after it.

Each is a few lines over a function of `memograd.warm_start` or `memograd.reward_model`. They, and
torch with them, arrive when a command runs.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.help import epilog, setting_paragraphs
from memograd.cli.training import GivenSettings, Out, SettingsFile, room, told
from memograd.errors import BadInput, Stopped
from memograd.warm_start.settings import DpoSettings, RewardModelSettings, SftSettings

app = typer.Typer()


class NumberType(StrEnum):
    """Number types that merged weights can be written in."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


Begun = Annotated[
    Path | None,
    typer.Option("--from", metavar="RUN", help="Run whose adapter this begins with."),
]


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd sft --data chats.jsonl\n"
        "  memograd sft --task memory-qa --data locomo.json --train conv-26 steps=60\n"
        "  memograd sft --data more.jsonl --from runs/my-run learning_rate=1e-4",
        *setting_paragraphs(SftSettings),
    )
)
def sft(
    settings: GivenSettings = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows with messages, or with prompt and completion."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="memory-qa: learn the gold answers about conversations."),
    ] = None,
    train: Annotated[
        str | None, typer.Option(metavar="IDS", help="memory-qa: conversations to train on.")
    ] = None,
    evaluate: Annotated[
        str | None,
        typer.Option("--eval", metavar="IDS", help="memory-qa: conversations to keep apart."),
    ] = None,
    begun: Begun = None,
    out: Out = None,
    config: SettingsFile = None,
) -> None:
    """Train a model on given answers (needs memograd[trl])."""
    options = {
        "data": data,
        "task": task,
        "train": train,
        "eval": evaluate,
        "adapter": begun,
        "out": out,
    }
    resolved = told(SftSettings, options, settings, config)
    run = room("warm_start.sft", "trl").sft(resolved)
    typer.echo(f"The run is in {run}")


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd dpo --data pairs.jsonl\n"
        "  memograd dpo --data pairs.jsonl --from runs/my-sft beta=0.2",
        *setting_paragraphs(DpoSettings),
    )
)
def dpo(
    settings: GivenSettings = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows with prompt, chosen and rejected."),
    ] = None,
    begun: Begun = None,
    out: Out = None,
    config: SettingsFile = None,
) -> None:
    """Train a model on which of two answers is better (needs memograd[trl])."""
    options = {"data": data, "adapter": begun, "out": out}
    resolved = told(DpoSettings, options, settings, config)
    run = room("warm_start.dpo", "trl").dpo(resolved)
    typer.echo(f"The run is in {run}")


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd merge --run runs/my-run --out my-model\n"
        "  memograd merge --run runs/my-run --out my-model --dtype bfloat16"
    )
)
def merge(
    run: Annotated[Path, typer.Option(metavar="RUN", help="Folder of a training run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder of the whole model.")],
    dtype: Annotated[
        NumberType, typer.Option(help="Number type of the weights.")
    ] = NumberType.float32,
) -> None:
    """Write model and trained adapter as one model, which loads without peft."""
    folder = room("warm_start.merge").merge(run, out, dtype.value)
    typer.echo(f"The model is in {folder}")


NEEDED = "trl,gateway"
"""What a reward model needs installed, to be trained and to be asked."""

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
    "convert",
    epilog=epilog(
        "Examples:\n"
        "  memograd reward-model convert raw.jsonl.gz --out pairs.jsonl\n"
        "  memograd reward-model convert raw.jsonl --out pairs.jsonl --held-out test.jsonl "
        "--fraction 0.2\n"
        "  memograd reward-model convert raw.jsonl --out pairs.jsonl --apart-from test.jsonl"
    ),
)
def convert_pairs(
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
    done = room("warm_start.reward_model_rows", NEEDED).convert(
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
    "train",
    epilog=epilog(
        "Examples:\n"
        "  memograd reward-model train --data pairs.jsonl\n"
        "  memograd reward-model train --data pairs.jsonl --eval test.jsonl model=./qwen\n"
        "  memograd reward-model train --data pairs.jsonl tuning=full epochs=2",
        *setting_paragraphs(RewardModelSettings),
    ),
)
def train_reward_model(
    settings: GivenSettings = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pairs with prompt, chosen and rejected.")
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option("--eval", metavar="FILE", help="Pairs to measure on; else a part of --data."),
    ] = None,
    begun: Begun = None,
    out: Out = None,
    config: SettingsFile = None,
) -> None:
    """Train a reward model on pairs and measure it on held-out ones (needs memograd[trl])."""
    options = {"data": data, "eval_data": evaluate, "adapter": begun, "out": out}
    resolved = told(RewardModelSettings, options, settings, config)
    run = room("warm_start.reward_model", NEEDED).train_reward_model(resolved)
    typer.echo(f"The run is in {run}")


@reward_model_app.command(
    "evaluate",
    epilog=epilog("Examples:\n  memograd reward-model evaluate --model runs/rm --data test.jsonl"),
)
def evaluate_reward_model(
    model: Model,
    data: Annotated[Path, typer.Option(metavar="FILE", help="Pairs to measure on.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder of the report.")
    ] = None,
    string_prompts: Strings = StringPrompts.chat,
    device: Device = "auto",
) -> None:
    """Measure a reward model: accuracy, margins, calibration, length bias."""
    folder = room("warm_start.reward_model", NEEDED).evaluate_reward_model(
        model, data, out, string_prompts=string_prompts.value, device=device
    )
    typer.echo(f"The report is in {folder}")


@reward_model_app.command(
    "merge",
    epilog=epilog("Examples:\n  memograd reward-model merge --run runs/rm --out my-reward-model"),
)
def merge_reward_model(
    run: Annotated[Path, typer.Option(metavar="RUN", help="Folder of a reward model's run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder of the whole model.")],
    dtype: Annotated[
        NumberType, typer.Option(help="Number type of the weights.")
    ] = NumberType.float32,
) -> None:
    """Write a trained reward model as one model, which loads without peft."""
    folder = room("warm_start.reward_model", NEEDED).merge_reward_model(run, out, dtype.value)
    typer.echo(f"The model is in {folder}")


@reward_model_app.command(
    "serve",
    epilog=epilog(
        "Examples:\n"
        "  memograd reward-model serve --model runs/rm --port 8200\n"
        "  MEMOGRAD_REWARD_MODEL_KEY=secret memograd reward-model serve --model runs/rm "
        "--host 0.0.0.0"
    ),
)
def serve_reward_model(
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
    server = room("reward_model.server", NEEDED)
    server.check_binding(host, api_key)
    scorer = room("reward_model.model", NEEDED).RewardModel.open(model, device=device)
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
