"""One completion of another trainer's, scored by a specification of our rewards.

Trainers that parse tool calls keep them beside the text (`tool_calls`); ours stand in the text.
Invariant: a conversation whose calls stand in the text already is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from memograd.errors import BadInput
from memograd.rewards import ENVIRONMENT, WeightedReward, compute_rewards, parse_rewards
from memograd.rollout.tool_calls import CLOSE, OPEN
from memograd.rollout.types import Message


def as_said(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The messages with every call in the assistant's text.

    A call is OpenAI's (`{"function": {"name", "arguments"}}`, arguments as JSON text or an object)
    or flat (`{"name", "arguments"}`).

    Raises:
        BadInput: a call has no name.
    """
    return [_said(message) for message in messages]


def score(spec: str, prompt: Any, completion: Any, columns: Mapping[str, Any]) -> float:
    """The weighted total of the rewards in `spec` for one completion, a text or messages.

    Raises:
        BadInput: the specification cannot be read, or asks for the environment's own reward.
        RewardError: a reward cannot be computed.
    """
    said = [] if isinstance(completion, str) else as_said(completion)
    text = completion if isinstance(completion, str) else said[-1]["content"] if said else ""
    table = compute_rewards(
        rewards_of(spec),
        rollout_ids=[str(columns.get("id", "the completion"))],
        prompts=[prompt],
        completions=[text],
        columns={name: [value] for name, value in columns.items()},
        conversations=[[Message(**message) for message in said]],  # type: ignore[typeddict-item]
    )
    return table.total[0]


@cache
def rewards_of(spec: str) -> list[WeightedReward]:
    """The rewards of a specification, read once.

    Raises:
        BadInput: it cannot be read, or asks for the environment's own reward.
    """
    rewards = parse_rewards(spec)
    if any(reward.name == ENVIRONMENT for reward in rewards):
        raise BadInput(
            "The environment's own reward is given by its get_reward; name reward functions here."
        )
    return rewards


def _said(message: Mapping[str, Any]) -> dict[str, str]:
    content = message.get("content") or ""
    if not isinstance(content, str):  # parts, as vision models have them
        content = "".join(str(part.get("text", "")) for part in content)
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    text = "\n".join([*([content] if content else []), *calls])
    said = {"role": str(message["role"]), "content": text}
    if message.get("name"):
        said["name"] = str(message["name"])
    return said


def _call(call: Mapping[str, Any]) -> str:
    asked = call.get("function") or call
    if not asked.get("name"):
        raise BadInput(f"A tool call has no name: {dict(call)!r}.")
    arguments = asked.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:  # malformed stays malformed, for rewards to see
            return f"{OPEN}\n{arguments}\n{CLOSE}"
    called = {"name": asked["name"], "arguments": arguments}
    return f"{OPEN}\n{json.dumps(called, ensure_ascii=False)}\n{CLOSE}"
