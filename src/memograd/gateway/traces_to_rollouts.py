"""From captured calls to what the trainer learns from: a `Rollout` whose turns are token rows.

Each chosen call is a turn. Where a call's prompt begins with all the tokens of an earlier one, it
goes on with that row; otherwise it starts a row of its own. Several agents that talk in turn so
become several rows of one rollout, and a conversation that forks shares its beginning in the token
tree (`memograd.rollout.token_tree`).

    writer    [P0] A0            [P0 A0 o1] A2     one row:   P0 | A0 o1 A2
    critic            [Q0] B1                      left out with optimize_agents={"writer"}

Rows come in the order in which they ended, so the last turn is the rollout's last answer: what
looks at that (whether it was cut, how long it is) looks at the right one.

Invariants: every drawn token of the chosen calls is scored once, and no other token; a rollout
without a reward, and a call without token ids or with log-probabilities of another distribution
than the one that is trained, is an error with the rollout's id, never a 0 or a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from memograd.gateway.conversation import answer_message, message_keys, to_template
from memograd.gateway.records import CallRecord, RolloutRecord
from memograd.gateway.store import TraceStore
from memograd.rollout.episode import EpisodeError
from memograd.rollout.types import Rollout, Turn, one_span

UNCHANGED: Final[Mapping[str, tuple[Any, ...]]] = {
    "top_k": (-1, 0),
    "min_p": (0,),
    "min_tokens": (0,),
    "repetition_penalty": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "bad_words": ([],),
    "allowed_token_ids": (),
    "response_format": ({"type": "text"},),
    "structured_outputs": (),
    "tool_choice": ("auto", "none"),
}
"""What a server draws with beside temperature and nucleus, and the values, beside null, that leave
the model's distribution as it is."""


class CannotTrain(EpisodeError):
    """A trace that nothing can be learnt from; the message names the rollout and says why."""


def rollouts_from_traces(
    store: TraceStore,
    ids: Iterable[str],
    *,
    temperature: float,
    optimize_agents: Collection[str] | None = None,
) -> list[Rollout]:
    """The rollouts named `ids`, as `rollout_of_trace` reads each."""
    return [
        rollout_of_trace(
            store.rollout(rollout_id),
            store.calls(rollout_id),
            temperature=temperature,
            optimize_agents=optimize_agents,
        )
        for rollout_id in ids
    ]


def rollout_of_trace(
    record: RolloutRecord,
    calls: Sequence[CallRecord],
    *,
    temperature: float,
    optimize_agents: Collection[str] | None = None,
    self_rewarding: bool = True,
    name: str | None = None,
    version: int | None = None,
) -> Rollout:
    """One rollout to train on.

    temperature: of the distribution that the loss is computed for. optimize_agents: whose calls are
    trained; all if None. self_rewarding: the rollout's own reward is wanted; if not, one that is
    `finished` will do, and it has none. name: how the rollout is called in what is told of it,
    instead of its id. version: of the weights that drew all of it; None: not said.

    Raises:
        CannotTrain: there is no reward, no call of these agents, no token ids, or the calls were
            drawn from another distribution.
    """
    name = name or record.id
    rewarded = record.state == "rewarded" and record.reward is not None
    if not rewarded and (self_rewarding or record.state != "finished"):
        why = f": {record.error}" if record.error else ""
        raise CannotTrain(
            f"The rollout {name} is {record.state}{why}. It has no reward, so nothing can be "
            "learnt from it; reward it, or leave it out."
        )
    chosen = [call for call in calls if optimize_agents is None or call.agent in optimize_agents]
    if not chosen:
        known = ", ".join(sorted({call.agent for call in calls})) or "no agent"
        raise CannotTrain(
            f"The rollout {name} has no call to train on: {known} called, "
            f"{_listed(optimize_agents)} is trained."
        )
    for call in chosen:
        _check(call, name, temperature)
    last, answered = chosen[-1], chosen[-1].choices[0]
    said = [*last.messages, answer_message(answered)]
    messages = tuple(to_template(said))
    return Rollout(
        id=name,
        turns=tuple(turn for row in _rows(chosen, version) for turn in row),
        completion=answered.text,
        reward=record.reward if self_rewarding else None,
        stopped_by="error" if record.error else _stop_reason(answered.finish_reason),
        messages=messages,
        opening_length=_opening_length(chosen),
        mismatches=_counted(chosen),
    )


def _opening_length(calls: Sequence[CallRecord]) -> int:
    """How many of the last call's messages were there before anything was drawn.

    Those of the first call that it goes on from: answers among them (an earlier chat, examples)
    are nobody's doing. Where it goes on from none, because the agent rewrites what it sends, all
    before the first answer.
    """
    last = calls[-1]
    beginnings = set(message_keys(last.messages))
    for call in calls[:-1]:
        *_, whole = message_keys(call.messages)
        if whole in beginnings:
            return len(call.messages)
    if len(calls) == 1:
        return len(last.messages)
    roles = [message["role"] for message in last.messages]
    return roles.index("assistant") if "assistant" in roles else len(roles)


def _rows(calls: Sequence[CallRecord], version: int | None) -> list[list[Turn]]:
    """The turns of all calls, row by row; the row of the last call's first choice is the last."""
    rows: list[list[Turn]] = []
    held: list[tuple[int, ...]] = []  # all ids of each row
    ended: list[tuple[int, int]] = []  # by which call, and by which of its choices from behind
    for place, call in enumerate(calls):
        prompt = call.prompt_ids or ()
        goes_on = _longest_beginning(held, prompt)
        for number, choice in enumerate(call.choices):
            ids = choice.token_ids or ()
            seen = prompt if goes_on is None else prompt[len(held[goes_on]) :]
            turn = Turn(
                observation_ids=seen,
                action_ids=ids,
                logprobs=np.asarray(choice.logprobs or (), dtype=np.float32),
                stop_reason=_stop_reason(choice.finish_reason),
                starts_row=goes_on is None,
                allowed=choice.allowed or (),
                versions=() if version is None else one_span(version, len(ids)),
            )
            if goes_on is None:
                rows.append([turn])
                held.append((*prompt, *ids))
                ended.append((place, -number))
            else:
                rows[goes_on].append(turn)
                held[goes_on] = (*prompt, *ids)
                ended[goes_on] = (place, -number)
                goes_on = None  # further choices of the call are rows of their own
    return [rows[row] for row in sorted(range(len(rows)), key=ended.__getitem__)]


def _longest_beginning(held: Sequence[tuple[int, ...]], prompt: tuple[int, ...]) -> int | None:
    """The row that `prompt` goes on with."""
    fitting = [row for row, ids in enumerate(held) if prompt[: len(ids)] == ids]
    return max(fitting, key=lambda row: len(held[row]), default=None)


def _check(call: CallRecord, name: str, temperature: float) -> None:
    where = f"Call {call.number} of the rollout {name} (agent {call.agent})"
    complete = all(
        choice.token_ids and choice.logprobs and len(choice.logprobs) == len(choice.token_ids)
        for choice in call.choices
    )
    if not call.prompt_ids or not complete or call.logprobs_temperature is None:
        raise CannotTrain(
            f"{where} was answered without token ids or log-probabilities, so it cannot be trained "
            "on; serve the policy with memograd gateway --model, or start the gateway in front of "
            "vLLM with --token-ids."
        )
    drawn_at = float(call.sampling.get("temperature", 1.0))
    top_p = float(call.sampling.get("top_p", 1.0))
    scored_at = temperature or 1.0  # a greedy choice is scored by the model as it is
    if drawn_at != temperature or call.logprobs_temperature != scored_at or top_p != 1.0:
        raise CannotTrain(
            f"{where} was drawn at temperature {drawn_at:g} and top_p {top_p:g}, with "
            f"log-probabilities at temperature {call.logprobs_temperature:g}; training at "
            f"temperature {temperature:g} needs all three at it, and top_p 1."
        )

    for field, harmless in UNCHANGED.items():
        value = call.sampling.get(field)
        if value is not None and value not in harmless:
            raise CannotTrain(
                f"{where} was drawn with {field}={value!r}, so not from the model's own "
                "distribution, which the loss is computed for; leave that out."
            )


def _stop_reason(finish_reason: str) -> str:
    return "length" if finish_reason == "length" else "end"


def _counted(calls: Sequence[CallRecord]) -> dict[str, int]:
    kinds = [call.mismatch for call in calls if call.mismatch is not None]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _listed(agents: Collection[str] | None) -> str:
    return "any agent" if agents is None else ", ".join(sorted(agents))
