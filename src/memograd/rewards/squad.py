"""Exact match and F1 of short answers as in SQuAD, with characters as the words of Chinese.

Follows the evaluation of Rajpurkar et al. 2016 (arXiv:1606.05250): lower case, no punctuation, no
English articles, then equality or the F1 of the two bags of words. The exact match is also the
reward of Memory-R1 (Yan et al. 2025, arXiv:2508.19828), by its own name here. Unlike the reward
`exact_match` (`matching.py`) it ignores articles and punctuation inside an answer.

For Chinese every Han character is a word (`words.py`) and articles stay: "A" is a choice or a class
there. CMRC 2018 (arXiv:1810.07366) takes the longest common substring in place of the bag, so its
F1 of the same words is never above ours.

Invariants: equal answers score 1 in both, exact match never exceeds F1, F1 is symmetric; on English
the official numbers.
"""

from __future__ import annotations

import re
import string
from collections import Counter

from memograd.memory.language import Language, language_of
from memograd.rewards.matching import accepted_answers, answer_part
from memograd.rewards.words import separate_cjk

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_words(text: str, language: Language) -> list[str]:
    """The words that are compared: folded, without punctuation, in English without articles."""
    bare = separate_cjk(text).lower().translate(_NO_PUNCTUATION)
    return (bare if language == "zh" else _ARTICLES.sub(" ", bare)).split()


def squad_em(prediction: str, gold: str, language: Language) -> float:
    """1 if both answers have the same words in the same order, else 0."""
    return float(squad_words(prediction, language) == squad_words(gold, language))


def squad_f1(prediction: str, gold: str, language: Language) -> float:
    """F1 of the two bags of words, in [0, 1]; where one is empty, 1 if both are, else 0."""
    predicted, expected = squad_words(prediction, language), squad_words(gold, language)
    if not predicted or not expected:
        return float(predicted == expected)
    shared = sum((Counter(predicted) & Counter(expected)).values())
    return 2 * shared / (len(predicted) + len(expected))


def memory_r1_exact_match(completion: str, answer: str | float | list[str | float]) -> float:
    """Memory-R1's reward: 1 if the completion's answer is the row's `answer`, else 0.

    Compared by `squad_em` in the language of the right answer (arXiv:2508.19828).
    """
    said = answer_part(completion)
    return float(any(squad_em(said, gold, language_of(gold)) for gold in accepted_answers(answer)))
