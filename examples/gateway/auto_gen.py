"""An agent on AutoGen with a tool: it looks a patient's drug up and answers.

Nothing in it knows of memograd; its model client is told a base URL and a key.

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/auto_gen.py "Which drug does patient 7 take?" aspirin
"""

import asyncio
import os
import sys
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient

DRUGS = {7: "aspirin", 8: "二甲双胍"}


async def look_up(patient: int) -> str:
    """Look up the drug that a patient takes."""
    return DRUGS.get(patient, "none")


async def run(task: dict[str, Any], base_url: str, api_key: str) -> float:
    """1 if the final answer holds `task["answer"]`, else 0."""
    client = OpenAIChatCompletionClient(
        model="policy",
        base_url=base_url,
        api_key=api_key,
        model_info={
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": ModelFamily.UNKNOWN,
        },
    )
    agent = AssistantAgent(
        "nurse",
        model_client=client,
        tools=[look_up],
        system_message="Answer from what the tool says.",
        reflect_on_tool_use=True,
    )
    try:
        result = await agent.run(task=str(task["prompt"]))
    finally:
        await client.close()
    return float(str(task["answer"]) in str(getattr(result.messages[-1], "content", "")))


if __name__ == "__main__":
    question, expected = sys.argv[1:3]
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8321/v1")
    key = os.environ.get("OPENAI_API_KEY", "none")
    print(asyncio.run(run({"prompt": question, "answer": expected}, url, key)))
