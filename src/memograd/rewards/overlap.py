"""The published scores of an answer by the words that it shares with the right one.

Papers print them all as "F1", so here each has the name of its source, and they never mix:

    LoCoMo   stemmed words, one rule per question category. Follows Maharana et al. 2024 (arXiv
             2402.17753; `task_eval/evaluation.py` of their repository), odd corners included: golds
             are cut at commas only for multi-hop questions, a part of a gold that is all
             punctuation or articles can never be matched, and two empty texts score 0.
    mem0     F1 over *sets* of plain words, and BLEU-1. Follow `evaluation/metrics/utils.py` of mem0
             (Chhikara et al. 2025, arXiv 2504.19413), which took them from A-Mem (Xu et al. 2025,
             arXiv 2502.12110): no stemming, repeated words count once, only `., ! ?` are dropped,
             articles stay, categories are ignored.
    SQuAD    F1 and exact match (Rajpurkar et al. 2016, arXiv:1606.05250): lower case, no
             punctuation, no English articles. The exact match is also the reward of Memory-R1 (Yan
             et al. 2025, arXiv:2508.19828), by its own name here; unlike the reward `exact_match`
             it ignores articles and punctuation inside an answer.

One known difference, in BLEU-1 only: the original cuts sentences with NLTK's *trained* Punkt model,
a download; we use the same Punkt algorithm untrained, then the same Treebank word tokenizer. They
part only where a learned abbreviation ends inside a text ("last tues. we met"). Measured on LoCoMo
conversations 26 and 30: equal tokens in 304 of 304 gold answers and 785 of 788 turns.

Extensions, for CJK text only: characters are tokens (`separate_cjk`). LoCoMo's lists may also be
cut at "，" and "、", and an open-domain gold at "；"; for adversarial questions three Chinese
phrases say "not mentioned" too. In SQuAD's scores articles stay in Chinese: "A" is a choice or a
class there; CMRC 2018 (arXiv:1810.07366) takes the longest common substring in place of the bag, so
its F1 of the same words is never above ours.

Invariants: on text without CJK writing the scores equal the originals', which hand-computed cases
and independent implementations check (`tests/rewards/test_locomo_f1.py`, `test_mem0_metrics.py`,
`test_squad.py`); `token_f1`, `set_f1` and `squad_f1` are symmetric; equal answers score 1 in both
of SQuAD's, and exact match never exceeds F1.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import regex

from memograd.errors import BadInput
from memograd.memory.language import Language, language_of
from memograd.rewards.matching import (
    accepted_answers,
    answer_part,
    best_score,
    require_texts,
    separate_cjk,
)

if TYPE_CHECKING:
    from nltk.stem import PorterStemmer


CATEGORIES = ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial")
"""Names of LoCoMo's category numbers 1 to 5, in that order."""

REFUSALS = ("no information available", "not mentioned", "没有相关信息", "没有提到", "未提及")
"""What an answer to an adversarial question has to contain; the first two are the official ones."""

# `regex`, not `re`: the official code uses it, and the two disagree on \b beside combining marks.
_ARTICLES_AND = regex.compile(r"\b(a|an|the|and)\b")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DROPPED = str.maketrans(dict.fromkeys(".,!?", " "))


@cache
def _stemmer() -> PorterStemmer:
    from nltk.stem import PorterStemmer

    return PorterStemmer()


def normalize_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles ("and" counts as one), single blanks."""
    bare = separate_cjk(text).lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES_AND.sub(" ", bare).split())


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
    require_texts(completions)
    rows = zip(completions, answer, category, strict=True)
    return [
        best_score(lambda gold, said=said, kind=kind: locomo_score(said, gold, kind), golds)  # type: ignore[misc]
        for said, golds, kind in rows
    ]


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
    require_texts(completions)
    return _best(set_f1, completions, answer)


def mem0_bleu1(
    prompts: Sequence[Any],
    completions: Sequence[str],
    *,
    answer: Sequence[str | list[str]],
    **columns: Sequence[Any],
) -> list[float | None]:
    """Reward: `bleu1` of every completion and its row's `answer` or answers."""
    require_texts(completions)
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
