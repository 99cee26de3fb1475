"""Between records and rows of the trace store's tables.

Invariant: `record_of(row_of(record)) == record`, but for names that no database takes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Row

from memograd.gateway.records import CallRecord, Choice, RolloutRecord
from memograd.rollout.allowed_tokens import packed, unpacked


def rollout_of(row: Row[Any]) -> RolloutRecord:
    """A row of `rollouts`."""
    values = {**row._mapping, "metadata": json.loads(row._mapping["metadata"])}
    values.pop("key_sha256")
    return RolloutRecord(**values)


def call_row(call: CallRecord) -> dict[str, Any]:
    """A row of `calls`."""
    return {
        **{name: value for name, value in vars(call).items() if name != "choices"},
        "agent": sayable(call.agent),
        "model": sayable(call.model),
        "messages": dump(call.messages),
        "tools": dump(call.tools),
        "sampling": dump(call.sampling),
        "asked": dump(call.asked),
        "prompt_ids": _packed(call.prompt_ids, "<i4"),
    }


def choice_rows(call: CallRecord) -> list[dict[str, Any]]:
    """Rows of `choices`."""
    return [
        {
            "rollout_id": call.rollout_id,
            "number": call.number,
            "place": place,
            "text": dump(choice.text),
            "tool_calls": dump(choice.tool_calls),
            "finish_reason": sayable(choice.finish_reason),
            "token_ids": _packed(choice.token_ids, "<i4"),
            "logprobs": _packed(choice.logprobs, "<f8"),
            "allowed": None if choice.allowed is None else packed(choice.allowed),
        }
        for place, choice in enumerate(call.choices)
    ]


def call_of(row: Row[Any], choices: Sequence[Row[Any]]) -> CallRecord:
    """A row of `calls` with its rows of `choices`, in order."""
    values = dict(row._mapping)
    return CallRecord(
        **{
            **values,
            "messages": tuple(json.loads(values["messages"])),
            "tools": tuple(json.loads(values["tools"])),
            "sampling": json.loads(values["sampling"]),
            "asked": json.loads(values["asked"] or "{}"),
            "prompt_ids": _unpacked(values["prompt_ids"], "<i4"),
            "choices": tuple(_choice_of(choice) for choice in choices),
        }
    )


def dump(value: Any) -> str:
    """JSON in which every text is itself; NUL and half a surrogate pair, which databases refuse,
    become escapes."""
    text = json.dumps(value, ensure_ascii=False, default=dict)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, default=dict)
    return text


def sayable(text: str) -> str:
    """A text that every database takes: without NUL, and a question mark for half a pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _choice_of(row: Row[Any]) -> Choice:
    return Choice(
        text=json.loads(row.text),
        finish_reason=row.finish_reason,
        tool_calls=tuple(json.loads(row.tool_calls)),
        token_ids=_unpacked(row.token_ids, "<i4"),
        logprobs=_unpacked(row.logprobs, "<f8"),
        allowed=None if row.allowed is None else unpacked(row.allowed),
    )


def _packed(values: Sequence[float] | None, kind: str) -> bytes | None:
    return None if values is None else np.asarray(values, dtype=kind).tobytes()


def _unpacked(data: bytes | None, kind: str) -> Any:
    return None if data is None else tuple(np.frombuffer(data, dtype=kind).tolist())
