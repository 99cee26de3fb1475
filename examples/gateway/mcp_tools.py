"""An MCP server as an agent's environment: its tools are the model's, whatever they are.

The agent lists what the server offers, gives it to the model, carries its calls out and tells it
what came of them. Nothing in it knows of memograd. Here the server is in this file; a URL or a
command in its place connects to any other.

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/mcp_tools.py "Which drug does patient 7 take?" aspirin
"""

import argparse
import asyncio
import json
import os
from typing import Any

from mcp import Client
from mcp.server import MCPServer
from openai import AsyncOpenAI

DRUGS = {7: "aspirin", 8: "二甲双胍"}
MAX_TURNS = 4

server = MCPServer("hospital")


@server.tool()
def look_up(patient: int) -> str:
    """Look up the drug that a patient takes."""
    return DRUGS.get(patient, "none")


async def run(task: dict[str, Any], base_url: str, api_key: str) -> float:
    """1 if the final answer holds `task["answer"]`, else 0."""
    async with (
        Client(server) as environment,
        AsyncOpenAI(base_url=base_url, api_key=api_key) as client,
    ):
        tools: list[Any] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description or "",
                    "parameters": tool.input_schema,
                },
            }
            for tool in (await environment.list_tools()).tools
        ]
        messages: list[Any] = [{"role": "user", "content": str(task["prompt"])}]
        for _ in range(MAX_TURNS):
            answer = await client.chat.completions.create(
                model="policy", messages=messages, tools=tools
            )
            said = answer.choices[0].message
            if not said.tool_calls:
                return float(str(task["answer"]) in (said.content or ""))
            messages.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls:
                told = await _carried_out(environment, call)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
    return 0.0


async def _carried_out(environment: Client, call: Any) -> str:
    """What the server says, also where a call is wrong, so that the model reads why."""
    try:
        arguments = json.loads(call.function.arguments)
        result = await environment.call_tool(call.function.name, arguments)
    except Exception as error:
        return f"Error: {error}"
    return "\n".join(part.text for part in result.content if part.type == "text")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("question")
    parser.add_argument("answer", help="what a right answer holds")
    given = parser.parse_args()
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8321/v1")
    key = os.environ.get("OPENAI_API_KEY", "none")
    print(asyncio.run(run({"prompt": given.question, "answer": given.answer}, url, key)))
