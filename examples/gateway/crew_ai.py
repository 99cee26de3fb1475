"""A crew of one on CrewAI with a tool: it looks a patient's drug up and answers.

Nothing in it knows of memograd; its LLM is told a base URL and a key.

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/crew_ai.py "Which drug does patient 7 take?" aspirin

It wants older packages than memograd, so it has an environment of its own and is trained as a
program:

    memograd train served-agent --agent 'exec:CREWAI/bin/python examples/gateway/crew_ai.py' ...
"""

import argparse
import asyncio
import json
import os
import sys
from typing import Any

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")

try:
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool
except ModuleNotFoundError as missing:
    if __name__ != "__main__":
        raise
    print(
        f"{missing.name} is not installed: give CrewAI an environment of its own and"
        " `pip install crewai` there.",
        file=sys.stderr,
    )
    raise SystemExit(2) from None

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
