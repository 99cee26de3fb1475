"""Traces as JSON lines and as OpenTelemetry spans."""

from __future__ import annotations

import importlib.util
import json
import math

import pytest

from memograd.gateway.export import as_otlp, export_lines
from memograd.gateway.records import CallRecord, Choice, RolloutRecord

TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TRACE = (
    RolloutRecord("r1", "failed", {"任务": 1}, 2, 7, 10.0, 12.5, None, calls=2, error="坏了"),
    [
        CallRecord(
            "r1", 0, "writer", "tiny", 2, ({"role": "user", "content": "苹果"},),
            (Choice("", "tool_calls", (TOOL_CALL,), (4, 5), (-0.5, -math.pi)),),
            tools=({"type": "function", "function": {"name": "f"}},),
            sampling={"temperature": 0.7, "seed": 2**60, "n": 1, "stop": ["。"]},
            prompt_ids=(1, 2, 3), prompt_tokens=3, completion_tokens=2, began_at=10.5, latency=0.25,
        ),
        CallRecord(
            "r1", 1, "critic", "tiny", 2,
            ({"role": "tool", "tool_call_id": "c1", "content": "7"},), (Choice("ok", "stop"),),
        ),
    ],
)  # fmt: skip


def attributes(span: dict) -> dict:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def test_json_lines_hold_everything() -> None:
    [line] = export_lines([TRACE], "jsonl")
    said = json.loads(line)
    assert said["metadata"] == {"任务": 1}
    assert [call["prompt_ids"] for call in said["calls"]] == [[1, 2, 3], None]
    assert said["calls"][0]["choices"][0]["logprobs"] == [-0.5, -math.pi]
    assert "任务" in line


def test_every_call_is_a_span_below_its_rollouts() -> None:
    [line] = export_lines([TRACE], "otel")
    [resource] = json.loads(line)["resourceSpans"]
    root, first, second = resource["scopeSpans"][0]["spans"]
    assert (root["name"], first["name"]) == ("invoke_agent", "chat tiny")
    assert {first["parentSpanId"], second["parentSpanId"]} == {root["spanId"]}
    assert len({root["spanId"], first["spanId"], second["spanId"]}) == 3
    assert (len(root["traceId"]), len(root["spanId"])) == (32, 16)
    assert first["startTimeUnixNano"] == "10500000000"
    assert root["status"] == {"code": 2, "message": "坏了"}
    told = attributes(first)
    assert told["gen_ai.usage.input_tokens"] == "3"
    assert told["gen_ai.request.seed"] == str(2**60)
    assert told["gen_ai.agent.name"] == "writer"
    said = json.loads(told["gen_ai.input.messages"])
    assert said == [{"role": "user", "parts": [{"type": "text", "content": "苹果"}]}]
    [answer] = json.loads(told["gen_ai.output.messages"])
    assert answer["parts"][0]["type"] == "tool_call"
    assert answer["finish_reason"] == "tool_calls"
    [result] = json.loads(attributes(second)["gen_ai.input.messages"])
    assert result["parts"][0] == {"type": "tool_call_response", "id": "c1", "response": "7"}
    assert as_otlp(*TRACE) == as_otlp(*TRACE)


@pytest.mark.skipif(
    importlib.util.find_spec("opentelemetry") is None, reason="opentelemetry is not installed"
)
def test_names_are_those_of_the_semantic_conventions() -> None:
    known = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    names = {value for value in vars(known).values() if isinstance(value, str)}
    spans = as_otlp(*TRACE)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    used = {key for span in spans for key in attributes(span) if key.startswith("gen_ai.")}
    assert used <= names
