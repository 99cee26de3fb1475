"""A prompt shows its own conversation's memory, and never the gold answer or the evidence ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from memograd.data import Conversation
from memograd.memory import TurnMemory
from memograd.tasks.memory_qa.scenarios import (
    MemoryView,
    PromptMemory,
    memory_qa_messages,
    memory_qa_scenarios,
)


class WordEmbedder:
    """Bags of hashed words: deterministic, and close texts share words. No model to load."""

    name = "words"
    dimension = 64

    def embed(self, texts) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, sum(word.encode()) % self.dimension] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    def embed_queries(self, texts) -> np.ndarray:
        return self.embed(texts)


@pytest.fixture(scope="module")
def conversations(lives) -> list[Conversation]:
    return lives(2, 5, sessions=6)


@pytest.fixture(scope="module")
def memory(conversations, tmp_path_factory) -> Iterator[TurnMemory]:
    path = tmp_path_factory.mktemp("task") / "memory.db"
    with TurnMemory.open(path, WordEmbedder()) as memory:
        for conversation in conversations:
            memory.add_turns(conversation.id, conversation.turns)
        yield memory


def scenarios(conversation, memory, view=MemoryView.RETRIEVED, top_k=5, token_budget=1000):
    shown = PromptMemory(memory, top_k, token_budget, lambda text: len(text.split()))
    return memory_qa_scenarios(conversation, shown, view)


def memory_lines(scenario) -> list[str]:
    text = scenario.messages[-1]["content"]
    return text.split("Memory:\n")[1].split("\n\nQuestion:")[0].splitlines()


def test_prompts_hold_turns_of_their_own_conversation_only(conversations, memory) -> None:
    for conversation in conversations:
        own = {turn.render() for turn in conversation.turns}
        for scenario in scenarios(conversation, memory):
            lines = memory_lines(scenario)
            assert 1 <= len(lines) <= 5
            assert set(lines) <= own


def test_nothing_of_the_gold_enters_but_what_was_said(conversations, memory) -> None:
    """Taking memory and question out of a prompt leaves the same text for every question."""
    rests = set()
    for scenario, question in zip(
        scenarios(conversations[0], memory), conversations[0].questions, strict=True
    ):
        text = scenario.messages[-1]["content"]
        for line in memory_lines(scenario):
            text = text.replace(line, "")
        rests.add(text.replace(question.text, "").replace("\n", ""))
        assert scenario.columns["answer"] == question.answer
        assert scenario.columns["kind"] == question.category
        assert scenario.id == question.id
    assert len(rests) == 1


def test_views(conversations, memory) -> None:
    conversation = conversations[0]
    for scenario in scenarios(conversation, memory, MemoryView.NONE):
        assert memory_lines(scenario) == ["(empty)"]
    last = [turn.render() for turn in conversation.turns[-5:]]
    for scenario in scenarios(conversation, memory, MemoryView.LAST):
        assert memory_lines(scenario) == last


def test_the_budget_bounds_the_memory(conversations, memory) -> None:
    for scenario in scenarios(conversations[0], memory, token_budget=30):
        assert sum(len(line.split()) for line in memory_lines(scenario)) <= 30


def test_a_chinese_question_gets_a_chinese_prompt() -> None:
    system, user = memory_qa_messages("小明的猫叫什么名字?", [])
    assert "记忆" in user["content"] and user["content"].endswith("简短答案:")
    assert "Memory" not in user["content"] and "只给出" in system["content"]
    _, english = memory_qa_messages("What does 王芳 like?", [])
    assert english["content"].endswith("Short answer:")
    _, mixed = memory_qa_messages("王芳的MacBook Pro多少钱?", [])
    assert mixed["content"].endswith("简短答案:")
