"""mem0's answer metrics: F1 over *sets* of plain words, and BLEU-1.

Follow `evaluation/metrics/utils.py` of mem0 (Chhikara et al. 2025, arXiv 2504.19413), which took
them from A-Mem (Xu et al. 2025, arXiv 2502.12110). They differ from LoCoMo's F1 (`locomo.py`): no
stemming, repeated words count once, only `., ! ?` are dropped, articles stay, categories are
ignored.

One known difference, in BLEU-1 only: the original cuts sentences with NLTK's *trained* Punkt model,
a download; we use the same Punkt algorithm untrained, then the same Treebank word tokenizer. They
part only where a learned abbreviation ends inside a text ("last tues. we met"). Measured on LoCoMo
conversations 26 and 30: equal tokens in 304 of 304 gold answers and 785 of 788 turns.

Invariant: otherwise, on text without CJK writing, the scores equal the original's;
`tests/rewards/test_mem0_metrics.py` checks hand-computed cases and an independent implementation.
CJK characters are tokens (`words.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from memograd.rewards.matching import best_score
from memograd.rewards.words import require_texts, separate_cjk

_DROPPED = str.maketrans(dict.fromkeys(".,!?", " "))


def simple_tokens(text: str) -> list[str]:
    """Lower-case words between blanks, where `. , ! ?` are blanks too."""
    return separate_cjk(text).lower().translate(_DROPPED).split()


def set_f1(prediction: str, gold: str) -> float:
    """F1 of the two sets of words, in [0, 1]; symmetric; 0 when either is empty."""
    predicted, expected = set(simple_tokens(prediction)), set(simple_tokens(gold))
    shared = len(predicted & expected)
    if shared == 0:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(expected)
    return 2 * precision * recall / (precision + recall)


def word_tokens(text: str) -> list[str]:
    """Treebank tokens of every sentence of the lower-cased text; punctuation marks are tokens."""
    split_sentences, split_words = _tokenizers()
    sentences = split_sentences(separate_cjk(text.strip()).lower())
    return [word for sentence in sentences for word in split_words(sentence)]


@cache
def _tokenizers() -> tuple[Callable[[str], list[str]], Callable[[str], list[str]]]:
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    return PunktSentenceTokenizer().tokenize, NLTKWordTokenizer().tokenize


def bleu1(prediction: str, gold: str) -> float:
    """BLEU-1 in [0, 1]: clipped unigram precision times the brevity penalty (Papineni et al. 2002).

    0 when no token is shared. Not symmetric: a prediction longer than the gold loses precision, a
    shorter one pays the penalty exp(1 - len(gold) / len(prediction)). Equals NLTK's
    `sentence_bleu` with weights (1, 0, 0, 0), whatever the smoothing, as mem0 calls it.
    """
    predicted, expected = word_tokens(prediction), word_tokens(gold)
    shared = sum((Counter(predicted) & Counter(expected)).values())
    if shared == 0:
        return 0.0
    penalty = math.exp(min(0.0, 1 - len(expected) / len(predicted)))
    return penalty * shared / len(predicted)


def mem0_f1(
    prompts: Sequence[Any],
    completions: Sequence[str],
    *,
    answer: Sequence[str | list[str]],
    **columns: Sequence[Any],
) -> list[float | None]:
    """Reward: `set_f1` of every completion and its row's `answer` or answers."""
    require_texts("completions", completions)
    return _best(set_f1, completions, answer)


def mem0_bleu1(
    prompts: Sequence[Any],
    completions: Sequence[str],
    *,
    answer: Sequence[str | list[str]],
    **columns: Sequence[Any],
) -> list[float | None]:
    """Reward: `bleu1` of every completion and its row's `answer` or answers."""
    require_texts("completions", completions)
    return _best(bleu1, completions, answer)


def _best(
    score: Callable[[str, str], float],
    completions: Sequence[str],
    answers: Sequence[str | list[str]],
) -> list[float | None]:
    """The score of each completion with that right answer of its row which it is closest to."""
    return [
        best_score(lambda gold, said=said: score(said, gold), golds)  # type: ignore[misc]
        for said, golds in zip(completions, answers, strict=True)
    ]
