"""Traces in other people's formats: JSON lines, and OpenTelemetry spans, written or pushed.

Written, OpenTelemetry's are one `ExportTraceServiceRequest` a line in OTLP's JSON, as collectors
read from files: a span of the rollout (`invoke_agent`), and below it one of each call (`chat`),
with the attributes of the semantic conventions for generative AI. Pushed (`SpanPusher`), they are
the same spans over OTLP/HTTP, a call's when it is answered and its rollout's when that is over; the
OpenTelemetry SDK batches, sends and tries again. What was said is pushed only where
OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is true, as the conventions want it.

Invariants: every call is one span, none twice, and its ids are made from the rollout's id, so a
second export is the same spans. A collector that is slow or gone costs an agent nothing; what it
missed is in the store.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memograd.errors import BadInput
from memograd.gateway.conversation import answer_message
from memograd.gateway.database import dump
from memograd.gateway.records import CallRecord, Choice, RolloutRecord
from memograd.rollout.types import packed

FORMATS: Final = ("jsonl", "otel")
PROVIDER: Final = "memograd"
SERVICE: Final = "memograd-gateway"
SCOPE: Final = "memograd.gateway"
CLIENT, INTERNAL = 3, 1
"""OTLP's numbers of span kinds."""

Trace = tuple[RolloutRecord, Sequence[CallRecord]]


def export_lines(traces: Iterable[Trace], form: str) -> Iterator[str]:
    """One JSON line a rollout, in one of `FORMATS`."""
    make = as_json if form == "jsonl" else as_otlp
    for record, calls in traces:
        yield dump(make(record, calls))


def as_json(record: RolloutRecord, calls: Sequence[CallRecord]) -> dict[str, Any]:
    """Everything that the store knows of a rollout, under the names of the records."""
    told = [
        {**vars(call), "choices": [_choice(choice) for choice in call.choices]} for call in calls
    ]
    return {**vars(record), "calls": told}


def _choice(choice: Choice) -> dict[str, Any]:
    """`allowed` as the store has it (`memograd.rollout.types.packed`), in base64."""
    held = choice.allowed
    shown = None if held is None else base64.b64encode(packed(held)).decode()
    return {**vars(choice), "allowed": shown}


@dataclass(frozen=True)
class TraceSpan:
    """A span before it is written in any protocol's way; ids are hexadecimal, times seconds."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: int
    began: float
    ended: float
    attributes: Mapping[str, Any]
    error: str | None = None


def rollout_span(record: RolloutRecord, ended: float) -> TraceSpan:
    """The span of a rollout, above those of its calls."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.conversation.id": record.id,
        "memograd.rollout.state": record.state,
        "memograd.rollout.reward": record.reward,
        "memograd.policy.version": record.policy_version,
        "error.type": record.state if record.error else None,
    }
    return TraceSpan(
        trace_id=_trace_id(record.id),
        span_id=_span_id(record.id, "rollout"),
        parent_id=None,
        name="invoke_agent",
        kind=INTERNAL,
        began=record.created_at,
        ended=ended,
        attributes=_given(attributes),
        error=record.error,
    )


def call_span(call: CallRecord) -> TraceSpan:
    """The span of a call."""
    return TraceSpan(
        trace_id=_trace_id(call.rollout_id),
        span_id=_span_id(call.rollout_id, str(call.number)),
        parent_id=_span_id(call.rollout_id, "rollout"),
        name=f"chat {call.model}",
        kind=CLIENT,
        began=call.began_at,
        ended=call.began_at + call.latency,
        attributes=_given(_of_call(call)),
    )


def as_otlp(record: RolloutRecord, calls: Sequence[CallRecord]) -> dict[str, Any]:
    """The rollout's spans, as OTLP's JSON encoding has them."""
    last = max([record.updated_at, *(call.began_at + call.latency for call in calls)])
    spans = [rollout_span(record, last), *map(call_span, calls)]
    resource = {"attributes": _attributes({"service.name": SERVICE})}
    scope = {"scope": {"name": SCOPE}, "spans": [_in_json(span) for span in spans]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _in_json(span: TraceSpan) -> dict[str, Any]:
    parent = {} if span.parent_id is None else {"parentSpanId": span.parent_id}
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **parent,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(nanoseconds(span.began)),
        "endTimeUnixNano": str(nanoseconds(span.ended)),
        "attributes": _attributes(span.attributes),
        "status": {"code": 2, "message": span.error} if span.error else {"code": 1},
    }


def _of_call(call: CallRecord) -> dict[str, Any]:
    sampling = call.sampling
    stop = sampling.get("stop") or []
    longest = sampling.get("max_completion_tokens") or sampling.get("max_tokens")
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.conversation.id": call.rollout_id,
        "gen_ai.agent.name": call.agent,
        "gen_ai.request.model": call.model,
        "gen_ai.response.model": call.model,
        "gen_ai.request.temperature": sampling.get("temperature"),
        "gen_ai.request.top_p": sampling.get("top_p"),
        "gen_ai.request.max_tokens": longest,
        "gen_ai.request.seed": sampling.get("seed"),
        "gen_ai.request.stop_sequences": [stop] if isinstance(stop, str) else list(stop) or None,
        "gen_ai.request.choice.count": sampling["n"] if sampling.get("n", 1) != 1 else None,
        "gen_ai.response.finish_reasons": [choice.finish_reason for choice in call.choices],
        "gen_ai.usage.input_tokens": call.prompt_tokens,
        "gen_ai.usage.output_tokens": call.completion_tokens,
        "gen_ai.input.messages": dump([_message(message) for message in call.messages]),
        "gen_ai.output.messages": dump(
            [
                {**_message(answer_message(choice)), "finish_reason": choice.finish_reason}
                for choice in call.choices
            ]
        ),
        "gen_ai.tool.definitions": (
            dump([dict(tool["function"], type="function") for tool in call.tools])
            if call.tools
            else None
        ),
        "memograd.policy.version": call.policy_version,
        "memograd.call.number": call.number,
    }


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of roles and parts, as the conventions' schema has it."""
    content = message.get("content")
    said = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    text = "".join(part["text"] for part in said if part.get("text") is not None)
    # Images and the like, which a server behind the gateway may take, are parts as they came.
    others = [part for part in said if part.get("text") is None]
    parts: list[dict[str, Any]] = []
    if message["role"] == "tool":
        parts.append(
            {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": text}
        )
    elif text:
        parts.append({"type": "text", "content": text})
    parts += others
    for call in message.get("tool_calls") or []:
        function = call["function"]
        parts.append(
            {
                "type": "tool_call",
                "id": call["id"],
                "name": function["name"],
                "arguments": function.get("arguments", "{}"),
            }
        )
    return {"role": message["role"], "parts": parts}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    """OTLP's typed value; whole numbers are texts there, since JSON's lose digits."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}


def _span_id(rollout_id: str, what: str) -> str:
    return hashlib.sha256(f"{rollout_id}/{what}".encode()).hexdigest()[:16]


def _trace_id(rollout_id: str) -> str:
    return hashlib.sha256(rollout_id.encode()).hexdigest()[:32]


def nanoseconds(seconds: float) -> int:
    """As OpenTelemetry counts time."""
    return int(seconds * 1e9)


NAME: Final = "OTEL_SERVICE_NAME"
TRACES: Final = "/v1/traces"
CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENTS: Final = {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.definitions"}


class SpanPusher:
    """A `memograd.gateway.store.TraceWatcher`; close it at the end, and what waits is sent.

    url: the collector's, with or without /v1/traces; None takes what OTEL_EXPORTER_OTLP_ENDPOINT
    and its like say, which also hold headers. Raises BadInput for one that is none, and where the
    SDK is missing.
    """

    def __init__(self, url: str | None = None) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            raise BadInput(
                "Pushing spans needs the OpenTelemetry SDK: pip install 'memograd[otel]'."
            ) from None
        if url is not None and not url.startswith(("http://", "https://")):
            raise BadInput(f"The collector {url!r} is no URL: write http://host:4318.")
        if url is not None and not url.endswith(TRACES):
            url = url.rstrip("/") + TRACES
        self._resource = Resource.create({"service.name": os.environ.get(NAME, SERVICE)})
        self._queue = BatchSpanProcessor(OTLPSpanExporter(endpoint=url))
        self._with_content = os.environ.get(CONTENT, "").lower() == "true"

    def called(self, call: CallRecord) -> None:
        """A call was answered."""
        self._push(call_span(call))

    def ended(self, record: RolloutRecord) -> None:
        """A rollout is over."""
        self._push(rollout_span(record, record.updated_at))

    def close(self) -> None:
        """Send what waits. Closing twice is harmless."""
        self._queue.shutdown()  # type: ignore[no-untyped-call]

    def _push(self, span: TraceSpan) -> None:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: str) -> SpanContext:
            ids = int(span.trace_id, 16), int(span_id, 16)
            return SpanContext(*ids, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        failed = Status(StatusCode.ERROR, span.error)
        self._queue.on_end(
            ReadableSpan(
                name=span.name,
                context=context(span.span_id),
                parent=None if span.parent_id is None else context(span.parent_id),
                resource=self._resource,
                attributes=self._shown(span.attributes),
                # Theirs counts from 0, the protocol's from 1.
                kind=SpanKind(span.kind - 1),
                status=failed if span.error else Status(StatusCode.OK),
                start_time=nanoseconds(span.began),
                end_time=nanoseconds(span.ended),
                instrumentation_scope=InstrumentationScope(SCOPE),
            )
        )

    def _shown(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value
            for name, value in attributes.items()
            if self._with_content or name not in CONTENTS
        }
