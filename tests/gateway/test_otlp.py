"""Spans reach a collector that reads protobuf, and a collector that is gone costs nothing."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from scripted import ScriptedBackend

from memograd.errors import BadInput
from memograd.gateway.export import as_otlp
from memograd.gateway.store import TraceStore

pytest.importorskip("opentelemetry.sdk", reason="the OpenTelemetry SDK is not installed")
from memograd.gateway.export import CONTENT, SpanPusher


class Collector:
    """Takes spans as any collector does."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        self.spans: list = []
        self.headers: list = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                assert self.headers["Content-Type"] == "application/x-protobuf"
                asked = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
                outer.headers.append(dict(self.headers))
                for resource in asked.resource_spans:
                    for scope in resource.scope_spans:
                        outer.spans += [(resource.resource, span) for span in scope.spans]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing on the screen."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.server.shutdown()
    made.server.server_close()


def attributes(span) -> dict:
    def plain(value):
        kind = value.WhichOneof("value")
        if kind == "array_value":
            return [plain(one) for one in value.array_value.values]
        return getattr(value, kind)

    return {one.key: plain(one.value) for one in span.attributes}


def played(start, tmp_path, pusher):
    store = TraceStore(f"sqlite:///{tmp_path}/spans.db")
    store.watcher = pusher
    gateway = start(ScriptedBackend(lambda messages: "好"), store)
    rewarded, failed, late = gateway.rollout(), gateway.rollout(), gateway.rollout(seconds=0.01)
    assert rewarded.chat("你好", temperature=0.5).status_code == 200
    store.reward(rewarded.id, 0.25)
    store.fail(failed.id, "坏了")
    while store.rollout(late.id).state == "open":  # Until its hundredth of a second is over.
        time.sleep(0.01)
    assert store.rollout(late.id).state == "timed_out"
    pusher.close()
    return store, rewarded, failed, late


@pytest.mark.parametrize("content", [False, True])
def test_spans_are_pushed_as_they_are_exported(
    start, tmp_path, collector, monkeypatch, content: bool
) -> None:
    monkeypatch.setenv(CONTENT, str(content).lower())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-project=memograd")
    store, rewarded, failed, late = played(start, tmp_path, SpanPusher(collector.url))
    assert collector.headers[0]["x-project"] == "memograd"
    found = {span.span_id.hex(): span for _, span in collector.spans}
    assert len(found) == len(collector.spans) == 4
    [service] = {one.value.string_value for resource, _ in collector.spans
                 for one in resource.attributes if one.key == "service.name"}  # fmt: skip
    assert service == "memograd-gateway"
    told = as_otlp(store.rollout(rewarded.id), store.calls(rewarded.id))
    root, call = told["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span in (root, call):
        pushed = found[span["spanId"]]
        assert pushed.trace_id.hex() == span["traceId"]
        assert pushed.parent_span_id.hex() == span.get("parentSpanId", "")
        assert (pushed.name, pushed.kind) == (span["name"], span["kind"])
        assert str(pushed.start_time_unix_nano) == span["startTimeUnixNano"]
        assert pushed.status.code == 1
    of_call = attributes(found[call["spanId"]])
    assert of_call["gen_ai.operation.name"] == "chat"
    assert of_call["gen_ai.response.finish_reasons"] == ["stop"]
    assert attributes(found[root["spanId"]])["memograd.rollout.reward"] == 0.25
    said = of_call.get("gen_ai.input.messages")
    assert ("你好" in json.dumps(json.loads(said), ensure_ascii=False)) if content else said is None
    ends = {attributes(span)["gen_ai.conversation.id"]: span for span in found.values()
            if span.name == "invoke_agent"}  # fmt: skip
    assert ends[failed.id].status.message == "坏了"
    assert attributes(ends[late.id])["memograd.rollout.state"] == "timed_out"


def test_a_collector_that_is_gone_costs_nothing(start, tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    store, rewarded, _, _ = played(start, tmp_path, SpanPusher("http://127.0.0.1:9/"))
    assert len(store.calls(rewarded.id)) == 1


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="is no URL"):
        SpanPusher("collector:4318")
