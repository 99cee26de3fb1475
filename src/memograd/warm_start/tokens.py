"""From rows to token ids, as the policy itself would meet them: prompt, answer, end token.

The prompt is what `LanguageModel.encode` makes of the chat, the answer is tokenised on its own and
ends with the end token: exactly the ids that sampling would have to draw. In a chat of several
turns, a later prompt that continues the earlier ids exactly goes on in the same sequence;
otherwise (a template that drops what was thought, say) it begins a new one.

Invariant: the trained tokens are the answers and their end tokens, nothing else, in every sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from memograd.errors import BadInput
from memograd.policy.language_model import LanguageModel
from memograd.rollout.chat_ids import ChatIds
from memograd.warm_start.rows import SAME_WHEN_CUT, PreferenceRow, R, Rows, SftRow

NO_ROOM = "the prompt alone fills max_length"
IGNORED = -100
"""The label of a token that is no target, as transformers and TRL write it."""


@dataclass(frozen=True)
class SftSequence:
    """`input_ids` [T], and `labels` [T]: the same ids where a token is learnt, else `IGNORED`."""

    input_ids: list[int]
    labels: list[int]


@dataclass(frozen=True)
class PreferenceIds:
    """Token ids of a prompt and of two answers to it, end tokens included."""

    prompt_ids: list[int]
    chosen_ids: list[int]
    rejected_ids: list[int]


def sft_sequences(
    policy: LanguageModel, rows: Rows[SftRow], max_length: int
) -> tuple[list[SftSequence], list[str]]:
    """The sequences of all rows, and the places of rows that were cut at `max_length` tokens.

    Rows without a trained token before the cut join `rows.left_out`. Raises BadInput if none is
    left.
    """
    kept: list[SftSequence] = []
    cut: list[str] = []
    for row in rows.used.copy():
        sequences = _sequences(policy, row)
        short = [_first_tokens(sequence, max_length) for sequence in sequences]
        learnable = [s for s in short if any(label != IGNORED for label in s.labels)]
        if not learnable:
            _give_up(rows, row, NO_ROOM)
            continue
        kept += learnable
        if any(len(sequence.input_ids) > max_length for sequence in sequences):
            cut.append(row.place)
    _require(rows, max_length)
    return kept, cut


def preference_ids(
    policy: LanguageModel, rows: Rows[PreferenceRow], max_length: int
) -> tuple[list[PreferenceIds], list[str]]:
    """The ids of all pairs, and the places of pairs of which an answer was cut at `max_length`.

    Pairs whose prompt leaves no room, or whose answers are the same up to the cut, join
    `rows.left_out`. Raises BadInput if none is left.
    """
    kept: list[PreferenceIds] = []
    cut: list[str] = []
    for row in rows.used.copy():
        prompt = policy.encode(row.prompt)
        answers = [_answer_ids(policy, text) for text in (row.chosen, row.rejected)]
        room = max_length - len(prompt)
        chosen, rejected = (answer[: max(room, 0)] for answer in answers)
        if room < 1 or chosen == rejected:
            _give_up(rows, row, NO_ROOM if room < 1 else SAME_WHEN_CUT)
            continue
        kept.append(PreferenceIds(prompt, chosen, rejected))
        if max(map(len, answers)) > room:
            cut.append(row.place)
    _require(rows, max_length)
    return kept, cut


def _sequences(policy: LanguageModel, row: SftRow) -> list[SftSequence]:
    if row.text is not None:
        prompt, answer = policy.encode(row.text), _answer_ids(policy, row.messages[0]["content"])
        return [SftSequence(prompt + answer, [IGNORED] * len(prompt) + answer)]
    sequences: list[SftSequence] = []
    for index in row.learnt:
        prompt = _shown(policy, row, index)
        answer = _answer_ids(policy, row.messages[index]["content"])
        before = sequences[-1] if sequences else SftSequence([], [])
        length = len(before.input_ids)
        if prompt[:length] == before.input_ids:
            sequences = sequences[:-1]
        else:
            before, length = SftSequence([], []), 0
        given = [IGNORED] * (len(prompt) - length)
        sequences.append(SftSequence(prompt + answer, before.labels + given + answer))
    return sequences


def _shown(policy: LanguageModel, row: SftRow, index: int) -> list[int]:
    """The ids before message `index`; with tools, exactly those that an episode begins with."""
    if not row.tools:
        return policy.encode(row.messages[:index])
    chat = ChatIds(policy.tokenizer, end_ids=policy.end_ids)
    return list(chat.first(row.messages[:index], row.tools).ids)


def _answer_ids(policy: LanguageModel, text: str) -> list[int]:
    end = cast(int, policy.tokenizer.eos_token_id)
    return [*policy.tokenizer.encode(text, add_special_tokens=False), end]


def _first_tokens(sequence: SftSequence, count: int) -> SftSequence:
    return SftSequence(sequence.input_ids[:count], sequence.labels[:count])


def _give_up(rows: Rows[R], row: R, reason: str) -> None:
    rows.used.remove(row)
    rows.leave_out(row.place, reason)


def _require(rows: Rows[R], max_length: int) -> None:
    if not rows.used:
        raise BadInput(
            f"No row of {rows.source} fits into {max_length} tokens; raise max_length, or take a "
            "model with a longer context."
        )
