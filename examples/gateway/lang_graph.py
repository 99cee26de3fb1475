"""An agent as a LangGraph graph with a tool node: the model and its tools take turns.

Nothing in it knows of memograd; ChatOpenAI is told a base URL and a key.

    memograd gateway --model smollm2-135m-instruct
    python examples/gateway/lang_graph.py "Which drug does patient 7 take?" aspirin
"""

import argparse
import asyncio
import os
from typing import Any

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

DRUGS = {7: "aspirin", 8: "二甲双胍"}


@tool
def look_up(patient: int) -> str:
    """Look up the drug that a patient takes."""
    return DRUGS.get(patient, "none")


async def run(task: dict[str, Any], base_url: str, api_key: str) -> float:
    """1 if the final answer holds `task["answer"]`, else 0."""
    model = ChatOpenAI(model="policy", base_url=base_url, api_key=api_key)  # type: ignore[arg-type]
    with_tools = model.bind_tools([look_up])

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await with_tools.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode([look_up]))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    asked = {"messages": [{"role": "user", "content": str(task["prompt"])}]}
    said = await graph.compile().ainvoke(asked, {"recursion_limit": 8})
    return float(str(task["answer"]) in str(said["messages"][-1].content))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("question")
    parser.add_argument("answer", help="what a right answer holds")
    given = parser.parse_args()
    url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8321/v1")
    key = os.environ.get("OPENAI_API_KEY", "none")
    print(asyncio.run(run({"prompt": given.question, "answer": given.answer}, url, key)))
