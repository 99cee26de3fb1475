"""An AutoGen agent that remembers, by the MCP tools of `memograd serve`.

    memograd serve keys create autogen --user alice --path memories
    memograd serve --path memories
    python examples/frameworks/autogen_agent.py http://127.0.0.1:8322/mcp KEY

AutoGen wants mcp 1 and an older protobuf, so give it an environment of its own:
`pip install autogen-agentchat 'autogen-ext[mcp]' 'mcp<2'`. The model is scripted, so that this runs
without one: put your own client there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

try:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
    from autogen_ext.models.replay import ReplayChatCompletionClient
    from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams
except ModuleNotFoundError as missing:
    print(
        f"{missing.name} is not installed: give AutoGen an environment of its own and"
        " `pip install autogen-agentchat 'autogen-ext[mcp]' 'mcp<2'` there.",
        file=sys.stderr,
    )
    raise SystemExit(2) from None

TOOLS_ONLY = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.UNKNOWN,
    structured_output=False,
)


def call(tool: str, **arguments: str) -> CreateResult:
    """What a model answers that calls a tool."""
    return CreateResult(
        finish_reason="function_calls",
        content=[FunctionCall(id=tool, name=tool, arguments=json.dumps(arguments))],
        usage=RequestUsage(prompt_tokens=0, completion_tokens=0),
        cached=False,
    )


async def main(url: str, key: str) -> None:
    """Tell the agent something, and ask for it in another conversation."""
    server = StreamableHttpServerParams(url=url, headers={"Authorization": f"Bearer {key}"})
    async with McpWorkbench(server) as memory:
        for said, answer in (
            ("I live in Lisbon.", call("add_memory", text="I live in Lisbon.")),
            ("Where do I live?", call("search_memories", query="Where do I live?")),
        ):
            model = ReplayChatCompletionClient([answer], model_info=TOOLS_ONLY)
            agent = AssistantAgent("helper", model_client=model, workbench=memory)
            print((await agent.run(task=said)).messages[-1].to_text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", help="where `memograd serve` is, such as http://127.0.0.1:8322/mcp")
    parser.add_argument("key", help="what `memograd serve keys create` printed")
    told = parser.parse_args()
    asyncio.run(main(told.url, told.key))
