"""Conversations with questions: public sets, files of one's own, generated lives, splits.

Every set becomes `Conversation` or `ConstructionCase`; `lifelog` holds the generator.
"""

from memograd.data.conversation import (
    NOT_MENTIONED,
    ConstructionCase,
    Conversation,
    LoadReport,
    Question,
    construction_case_of,
)
from memograd.data.conversations_jsonl import (
    load_conversations_jsonl,
    load_written_conversations,
    write_conversations_jsonl,
)
from memograd.data.detect import load_any
from memograd.data.locomo import CATEGORIES, load_locomo, load_locomo_with_report
from memograd.data.longmemeval import load_longmemeval, load_longmemeval_with_report
from memograd.data.mem_alpha import load_mem_alpha, load_mem_alpha_with_report
from memograd.data.memdaily import load_memdaily, load_memdaily_with_report
from memograd.data.memory_agent_bench import (
    load_memory_agent_bench,
    load_memory_agent_bench_with_report,
)
from memograd.data.splits import ConversationSplit, select_conversations, split_by_conversation

__all__ = [
    "CATEGORIES",
    "NOT_MENTIONED",
    "ConstructionCase",
    "Conversation",
    "ConversationSplit",
    "LoadReport",
    "Question",
    "construction_case_of",
    "load_any",
    "load_conversations_jsonl",
    "load_locomo",
    "load_locomo_with_report",
    "load_longmemeval",
    "load_longmemeval_with_report",
    "load_mem_alpha",
    "load_mem_alpha_with_report",
    "load_memdaily",
    "load_memdaily_with_report",
    "load_memory_agent_bench",
    "load_memory_agent_bench_with_report",
    "load_written_conversations",
    "select_conversations",
    "split_by_conversation",
    "write_conversations_jsonl",
]
