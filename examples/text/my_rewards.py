"""Reward functions for prompts.jsonl: is the answer in the form that was asked for, and right?

A reward function gets the columns of the rows that it names, one entry a completion, and returns
one number a completion (None where it does not apply). These run in TRL's GRPOTrainer too.
"""

from __future__ import annotations

import re


def text_of(completion: str | list[dict[str, str]]) -> str:
    """A completion is a text for a string prompt, and a list of one message for a chat."""
    return completion if isinstance(completion, str) else completion[0]["content"]


def exact_format(completions, form, **columns):
    """1 for the asked form and nothing else, 0.3 for a beginning in it, else 0."""
    scores = []
    for completion, wanted in zip(completions, form, strict=True):
        text = text_of(completion)
        start, end = wanted.split("{}")
        # One word or number between, without blanks.
        exact = re.fullmatch(re.escape(start) + r"\s?[^\s\[\]【】:]+" + re.escape(end), text)
        scores.append(1.0 if exact else 0.3 if text.startswith(start.strip()) else 0.0)
    return scores


def correct(completions, answer, **columns):
    """1 if the gold answer is somewhere in the completion."""
    return [
        float(gold.casefold() in text_of(completion).casefold())
        for completion, gold in zip(completions, answer, strict=True)
    ]
