"""How often each prompt is answered: one number for all of them, or each its own.

Samplers take both as `num_generations`. Invariant: `each` undoes `one_or_each`.
"""

from __future__ import annotations

from collections.abc import Sequence


def one_or_each(counts: Sequence[int]) -> int | list[int]:
    """The one number that all `counts` are, or the counts; what a policy's `sample` takes.

    A policy that knows one number only can so be trained with groups of one size.
    """
    return counts[0] if len(set(counts)) == 1 else list(counts)


def each(num_generations: int | Sequence[int], prompts: int) -> list[int]:
    """How often each of so many `prompts` is answered.

    Raises `ValueError` if the numbers are not as many as the prompts.
    """
    if isinstance(num_generations, int):
        return [num_generations] * prompts
    if len(num_generations) != prompts:
        raise ValueError(f"{len(num_generations)} counts were given for {prompts} prompts")
    return list(num_generations)
