"""Does the memory find in a real conversation what its questions need? The floor for all else."""

from __future__ import annotations

from pathlib import Path

from memograd.data import load_locomo, select_conversations
from memograd.memory import TurnMemory, load_embedder


def test_evidence_recall_at_ten_on_half_of_conversation_30(
    locomo_file: Path, tmp_path: Path
) -> None:
    [conversation] = select_conversations(load_locomo(locomo_file), ["conv-30"])
    # The first half of the sessions: enough to tell, at half the embedding.
    half = [turn for turn in conversation.turns if turn.session <= 9]
    told = {turn.id for turn in half}
    asked = [one for one in conversation.questions if told.issuperset(one.evidence)]
    with TurnMemory.open(tmp_path / "m.db", load_embedder("minilm")) as memory:
        memory.add_turns(conversation.id, half)
        results = memory.search_many(
            [question.text for question in asked],
            scope=conversation.id,
            top_k=10,
            token_budget=10**6,
            count_tokens=len,
        )
    recalls = []
    for question, found in zip(asked, results, strict=True):
        assert len(found) == 10
        ids = {one.turn.id for one in found}
        recalls.append(len(ids & set(question.evidence)) / len(question.evidence))
    recall = sum(recalls) / len(recalls)
    print(f"evidence recall@10 over {len(recalls)} questions: {recall:.3f}")
    assert len(recalls) == 40 and recall > 0.4
