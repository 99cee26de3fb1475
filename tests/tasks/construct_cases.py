"""A small case by hand and an embedder of letters, for the tests of memory-construct."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from memograd.data.conversation import Question
from memograd.tasks.memory_construct.case import (
    AnswerPart,
    BuildCase,
    CaseQuestion,
    Chunk,
    Misleading,
)


def question(name: str, text: str, answer: str = "") -> Question:
    return Question(name, text, answer, "single-hop", ())


def small_case() -> BuildCase:
    """Where Tom lives changes in the second chunk; the third is small talk."""
    return BuildCase(
        id="tom",
        language="en",
        chunks=(
            Chunk("[1 May 2023] Tom: I live in Lyon.\n[1 May 2023] Tom: My dog is called Ziggy."),
            Chunk("[9 May 2023] Tom: I have moved, I live in Porto now."),
            Chunk("[20 May 2023] Tom: I had lentil soup for lunch."),
        ),
        asked=(
            CaseQuestion(
                question("q1", "Where does Tom live?", "Lyon"), 0, (AnswerPart(("Lyon",), 0),)
            ),
            CaseQuestion(
                question("q2", "Where does Tom live?", "Porto"),
                2,
                (AnswerPart(("Porto",), 1),),
                (Misleading(("lyon",), 1),),
            ),
            CaseQuestion(
                question("q3", "What is Tom's dog called?", "Ziggy"),
                2,
                (AnswerPart(("Ziggy",), 0),),
            ),
        ),
    )


class LetterEmbedder:
    """Triples of letters hashed into a unit vector; `batches` are the sizes it was asked for."""

    name = "letters"

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.batches: list[int] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.batches.append(len(texts))
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text} "
            for start in range(len(padded) - 2):
                place = zlib.crc32(padded[start : start + 3].encode()) % self.dimension
                vectors[row, place] += 1.0
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed(texts)
