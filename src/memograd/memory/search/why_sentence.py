"""Why a hit was found, as one sentence in the language of the question.

Invariant: both languages tell the same of the same hit. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memograd.memory.search.hits import Why

_GROUPS_ZH: Final = {
    "its meaning": "语义",
    "its words": "词语",
    "the words of its neighbours": "前后文的词语",
    "the memories read from it": "由它得出的记忆",
    "several lists that agree": "多个名单一致",
    "how many of the question's words it holds": "包含问题中多少词",
    "the turns before and after it": "前后的发言",
    "the sitting it belongs to": "所在的那次谈话",
    "who said it": "说话的人",
    "what kind of answer is asked for": "问的是哪种答案",
    "how it is written": "写法",
    "the date in the question": "问题中的日期",
    "how long ago it was": "距今多久",
}


def why_sentence(why: Why, *, chinese: bool) -> str:
    """One sentence."""
    return _chinese(why) if chinese else _english(why)


def _english(why: Why) -> str:
    if why.beside is not None:
        return f"Shown because it stands beside {why.beside}."
    reasons = []
    if why.dense_rank is not None:
        reasons.append(f"rank {why.dense_rank} by meaning")
    if why.lexical_rank is not None:
        words = ", ".join(why.matched)
        reasons.append(
            f"rank {why.lexical_rank} by words (BM25 {why.lexical_score:.2f} for {words})"
        )
    if why.window_rank is not None:
        reasons.append(f"rank {why.window_rank} by the words around it")
    if why.source_rank is not None:
        reasons.append(f"the source of the memory at rank {why.source_rank}")
    sentence = f"Found as {' and as '.join(reasons)}, with similarity {why.similarity:.2f}"
    if why.probability is not None:
        sentence += f", and holds the answer with probability {why.probability:.2f}"
    if why.reasons:
        told = ", ".join(f"{reason} ({value:+.1f})" for reason, value in why.reasons)
        sentence += f"; what weighed most: {told}"
    if why.not_trained:
        sentence += f" (by rank fusion: {why.not_trained.rstrip('.')})"
    if why.recency != 1.0:
        sentence += f", its score times {why.recency:.2f} for its age"
    if why.rerank_score is not None:
        sentence += f", then scored {why.rerank_score:.2f} by the reranker"
    return sentence + "."


def _chinese(why: Why) -> str:
    if why.beside is not None:
        return f"与 {why.beside} 相邻，因此一并列出。"
    reasons = []
    if why.dense_rank is not None:
        reasons.append(f"语义第 {why.dense_rank} 位")
    if why.lexical_rank is not None:
        words = "、".join(why.matched)
        reasons.append(f"词语第 {why.lexical_rank} 位（BM25 {why.lexical_score:.2f}：{words}）")
    if why.window_rank is not None:
        reasons.append(f"前后文词语第 {why.window_rank} 位")
    if why.source_rank is not None:
        reasons.append(f"第 {why.source_rank} 条记忆的来源")
    sentence = f"{'、'.join(reasons)}，相似度 {why.similarity:.2f}"
    if why.probability is not None:
        sentence += f"，包含答案的概率 {why.probability:.2f}"
    if why.reasons:
        told = "、".join(
            f"{_GROUPS_ZH.get(reason, reason)}（{value:+.1f}）" for reason, value in why.reasons
        )
        sentence += f"；影响最大的是{told}"
    if why.not_trained:
        sentence += f"（按名次融合排序：{why.not_trained.rstrip('.')}）"
    if why.recency != 1.0:
        sentence += f"，因时间久远得分乘以 {why.recency:.2f}"
    if why.rerank_score is not None:
        sentence += f"，重排得分 {why.rerank_score:.2f}"
    return sentence + "。"
