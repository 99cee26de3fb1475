"""The medical SQL agent on openai-agents: any OpenAI-compatible server is its model.

    python examples/sql/agent_openai.py http://127.0.0.1:8000/v1 "华法林有哪些禁忌？"

Nothing in `run` knows of training: it gets a task (a row of `memograd.tasks.sql.questions`), a base
URL and a key. Behind a gateway that records calls by base URL, the same agent is trained.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from memograd.tasks.sql.questions import system_prompt
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sandbox import Sandbox
from memograd.tasks.sql.tool import show_result

MAX_TURNS = 6


async def run(task: Mapping[str, Any], base_url: str, api_key: str, model: str = "policy") -> str:
    """Answer `task["question"]` by asking `task["database"]`; returns the final answer."""
    set_tracing_disabled(True)
    sandbox = Sandbox(Path(task["database"]))

    @function_tool
    def query_database_by_sql(sql: str) -> str:
        """在医学数据库里执行一条SELECT语句，返回查询结果。

        Args:
            sql: 一条SQLite的SELECT语句
        """
        return show_result(sandbox.run(sql))

    async with AsyncOpenAI(base_url=base_url, api_key=api_key) as client:
        agent = Agent(
            name="medical-sql",
            instructions=system_prompt(sandbox),
            model=OpenAIChatCompletionsModel(model=model, openai_client=client),
            model_settings=ModelSettings(temperature=1.0, max_tokens=256),
            tools=[query_database_by_sql],
        )
        result = await Runner.run(agent, str(task["question"]), max_turns=MAX_TURNS)
    return str(result.final_output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", help="the server's base URL, such as http://127.0.0.1:8000/v1")
    parser.add_argument("question")
    given = parser.parse_args()
    asked = {"question": given.question, "database": str(sample_database())}
    print(asyncio.run(run(asked, given.base, "none")))
