"""An agent on the plain `openai` client: a writer answers, a critic looks, the writer tries again.

Nothing in it knows of memograd. Both talk to the same model; the header X-Agent-Name tells their
calls apart, so that one of them can be trained alone (optimize_agents).

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/plain_openai.py "How old are you?" 12
"""

import argparse
import asyncio
import os
from typing import Any

from openai import AsyncOpenAI


async def run(task: dict[str, Any], base_url: str, api_key: str) -> float:
    """1 if the last answer holds `task["answer"]`, else 0."""
    client = AsyncOpenAI(base_url=base_url, api_key=api_key)

    async def say(agent: str, messages: list[Any]) -> str:
        answer = await client.chat.completions.create(
            model="policy", messages=messages, max_tokens=32, extra_headers={"X-Agent-Name": agent}
        )
        return answer.choices[0].message.content or ""

    chat = [{"role": "user", "content": str(task["prompt"])}]
    first = await say("writer", chat)
    doubt = await say("critic", [{"role": "user", "content": f"What is wrong with: {first}"}])
    chat += [{"role": "assistant", "content": first}, {"role": "user", "content": doubt}]
    last = await say("writer", chat)
    await client.close()
    return float(str(task["answer"]) in last)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("question")
    parser.add_argument("answer", help="what a right answer holds")
    given = parser.parse_args()
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8321/v1")
    key = os.environ.get("OPENAI_API_KEY", "none")
    print(asyncio.run(run({"prompt": given.question, "answer": given.answer}, url, key)))
