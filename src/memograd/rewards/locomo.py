"""LoCoMo's own F1: stemmed token overlap with one rule per question category.

Follows the evaluation of Maharana et al. 2024 (arXiv 2402.17753; `task_eval/evaluation.py` of their
repository), odd corners included: golds are cut at commas only for multi-hop questions, a part of a
gold that is all punctuation or articles can never be matched, and two empty texts score 0. This is
*not* mem0's F1 (`mem0.py`), although papers print both as "F1"; hence two names that never mix.

Invariant: on text without CJK writing the score equals the official one;
`tests/rewards/test_locomo_f1.py` checks hand-computed cases and an independent implementation.
Extensions, for CJK text only: characters are tokens (`words.py`), lists may also be cut at "，" and
"、", and an open-domain gold at "；"; for adversarial questions three Chinese phrases say "not
mentioned" too.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import regex

from memograd.errors import BadInput
from memograd.rewards.matching import best_score
from memograd.rewards.words import require_texts, separate_cjk

if TYPE_CHECKING:
    from nltk.stem import PorterStemmer

CATEGORIES = ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial")
"""Names of LoCoMo's category numbers 1 to 5, in that order."""

REFUSALS = ("no information available", "not mentioned", "没有相关信息", "没有提到", "未提及")
"""What an answer to an adversarial question has to contain; the first two are the official ones."""

# `regex`, not `re`: the official code uses it, and the two disagree on \b beside combining marks.
_ARTICLES = regex.compile(r"\b(a|an|the|and)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@cache
def _stemmer() -> PorterStemmer:
    from nltk.stem import PorterStemmer

    return PorterStemmer()


def normalize_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles ("and" counts as one), single blanks."""
    bare = separate_cjk(text).lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def stemmed_tokens(text: str) -> list[str]:
    """Porter stems (NLTK's default mode, as in the official code) of the normalised words."""
    return [_stemmer().stem(word) for word in normalize_answer(text).split()]


def token_f1(prediction: str, gold: str) -> float:
    """F1 of the two bags of stems, in [0, 1]; symmetric; 0 when they share none or are empty."""
    predicted, expected = stemmed_tokens(prediction), stemmed_tokens(gold)
    shared = sum((Counter(predicted) & Counter(expected)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(expected)
    return 2 * precision * recall / (precision + recall)


def multi_answer_f1(prediction: str, gold: str) -> float:
    """Mean over the gold's listed parts of the best `token_f1` with any part of the prediction."""
    predicted, expected = _listed_parts(prediction), _listed_parts(gold)
    return sum(max(token_f1(p, g) for p in predicted) for g in expected) / len(expected)


def _listed_parts(text: str) -> list[str]:
    return [part.strip() for part in regex.split("[,，、]", text)]


def locomo_score(prediction: str, gold: str, category: str) -> float:
    """The official score of one answer, in [0, 1].

    multi-hop: `multi_answer_f1`. temporal, single-hop: `token_f1`. open-domain: `token_f1` with the
    gold up to its first ";" (what follows is an explanation). adversarial: 1 if the prediction says
    that nothing is known (`REFUSALS`), else 0, whatever the gold is.

    Raises:
        BadInput: `category` is not one of `CATEGORIES`.
    """
    if category == "multi-hop":
        return multi_answer_f1(prediction, gold)
    if category in ("temporal", "single-hop"):
        return token_f1(prediction, gold)
    if category == "open-domain":
        return token_f1(prediction, regex.split("[;；]", gold)[0])
    if category == "adversarial":
        return float(any(phrase in prediction.lower() for phrase in REFUSALS))
    raise BadInput(f'"{category}" is no LoCoMo category; use one of {", ".join(CATEGORIES)}.')


def locomo_f1(
    prompts: Sequence[Any],
    completions: Sequence[str],
    *,
    answer: Sequence[str | list[str]],
    category: Sequence[str],
    **columns: Sequence[Any],
) -> list[float | None]:
    """Reward: `locomo_score` of every completion against its row's `answer` and `category`.

    Of several right answers in a row, the best score.

    Raises:
        BadInput: an entry is not a text, or a category is unknown.
    """
    require_texts("completions", completions)
    rows = zip(completions, answer, category, strict=True)
    return [
        best_score(lambda gold, said=said, kind=kind: locomo_score(said, gold, kind), golds)  # type: ignore[misc]
        for said, golds, kind in rows
    ]
