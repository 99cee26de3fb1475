"""An agent on AutoGen with a tool: it looks a patient's drug up and answers.

Nothing in it knows of memograd; its model client is told a base URL and a key.

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/auto_gen.py "Which drug does patient 7 take?" aspirin

It wants older packages than memograd, so it has an environment of its own and is trained as a
program:

    memograd train served-agent --agent 'exec:AUTOGEN/bin/python examples/gateway/auto_gen.py' ...
"""

import argparse
import asyncio
import json
import os
import sys
from typing import Any

try:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.models import ModelFamily
    from autogen_ext.models.openai import OpenAIChatCompletionClient
except ModuleNotFoundError as missing:
    if __name__ != "__main__":
        raise
    print(
        f"{missing.name} is not installed: give AutoGen an environment of its own and"
        " `pip install autogen-agentchat 'autogen-ext[openai]'` there.",
        file=sys.stderr,
    )
    raise SystemExit(2) from None

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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("question", nargs="?")
    parser.add_argument("answer", nargs="?", help="what a right answer holds")
    given = parser.parse_args()
    task = {"prompt": given.question, "answer": given.answer}
    if given.answer is None:  # the task is told as JSON, as a trainer tells it to a program
        try:
            task = json.loads("" if sys.stdin.isatty() else sys.stdin.read())
        except ValueError:
            parser.error("give a question and its answer, or a task as JSON on standard input")
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8321/v1")
    key = os.environ.get("OPENAI_API_KEY", "none")
    print(json.dumps({"reward": asyncio.run(run(task, url, key))}))
