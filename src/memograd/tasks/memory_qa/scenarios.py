"""memory-qa: answer a question about a past conversation from what the memory brings back.

A scenario is one question: the chat holds the retrieved turns, dated and in the order they were
said, or the items that a memory manager kept of them, and the question; rewards see the gold
`answer`, its `category` and the `evidence` ids. What was not kept, or what the retrieval missed, no
policy can answer: that is part of the task. `category` is LoCoMo's, whose F1 has a rule for each;
questions of other data count as its single-hop, which is the plain F1. What the data themselves
call it is `kind`. Items (`ItemMemory`) are ranked by cosine alone, as turns are, so that turns and
items differ in what was kept and not in how it is found.

Invariants: a scenario's prompt is built from the memory's scope of its own conversation, and
neither the gold answer nor the evidence ids enter it; a search of items never shows more than
`top_k` of them nor more tokens than the budget, in the order in which they were learnt; a rendered
item is one line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from memograd.data import Conversation, Question
from memograd.memory import TurnMemory, format_date
from memograd.memory.language import is_chinese
from memograd.rewards import CATEGORIES
from memograd.rollout.types import Message, Scenario

if TYPE_CHECKING:
    from memograd.memory.embedders import Embedder


@dataclass(frozen=True)
class KeptItem:
    """A remembered statement. time: since when it holds or when it was told, None where unknown."""

    text: str
    time: datetime | None = None

    def render(self) -> str:
        """The one line that a prompt shows: `[7 May 2023] Caroline lives in Boston.`"""
        dated = f"[{format_date(self.time)}] " if self.time else ""
        return " ".join(f"{dated}{self.text}".splitlines())

    def to_json(self) -> dict[str, Any]:
        """JSON values only; a time that is not known is left out."""
        return {"text": self.text, **({"time": self.time.isoformat()} if self.time else {})}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> KeptItem:
        """The item that `to_json` wrote."""
        time = values.get("time")
        return cls(values["text"], datetime.fromisoformat(time) if time else None)


class ItemMemory:
    """The items of one conversation, in the order in which they were learnt."""

    def __init__(self, items: Sequence[KeptItem], embedder: Embedder) -> None:
        self.items = list(items)
        self._embedder = embedder
        self._vectors_ND = embedder.embed([_indexed(item) for item in items]) if items else None

    def search_many(
        self,
        queries: Sequence[str],
        *,
        top_k: int,
        token_budget: int,
        count_tokens: Callable[[str], int],
    ) -> list[list[KeptItem]]:
        """For every query the `top_k` items nearest to it, as far as they fit in `token_budget`.

        One that exceeds what is left of the budget is skipped, as `memory.fill_budget` does it.
        """
        if self._vectors_ND is None or not queries:
            return [[] for _ in queries]
        found = []
        for query_D in self._embedder.embed_queries(queries):
            ranked = (-(self._vectors_ND @ query_D)).argsort(kind="stable")[:top_k]
            left, places = token_budget, []
            for place in ranked.tolist():
                cost = count_tokens(self.items[place].render() + "\n")
                if cost <= left:
                    left -= cost
                    places.append(place)
            found.append([self.items[place] for place in sorted(places)])
        return found


def _indexed(item: KeptItem) -> str:
    """What is embedded: the date behind the text, as `RawTurn.index_text` has it."""
    return f"{item.text} [{format_date(item.time)}]" if item.time else item.text


INSTRUCTION = (
    "You answer questions about past conversations from memory notes. "
    "Reply with the shortest complete answer: a name, a date or a few words, no sentence."
)
INSTRUCTION_ZH = (
    "你根据记忆记录回答关于过去对话的问题。"
    "只给出最短的完整答案:一个名字、一个日期或几个词,不要整句。"
)


class MemoryView(Enum):
    """What a prompt shows: what was retrieved, or one of the two baselines."""

    RETRIEVED = "retrieved"
    LAST = "last"
    NONE = "none"


def memory_qa_messages(question: str, remembered: Sequence[str]) -> tuple[Message, ...]:
    """The chat of one question, in Chinese if it has more Chinese characters than Latin words.

    remembered: the lines of memory that it shows, in their order.
    """
    chinese = is_chinese(question)
    return (
        Message(role="system", content=INSTRUCTION_ZH if chinese else INSTRUCTION),
        Message(role="user", content=memory_qa_question(question, "\n".join(remembered))),
    )


def memory_qa_question(question: str, memory: str) -> str:
    """What the user says: the lines of memory, which may be none, and the question."""
    before, after = _around_memory(question)
    empty = "(空)" if is_chinese(question) else "(empty)"
    return f"{before}{memory or empty}{after}"


def shown_memory(scenario: Scenario) -> str:
    """The lines of memory in a scenario's prompt, as `memory_qa_question` was given them."""
    said, question = scenario.messages[-1]["content"], str(scenario.columns["question"])
    before, after = _around_memory(question)
    memory = said.removeprefix(before).removesuffix(after)
    return "" if memory_qa_question(question, "") == said else memory


def _around_memory(question: str) -> tuple[str, str]:
    if is_chinese(question):
        return "记忆:\n", f"\n\n问题:{question}\n简短答案:"
    return "Memory:\n", f"\n\nQuestion: {question}\nShort answer:"


@dataclass(frozen=True)
class PromptMemory:
    """What prompts may show of conversations, and how much of it.

    turns: holds the turns of each conversation under the scope `conversation.id`. top_k: turns or
    items of one prompt, at most. token_budget: what they may cost, as `count_tokens` counts them.
    items: what a manager kept, which is retrieved instead of the turns. ranked: turns are found as
    `Memory.search` ranks them, else by the nearest vectors.
    """

    turns: TurnMemory
    top_k: int
    token_budget: int
    count_tokens: Callable[[str], int]
    items: ItemMemory | None = None
    ranked: bool = False

    def lines(self, conversation: Conversation, view: MemoryView) -> list[list[str]]:
        """The lines that the prompt of each of the conversation's questions shows."""
        texts = [question.text for question in conversation.questions]
        if view is MemoryView.NONE:
            return [[] for _ in texts]
        if view is MemoryView.LAST:
            last = self.turns.last_turns(
                conversation.id,
                top_k=self.top_k,
                token_budget=self.token_budget,
                count_tokens=self.count_tokens,
            )
            return [[one.turn.render() for one in last] for _ in texts]
        if self.items is not None:
            kept = self.items.search_many(
                texts,
                top_k=self.top_k,
                token_budget=self.token_budget,
                count_tokens=self.count_tokens,
            )
            return [[item.render() for item in found] for found in kept]
        said = self.turns.search_many(
            texts,
            scope=conversation.id,
            top_k=self.top_k,
            token_budget=self.token_budget,
            count_tokens=self.count_tokens,
            ranked=self.ranked,
        )
        return [[one.turn.render() for one in found] for found in said]


def memory_qa_scenarios(
    conversation: Conversation, memory: PromptMemory, view: MemoryView
) -> list[Scenario]:
    """One scenario a question of `conversation`; its loader has kept adversarial ones apart."""
    return [
        Scenario(
            id=question.id,
            messages=memory_qa_messages(question.text, remembered),
            columns=question_columns(conversation, question),
        )
        for question, remembered in zip(
            conversation.questions, memory.lines(conversation, view), strict=True
        )
    ]


def question_columns(conversation: Conversation, question: Question) -> dict[str, Any]:
    """What rewards can read of a question."""
    answers = [question.answer, *question.accepted]
    return {
        "question": question.text,
        "answer": answers if question.accepted else question.answer,
        "category": _locomo_category(question.category),
        "kind": question.category,
        "conversation": conversation.id,
        "evidence": list(question.evidence),
    }


def _locomo_category(kind: str) -> str:
    """LoCoMo's name of the rule that an answer is scored by; what is asked here has an answer."""
    return kind if kind in CATEGORIES and kind != "adversarial" else "single-hop"
