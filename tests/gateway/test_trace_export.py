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


@pytest.mark.parametrize("form", ["jsonl", "otel"])
def test_one_odd_call_does_not_keep_the_others_from_being_exported(form: str) -> None:
    """Images, half a surrogate pair, a call without arguments, one stop string: all came from
    servers behind the gateway, or from models."""
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    odd = {"id": "c", "type": "function", "function": {"name": "查"}}
    messages = (
        {"role": "user", "content": [{"type": "text", "text": "看"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [odd]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "图"}]},
    )
    sampling = {"stop": "。完", "max_completion_tokens": 9, "n": None}
    call = CallRecord("r", 0, "a", "m", 0, messages, (Choice("\ud83d", "stop"),), sampling=sampling)
    record = RolloutRecord("r", "rewarded", {"x": "\ud83d"}, 0, 0, 1.0, 2.0, None)
    [line] = export_lines([(record, [call])], form)
    assert line.encode() and json.loads(line)
    if form == "otel":
        [resource] = json.loads(line)["resourceSpans"]
        told = attributes(resource["scopeSpans"][0]["spans"][1])
        [stop] = told["gen_ai.request.stop_sequences"]["values"]
        assert stop == {"stringValue": "。完"}
        assert told["gen_ai.request.max_tokens"] == "9"
        user, called, answered = json.loads(told["gen_ai.input.messages"])
        assert user["parts"] == [{"type": "text", "content": "看"}, image]
        assert called["parts"][0]["arguments"] == "{}"
        assert answered["parts"][0]["response"] == "图"
