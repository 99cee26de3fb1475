"""The commands of the gateway: `gateway` serves a policy or another server, `traces` shows what was
captured.

The gateway's room, and FastAPI and torch with it, arrives when a command runs.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memograd.cli import show
from memograd.cli.help import epilog
from memograd.errors import BadInput, Stopped, need_packages

if TYPE_CHECKING:
    from memograd.gateway.backend import Backend
    from memograd.gateway.export import SpanPusher
    from memograd.gateway.records import RolloutRecord
    from memograd.gateway.store import TraceStore

KEY = "MEMOGRAD_GATEWAY_KEY"
UPSTREAM_KEY = "MEMOGRAD_UPSTREAM_KEY"

app = typer.Typer()
traces_app = typer.Typer(
    no_args_is_help=True,
    help="Look at the calls that a gateway captured.",
    epilog=epilog(
        "Examples:\n"
        "  memograd traces list --state rewarded\n"
        "  memograd traces show 3f2a\n"
        "  memograd traces export --format otel --out spans.jsonl"
    ),
)

Store = Annotated[
    str, typer.Option("--store", metavar="URL", help="Where traces are: an SQLAlchemy URL.")
]
LOCAL_ONLY = ("adapter", "device", "max_tokens", "max_batch", "chat_template")
"""Options that say how the model here answers; another server has its own."""
DEFAULT_STORE = "sqlite:///traces.db"


class TraceFormat(StrEnum):
    """What traces can be exported as."""

    jsonl = "jsonl"
    otel = "otel"


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd gateway --model smollm2-135m-instruct\n"
        "  memograd gateway --model ./qwen --adapter runs/my-run/final --store sqlite:///my.db\n"
        "  memograd gateway --upstream http://localhost:8000/v1 --model qwen --token-ids",
        "Environment:\n"
        f"  {KEY}   the gateway's own API key; needed to listen beyond this machine\n"
        f"  {UPSTREAM_KEY}  the key that the server behind the gateway wants\n"
        "  OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS  as --otlp; its headers",
    )
)
def gateway(
    context: typer.Context,
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="Hub id or folder; its name behind --upstream.")
    ],
    adapter: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Trained adapter: a checkpoint's folder.")
    ] = None,
    upstream: Annotated[
        str | None, typer.Option(metavar="URL", help="Server to pass calls to, up to its /v1.")
    ] = None,
    token_ids: Annotated[
        bool, typer.Option("--token-ids", help="Ask the server for token ids (vLLM), to train.")
    ] = False,
    store: Store = DEFAULT_STORE,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8321,
    embedder: Annotated[
        str | None, typer.Option(metavar="NAME", help="What /v1/embeddings uses: e5, minilm, ...")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer, at most.")] = 1024,
    max_batch: Annotated[int, typer.Option(min=1, help="Answers decoded together.")] = 64,
    max_calls: Annotated[int, typer.Option(min=1, help="Calls at once; more get a 429.")] = 256,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 8 * 1024 * 1024,
    call_seconds: Annotated[float, typer.Option(min=0.001, help="Seconds of a call.")] = 600.0,
    idle_seconds: Annotated[
        float, typer.Option(min=0.001, help="Seconds without a call that end a rollout.")
    ] = 600.0,
    chat_template: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Jinja chat template that shows tools.")
    ] = None,
    otlp: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenTelemetry collector to push spans to.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that clients and pages may call it by; repeat."),
    ] = None,
) -> None:
    """Serve a model to agents as OpenAI would, and write down every call."""
    need_packages("The gateway", ("fastapi", "uvicorn", "httpx", "torch"), "gateway")
    from memograd.gateway.admission import GatewayLimits, check_address
    from memograd.gateway.app import create_app
    from memograd.gateway.store import TraceStore
    from memograd.web.host_check import checked_host
    from memograd.web.running import listen, serve

    key = os.environ.get(KEY) or None
    check_address(host, key)
    hosts = [checked_host(name) for name in allow_host or ()]
    if token_ids and upstream is None:
        raise BadInput("--token-ids is for --upstream; a local model's ids are always kept.")
    for name in LOCAL_ONLY if upstream is not None else ():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            raise BadInput(f"{option} is for a local model; leave it out behind --upstream.")
    spans = _spans(otlp)
    # What is not there is refused before a store is made, and the store before a model is loaded.
    if embedder is not None:
        from memograd.memory.embedders.load import check_embedder

        check_embedder(embedder)
    backend: Backend | None = None
    if upstream is not None:
        from memograd.gateway.upstream import UpstreamBackend

        backend = UpstreamBackend(
            upstream,
            model,
            api_key=os.environ.get(UPSTREAM_KEY, ""),
            token_ids=token_ids,
            seconds=call_seconds,
        )
    else:
        _check_local(model, adapter, device, chat_template)
    listening = listen(host, port)
    traces = TraceStore(store, idle_seconds=idle_seconds)
    traces.watcher = spans
    loaded = None
    if embedder is not None:
        from memograd.memory.embedders.load import load_embedder

        loaded = load_embedder(embedder)
    if backend is None:
        backend = _local(model, adapter, device, max_tokens, max_batch, chat_template)
    limits = GatewayLimits(max_body=max_body, max_calls=max_calls, call_seconds=call_seconds)
    served = create_app(
        backend, traces, key=key, limits=limits, embedder=loaded, hosts=[host, *hosts]
    )
    shown = f"[{host}]" if ":" in host else host
    typer.echo(
        f"serving {backend.model} at http://{shown}:{listening.getsockname()[1]}/v1, traces in "
        f"{traces.place}"
    )
    try:
        ended_by = serve(served, listening)
    finally:
        backend.close()
        traces.close()
        if spans is not None:
            spans.close()
    if ended_by is not None:
        raise Stopped("The gateway has ended; what it was asked is answered.", ended_by)


@traces_app.command("list", epilog=epilog("Examples:\n  memograd traces list --state failed"))
def list_traces(
    store: Store = DEFAULT_STORE,
    state: Annotated[
        str | None, typer.Option(help="open, running, rewarded, finished, failed or timed_out.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rollouts, at most.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List rollouts, the newest first."""
    found = _opened(store).rollouts(state=_known(state), limit=limit)
    if as_json:
        show.as_json([vars(record) for record in found])
        return
    if not found:
        typer.echo("There are no rollouts here.")
        return
    show.table(
        ["id", "began", "state", "calls", "reward", "error"],
        [
            [
                record.id,
                _moment(record.created_at),
                record.state,
                record.calls,
                "" if record.reward is None else f"{record.reward:g}",
                record.error or "",
            ]
            for record in found
        ],
        whole=5,
    )


@traces_app.command("show", epilog=epilog("Examples:\n  memograd traces show 3f2a"))
def show_trace(
    rollout: Annotated[str, typer.Argument(metavar="ID", help="A rollout's id, or its beginning.")],
    store: Store = DEFAULT_STORE,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, token ids included.")] = False,
) -> None:
    """Show a rollout and what was said in each of its calls."""
    from memograd.gateway.conversation import answer_message
    from memograd.gateway.export import as_json as told

    traces = _opened(store)
    record = _found(traces, rollout)
    calls = traces.calls(record.id)
    if as_json:
        show.as_json(told(record, calls))
        return
    times = ("created_at", "updated_at", "deadline")
    moments = {name: when and _moment(when) for name in times for when in [getattr(record, name)]}
    show.fields({**vars(record), **moments})
    for call in calls:
        kept = "token ids kept" if call.prompt_ids is not None else "no token ids"
        typer.echo(
            f"\ncall {call.number} by {show.plain(call.agent)}, {call.asked.get('api', 'chat')}: "
            f"{call.prompt_tokens} tokens in, "
            f"{call.completion_tokens} out, {call.latency:.2f} s, {kept}"
        )
        said = [*call.messages, *(answer_message(choice) for choice in call.choices)]
        for message in said:
            typer.echo(f"  {message['role']}: {show.plain(message.get('content') or '')}")
            for tool in message.get("tool_calls") or []:
                typer.echo(f"    calls {show.plain(tool['function'])}")


@traces_app.command(
    "export",
    epilog=epilog(
        "Examples:\n"
        "  memograd traces export --state rewarded --out traces.jsonl\n"
        "  memograd traces export --format otel > spans.jsonl"
    ),
)
def export_traces(
    rollouts: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Rollouts; all if none is named.")
    ] = None,
    store: Store = DEFAULT_STORE,
    form: Annotated[
        TraceFormat, typer.Option("--format", help="JSON lines, or OpenTelemetry spans (OTLP).")
    ] = TraceFormat.jsonl,
    state: Annotated[str | None, typer.Option(help="Only rollouts in this state.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="New file; else standard output.")
    ] = None,
) -> None:
    """Write rollouts with their calls, one JSON line each."""
    from memograd.gateway.export import export_lines

    if rollouts and state is not None:
        raise BadInput("--state chooses among all rollouts: leave it out, or the ids.")
    traces = _opened(store)
    if rollouts:
        ids = [_found(traces, rollout).id for rollout in rollouts]
    else:
        ids = [record.id for record in reversed(traces.rollouts(state=_known(state)))]
    lines = export_lines(traces.traces(ids), form.value)
    if out is None:
        for line in lines:
            typer.echo(line)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except FileExistsError:
        raise BadInput(f"The file {out} exists already: name another one.") from None
    except OSError as error:
        raise BadInput(f"The file {out} cannot be written ({error.strerror}).") from None
    typer.echo(f"{len(ids)} rollouts in {out}")


def _opened(url: str) -> TraceStore:
    """The store, which must be there already."""
    from sqlalchemy.engine import make_url

    from memograd.gateway.store import TraceStore

    if url.startswith("sqlite:///"):
        file = make_url(url).database
        if file and not Path(file).exists():
            raise BadInput(f"There is no trace store {file}; name one by --store sqlite:///FILE.")
    return TraceStore(url)


def _known(state: str | None) -> str | None:
    """The state, which must be one of those there are."""
    from memograd.gateway.records import STATES

    if state is not None and state not in STATES:
        raise BadInput(f"There is no state {state!r}: choose one of {', '.join(STATES)}.")
    return state


def _found(traces: TraceStore, beginning: str) -> RolloutRecord:
    matching = [record for record in traces.rollouts() if record.id.startswith(beginning)]
    if len(matching) != 1:
        count = "No rollout" if not matching else f"{len(matching)} rollouts"
        verb = "begin" if matching else "begins"
        raise BadInput(f"{count} in {traces.place} {verb} with {beginning!r}: give the whole id.")
    return matching[0]


def _check_local(model: str, adapter: Path | None, device: str, chat_template: Path | None) -> None:
    """Raise BadInput for what a local model needs and is not there, while nothing is loaded."""
    from memograd.policy.language_model import check_adapter
    from memograd.policy.loading import check_model, choose_device
    from memograd.rollout.tool_calls import read_template

    choose_device(device)
    check_model(model)
    if adapter is not None:
        check_adapter(adapter)
    if chat_template is not None:
        read_template(chat_template)


def _local(
    model: str,
    adapter: Path | None,
    device: str,
    max_tokens: int,
    max_batch: int,
    chat_template: Path | None,
) -> Backend:
    from memograd.config import LoraConfig
    from memograd.gateway.local import AnswerSampling, LocalBackend
    from memograd.policy.language_model import LanguageModel

    if adapter is None:
        policy = LanguageModel.load(model, lora=LoraConfig(), device=device)
    else:
        policy = LanguageModel.load_adapter(model, adapter, device=device)
    return LocalBackend(
        policy,
        sampling=AnswerSampling(max_tokens=max_tokens),
        chat_template=chat_template,
        max_batch=max_batch,
    )


def _spans(url: str | None) -> SpanPusher | None:
    """What pushes spans; None where neither an option nor the environment names a collector."""
    variables = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if url is None and not any(map(os.environ.get, variables)):
        return None
    from memograd.gateway.export import SpanPusher

    return SpanPusher(url)


def _moment(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
