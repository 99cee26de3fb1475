"""The program that is optimised: the prompt of memory-qa as a DSPy module.

DSPy's own adapters wrap every field in markers that a small model cannot follow, and no adapter of
weights was trained on them. Here a program that nobody optimised says exactly what memory-qa says,
so a prompt and a GRPO adapter are compared, and used together, on the same words. What optimisers
change are the instructions (the system message) and the demonstrations (earlier turns of the chat).

Invariant: without demonstrations and with its first instructions the program's messages are those
of `memory_qa_messages`; a program is what its JSON file says, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy

from memograd.errors import BadInput
from memograd.memory.language import is_chinese
from memograd.rewards.matching import accepted_answers
from memograd.rollout.types import Scenario
from memograd.tasks.memory_qa.scenarios import (
    INSTRUCTION,
    INSTRUCTION_ZH,
    memory_qa_question,
    shown_memory,
)


class MemoryQAAdapter(dspy.Adapter):  # type: ignore[misc]
    """Writes the chat of memory-qa; the answer is the whole of what the model says."""

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Instructions, demonstrations, the question."""
        told = signature.instructions
        if told == INSTRUCTION and is_chinese(inputs["question"]):
            told = INSTRUCTION_ZH
        messages = [{"role": "system", "content": told}]
        for demo in demos:
            messages += [
                {"role": "user", "content": _asked(demo)},
                {"role": "assistant", "content": str(demo["answer"])},
            ]
        return [*messages, {"role": "user", "content": _asked(inputs)}]

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """The answer, without space around it, as a policy's own texts are read."""
        return {"answer": completion.strip()}

    def _call_postprocess(
        self,
        processed_signature: type[dspy.Signature],
        original_signature: type[dspy.Signature],
        outputs: list[dict[str, Any] | str],
        lm: dspy.BaseLM,
        lm_kwargs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """An empty answer is an answer; DSPy's own would make it an exception."""
        texts = [one["text"] if isinstance(one, dict) else one for one in outputs]
        return [self.parse(original_signature, text or "") for text in texts]


class MemoryQAProgram(dspy.Module):  # type: ignore[misc]
    """Answers a question from lines of memory: `program(memory=..., question=...).answer`."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(dspy.make_signature("memory, question -> answer", INSTRUCTION))

    def forward(self, memory: str, question: str) -> dspy.Prediction:
        """One call of the model."""
        with dspy.context(adapter=MemoryQAAdapter()):
            return self.answer(memory=memory, question=question)


def load_program(file: Path) -> MemoryQAProgram:
    """The program that was saved to a JSON file.

    Raises:
        BadInput: it cannot be read, or is of another program.
    """
    program = MemoryQAProgram()
    try:
        program.load(str(file))
    except OSError as error:
        raise BadInput(f"The program {file} cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{file} is no saved program of memory-qa ({error}).") from None
    return program


def examples(scenarios: Sequence[Scenario]) -> list[dspy.Example]:
    """A DSPy example a scenario; `id` says which, as examples are copied into programs."""
    return [
        dspy.Example(
            memory=shown_memory(scenario),
            question=str(scenario.columns["question"]),
            answer=accepted_answers(scenario.columns["answer"])[0],
            id=scenario.id,
        ).with_inputs("memory", "question")
        for scenario in scenarios
    ]


def _asked(values: dict[str, Any]) -> str:
    return memory_qa_question(values["question"], values["memory"])
