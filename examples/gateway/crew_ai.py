"""A crew of one on CrewAI with a tool: it looks a patient's drug up and answers.

Nothing in it knows of memograd; its LLM is told a base URL and a key.

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/crew_ai.py "Which drug does patient 7 take?" aspirin
"""

import asyncio
import os
import sys
from typing import Any

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

DRUGS = {7: "aspirin", 8: "二甲双胍"}


@tool("look_up")
def look_up(patient: int) -> str:
    """Look up the drug that a patient takes."""
    return DRUGS.get(patient, "none")


async def run(task: dict[str, Any], base_url: str, api_key: str) -> float:
    """1 if the final answer holds `task["answer"]`, else 0."""
    nurse = Agent(
        role="nurse",
        goal="Answer from what the tool says.",
        backstory="You look things up.",
        llm=LLM(model="openai/policy", base_url=base_url, api_key=api_key),
        tools=[look_up],
        max_iter=3,
    )
    asked = Task(description=str(task["prompt"]), expected_output="A drug.", agent=nurse)
    result = await Crew(agents=[nurse], tasks=[asked]).kickoff_async()
    return float(str(task["answer"]) in str(result.raw))


if __name__ == "__main__":
    question, expected = sys.argv[1:3]
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8321/v1")
    key = os.environ.get("OPENAI_API_KEY", "none")
    print(asyncio.run(run({"prompt": question, "answer": expected}, url, key)))
