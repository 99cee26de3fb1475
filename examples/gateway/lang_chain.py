"""An agent as a LangChain chain: a prompt, the model, and a second look at what it said.

Nothing in it knows of memograd; ChatOpenAI is told a base URL and a key.

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/lang_chain.py "How old are you?" 12
"""

import argparse
import asyncio
import os
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI


async def run(task: dict[str, Any], base_url: str, api_key: str) -> float:
    """1 if the last answer holds `task["answer"]`, else 0."""
    model = ChatOpenAI(model="policy", base_url=base_url, api_key=api_key)  # type: ignore[arg-type]
    draft = ChatPromptTemplate.from_messages(
        [("system", "Answer the question."), ("user", "{question}")]
    )
    check = ChatPromptTemplate.from_messages(
        [("system", "Correct the answer."), ("user", "{question}\n{said}")]
    )
    question = str(task["prompt"])
    said = await (draft | model | StrOutputParser()).ainvoke({"question": question})
    asked = {"question": question, "said": said}
    corrected = await (check | model | StrOutputParser()).ainvoke(asked)
    return float(str(task["answer"]) in corrected)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("question")
    parser.add_argument("answer", help="what a right answer holds")
    given = parser.parse_args()
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8321/v1")
    key = os.environ.get("OPENAI_API_KEY", "none")
    print(asyncio.run(run({"prompt": given.question, "answer": given.answer}, url, key)))
