"""Every action comes back to its own rollout, whoever finishes first, in exactly the drawn ids."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput, MemogradError
from memograd.policy.language_model import LanguageModel
from memograd.rollout import Message
from memograd.rollout.episode import Limits, Step
from memograd.rollout.lockstep import run_in_lockstep
from memograd.rollout.token_tree import grow_trees, rows_of


class StrictEpisode:
    """Goes on for `turns` turns; refuses to be used twice, out of order, or for another's action.

    Every observation names the episode, and the sampler below answers with the name it reads last.
    """

    tools = ()

    def __init__(self, name: str, turns: int = 2, *, opening: str = "begin", echo: bool = True):
        self.name, self.turns, self.opening, self.echo = name, turns, opening, echo
        self.calls: list[str] = []
        self.script: Callable[[int], Step] | None = None

    def reset(self) -> list[Message]:
        assert self.calls == []
        self.calls.append("reset")
        return [Message(role="user", content=self.opening)]

    def step(self, action: str) -> Step:
        number = len(self.calls)
        assert "finish" not in self.calls and number <= self.turns
        if self.echo:
            assert action == (f"I am {self.name}" if number > 1 else "I am begin")
        self.calls.append("step")
        if self.script is not None:
            return self.script(number)
        observation = Message(role="user", content=self.name)
        done = number == self.turns
        return Step(() if done else (observation,), reward=float(number), done=done)

    def finish(self) -> float | None:
        assert self.calls[0] == "reset" and "finish" not in self.calls
        self.calls.append("finish")
        return None


def last_user(shown: str, sample: int) -> str:
    return "I am " + shown.rpartition("<|start|>user\n")[2].partition("<|end|>")[0]


def run(sampler, chat, episodes, *, limits=None, generator=None, **changes):
    settings = {"temperature": 1.0, "max_completion_length": 40, **changes}
    return run_in_lockstep(
        sampler,
        chat,
        episodes,
        rollout_ids=[
            [f"rollout {b}/{g}" for g in range(len(group))] for b, group in enumerate(episodes)
        ],
        limits=limits or Limits(),
        generator=generator,
        **settings,
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=4))
def test_actions_return_to_their_rollouts_whoever_finishes_first(
    tiny_tokenizer, chat_of, scripted, turns: list[list[int]]
) -> None:
    episodes = [
        [StrictEpisode(f"number {b}-{g}", count) for g, count in enumerate(group)]
        for b, group in enumerate(turns)
    ]
    sampler = scripted(tiny_tokenizer, last_user)
    groups = run(sampler, chat_of(tiny_tokenizer), episodes)
    seen = [prompt for prompts, _ in sampler.calls for prompt in prompts]
    assert [[len(rollout.turns) for rollout in group] for group in groups] == turns
    drawn = []
    for group, of_group in zip(groups, episodes, strict=True):
        for rollout, episode in zip(group, of_group, strict=True):
            assert episode.calls[-1] == "finish"
            assert rollout.stop_reason == "end"
            assert rollout.reward == sum(range(1, episode.turns + 1))
            assert [message["content"] for message in rollout.opening] == ["begin"]
            roles = ["assistant", "user"] * episode.turns
            assert [message["role"] for message in rollout.attempt] == roles[:-1]
            (row,) = rows_of(rollout)
            # What the model was shown before each action is the row up to that action.
            length = 0
            for turn in rollout.turns:
                length += len(turn.observation_ids)
                assert (*row.prompt, *row.ids)[:length] in seen
                length += len(turn.action_ids)
                drawn += turn.logprobs.tolist()
    # Every drawn token is some rollout's, once.
    assert len(set(drawn)) == len(drawn)


def test_a_group_shares_its_first_turn_and_every_turn_is_one_call(
    tiny_tokenizer, chat_of, scripted
) -> None:
    episodes = [[StrictEpisode("a", 1), StrictEpisode("b", 3)] for _ in range(3)]
    sampler = scripted(tiny_tokenizer, last_user)
    run(sampler, chat_of(tiny_tokenizer), episodes)
    assert [(len(prompts), count) for prompts, count in sampler.calls] == [(3, 2), (3, 1), (3, 1)]


def test_groups_of_several_sizes_share_their_first_turns_too(
    tiny_tokenizer, chat_of, scripted
) -> None:
    episodes = [[StrictEpisode(f"{b}{g}", 2) for g in range(b + 1)] for b in range(3)]
    sampler = scripted(tiny_tokenizer, last_user)
    groups = run(sampler, chat_of(tiny_tokenizer), episodes)
    assert [(len(prompts), count) for prompts, count in sampler.calls] == [(3, [1, 2, 3]), (6, 1)]
    assert [len(group) for group in groups] == [1, 2, 3]


def test_groups_that_open_differently_are_sampled_one_by_one_in_one_call(
    tiny_tokenizer, chat_of, scripted
) -> None:
    episodes = [
        [StrictEpisode("a", 1, opening=text, echo=False) for text in openings]
        for openings in (("x", "y"), ("z", "z"))
    ]
    sampler = scripted(tiny_tokenizer, lambda shown, sample: "yes")
    groups = run(sampler, chat_of(tiny_tokenizer), episodes)
    assert [(len(prompts), count) for prompts, count in sampler.calls] == [(4, 1)]
    for group, openings in zip(groups, (("x", "y"), ("z", "z")), strict=True):
        for rollout, opening in zip(group, openings, strict=True):
            assert rollout.messages[0]["content"] == opening


def test_the_learner_sees_what_the_sampler_drew(tiny_policy, chat_of, monkeypatch) -> None:
    """Two groups of three over up to four turns with a real model: the log-probabilities of the
    whole conversations, computed anew, are those of the draws."""
    chat = chat_of(tiny_policy.tokenizer)

    def play(seed: int):
        episodes = [
            [StrictEpisode(f"{b}{g}", 1 + (b + g) % 4, echo=False) for g in range(3)]
            for b in range(2)
        ]
        generator = torch.Generator().manual_seed(seed)
        return run(tiny_policy, chat, episodes, generator=generator, max_completion_length=6)

    # One token of 258 rarely ends a random model's action; sixty of them do.
    monkeypatch.setattr(LanguageModel, "end_ids", property(lambda self: frozenset(range(60))))
    groups, again, other = play(1), play(1), play(2)
    rollouts = [rollout for group in groups for rollout in group]
    assert max(len(rollout.turns) for rollout in rollouts) > 1
    branches = grow_trees(groups)
    scores = tiny_policy.logprobs(branches.trees, temperature=1.0)
    old = [row for rows in branches.old_logprobs for row in rows]
    for row, values in enumerate(old):
        ours = scores.logprobs_RT[row, : len(values)].detach()
        torch.testing.assert_close(ours, torch.from_numpy(values), atol=1e-4, rtol=1e-4)
    ids = [[turn.action_ids for turn in rollout.turns] for rollout in rollouts]
    assert ids == [[t.action_ids for t in r.turns] for group in again for r in group]
    assert ids != [[t.action_ids for t in r.turns] for group in other for r in group]


def test_greedy_rollouts_do_not_depend_on_what_shares_the_batch(tiny_policy, chat_of) -> None:
    chat = chat_of(tiny_policy.tokenizer)

    def play(names: str) -> dict[str, list[tuple[int, ...]]]:
        episodes = [[StrictEpisode(name, 3, opening=name, echo=False)] for name in names]
        for (episode,) in episodes:
            episode.step = lambda action: Step((Message(role="user", content=action + "?"),))
        groups = run(
            tiny_policy,
            chat,
            episodes,
            limits=Limits(max_turns=3),
            temperature=0,
            max_completion_length=5,
        )
        return {
            name: [turn.action_ids for turn in rollout.turns]
            for name, (rollout,) in zip(names, groups, strict=True)
        }

    together = play("abc")
    assert together == play("cba") == play("a") | play("b") | play("c")


# Limits


@pytest.mark.parametrize(
    ("limits", "reason", "turns"),
    [
        (Limits(max_turns=3), "max_turns", 3),
        (Limits(max_tokens=92), "max_tokens", 2),
        (Limits(max_tokens=93), "max_tokens", 3),
        (Limits(max_seconds=2.5), "time", 3),
        (Limits(max_failed_turns=2), "error", 3),
    ],
)
def test_every_limit_has_its_reason(
    tiny_tokenizer, chat_of, scripted, limits: Limits, reason: str, turns: int
) -> None:
    episode = StrictEpisode("a", 9, echo=False)
    # The first turn's call works, all later ones fail.
    episode.script = lambda number: Step(
        (Message(role="user", content="more"),), failed_calls=("malformed",) if number > 1 else ()
    )
    clock = itertools.count()
    ((rollout,),) = run(
        scripted(tiny_tokenizer, lambda shown, sample: "ok"),
        chat_of(tiny_tokenizer),
        [[episode]],
        limits=limits,
        max_completion_length=20,
        clock=lambda: float(next(clock)),
    )
    assert (rollout.stop_reason, len(rollout.turns)) == (reason, turns)
    assert rollout.messages[-1]["role"] == "assistant"
    assert rollout.failed_calls == {"malformed": turns - 1}
    assert rollout.reward is None
    (row,) = rows_of(rollout)
    assert len(row.prompt) + len(row.ids) <= (limits.max_tokens or 1000)


def test_a_cut_action_is_stepped_and_ends_the_rollout(tiny_tokenizer, chat_of, scripted) -> None:
    episode = StrictEpisode("a", 2, echo=False)
    sampler = scripted(tiny_tokenizer, lambda shown, sample: "far too long")
    ((rollout,),) = run(sampler, chat_of(tiny_tokenizer), [[episode]], max_completion_length=5)
    assert (rollout.stop_reason, rollout.completion, rollout.reward) == ("length", "far t", 1.0)
    assert episode.calls == ["reset", "step", "finish"]


def test_an_opening_without_room_for_an_action_is_bad_input(
    tiny_tokenizer, chat_of, scripted
) -> None:
    sampler = scripted(tiny_tokenizer, last_user)
    episode = StrictEpisode("a", opening="x" * 90)
    with pytest.raises(BadInput, match=r"rollout 0/0: the opening prompt has \d+ tokens"):
        run(sampler, chat_of(tiny_tokenizer), [[episode]], limits=Limits(max_tokens=100))


# Episodes that break


def broken(what: str, error: type[BaseException]) -> StrictEpisode:
    def fail(*arguments):
        raise error("the tables are gone")

    episode = StrictEpisode("a", 1, echo=False)
    setattr(episode, what, fail)
    return episode


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
@pytest.mark.parametrize("what", ["reset", "step", "finish"])
def test_what_an_episode_raises_names_the_rollout(
    tiny_tokenizer, chat_of, scripted, what: str, error: type[BaseException]
) -> None:
    episodes = [[StrictEpisode("a", 1, echo=False), broken(what, error)]]
    message = f"rollout 0/1: `{what}` of StrictEpisode raised {error.__name__}: the tables"
    with pytest.raises(MemogradError, match=message):
        run(scripted(tiny_tokenizer, last_user), chat_of(tiny_tokenizer), episodes)


def test_an_error_that_says_it_all_gets_the_rollouts_id(tiny_tokenizer, chat_of, scripted) -> None:
    episodes = [[StrictEpisode("a", 1, echo=False), broken("reset", MemogradError)]]
    with pytest.raises(MemogradError, match=r"^rollout 0/1: the tables are gone$"):
        run(scripted(tiny_tokenizer, last_user), chat_of(tiny_tokenizer), episodes)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step((), done=False), "goes on, but gave no observation"),
        (Step((), reward=float("nan"), done=True), "reward is nan, no finite number"),
        (Step((), reward="much", done=True), "reward is 'much', no finite number"),
        (Step((), reward=10**400, done=True), "reward is 10+, no finite number"),
    ],
)
def test_a_step_that_makes_no_sense_names_the_rollout(
    tiny_tokenizer, chat_of, scripted, step: Step, message: str
) -> None:
    episode = StrictEpisode("a", 1, echo=False)
    episode.script = lambda number: step
    with pytest.raises(MemogradError, match=f"rollout 0/0: .*{message}"):
        run(scripted(tiny_tokenizer, last_user), chat_of(tiny_tokenizer), [[episode]])


def test_an_action_of_another_prompt_is_refused(tiny_tokenizer, chat_of, scripted) -> None:
    """A sampler that mixes up its answers is found out."""
    sampler = scripted(tiny_tokenizer, lambda shown, sample: "yes")
    sample = sampler.sample
    sampler.sample = lambda prompts, **settings: sample(prompts, **settings)[::-1]
    episodes = [[StrictEpisode("a", opening=text, echo=False)] for text in "ab"]
    with pytest.raises(RuntimeError, match=r"rollout 0/0 was given an action .* another prompt"):
        run(sampler, chat_of(tiny_tokenizer), episodes)
