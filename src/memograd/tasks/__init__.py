"""What is practised: one file a task, each turning data into scenarios.

Knows neither the trainer nor any model. May import memory, rollout, data, rewards.
"""

from memograd.tasks.memory_qa import MemoryView, memory_qa_messages, memory_qa_scenarios

__all__ = ["MemoryView", "memory_qa_messages", "memory_qa_scenarios"]
