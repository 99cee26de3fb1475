"""An agent on the OpenAI Agents SDK with a tool: it looks a patient's drug up and answers.

Nothing in it knows of memograd; its client is told a base URL and a key, and calls /v1/responses as
it would call OpenAI's. The client is this run's own, because many attempts run in one process.

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/openai_agents.py "Which drug does patient 7 take?" aspirin
"""

import argparse
import asyncio
import os
from typing import Any

from agents import (
    Agent,
    AgentsException,
    OpenAIProvider,
    RunConfig,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

DRUGS = {7: "aspirin", 8: "二甲双胍"}


@function_tool
def look_up(patient: int) -> str:
    """Look up the drug that a patient takes.

    Args:
        patient: The patient's number.
    """
    return DRUGS.get(patient, "none")


async def run(task: dict[str, Any], base_url: str, api_key: str) -> float:
    """1 if the final answer holds `task["answer"]`, else 0."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=base_url, api_key=api_key)
    agent = Agent(
        name="nurse",
        instructions="Answer from what the tool says.",
        tools=[look_up],
    )
    config = RunConfig(model_provider=OpenAIProvider(openai_client=client))
    try:
        result = await Runner.run(agent, str(task["prompt"]), max_turns=4, run_config=config)
    except AgentsException:  # too many turns, or an answer that was cut off
        return 0.0
    finally:
        await client.close()
    return float(str(task["answer"]) in str(result.final_output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("question")
    parser.add_argument("answer", help="what a right answer holds")
    given = parser.parse_args()
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8321/v1")
    key = os.environ.get("OPENAI_API_KEY", "none")
    print(asyncio.run(run({"prompt": given.question, "answer": given.answer}, url, key)))
