"""Spans of calls and rollouts, pushed to a collector over OTLP/HTTP as they are written down.

The OpenTelemetry SDK batches, sends and tries again; the spans are those that `export` writes into
files, with the same ids. A call's span goes out when it is answered, its rollout's when that is
over. What was said is in them only where OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is
true, as the conventions want it.

Invariant: a collector that is slow or gone costs an agent nothing; what it missed is in the store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from memograd.errors import BadInput
from memograd.gateway.export import (
    SCOPE,
    SERVICE,
    TraceSpan,
    call_span,
    nanoseconds,
    rollout_span,
)
from memograd.gateway.records import CallRecord, RolloutRecord

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
