"""What is practised: one file a task, each turning data into scenarios.

Knows neither the trainer nor any model. May import memory, rollout, data, rewards.
"""

from memograd.tasks.memory_qa import MemoryView, memory_qa_messages, memory_qa_scenarios
from memograd.tasks.text import check_apart, read_rows, split_rows, text_scenarios

__all__ = [
    "MemoryView",
    "check_apart",
    "memory_qa_messages",
    "memory_qa_scenarios",
    "read_rows",
    "split_rows",
    "text_scenarios",
]
