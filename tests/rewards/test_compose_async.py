"""Async rewards run together, and their values come back in rollout order."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.rewards import RewardError, RewardTable, WeightedReward, compute_rewards


def compute(*functions: Any, completions: list[str], prompt: Any = "q", **columns: Any) -> Any:
    return compute_rewards(
        [
            WeightedReward(f"f{index}", function, reads_messages=not isinstance(prompt, str))
            for index, function in enumerate(functions)
        ],
        rollout_ids=[f"r{row}" for row in range(len(completions))],
        prompts=[prompt] * len(completions),
        completions=completions,
        columns=columns,
    )


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.randoms())
def test_values_are_in_rollout_order_whatever_ends_first(
    numbers: list[int], order: random.Random
) -> None:
    """Every judgement waits for its turn in a random order of completion."""
    places = list(range(2 * len(numbers)))
    order.shuffle(places)
    ended: list[int] = []

    def judge(offset: int, factor: int) -> Any:
        async def reward(completions: list[str], **columns: Any) -> list[float]:
            async def one(row: int) -> float:
                while len(ended) < places[offset + row]:
                    await asyncio.sleep(0)
                ended.append(offset + row)
                return float(factor * int(completions[row]))

            return await asyncio.gather(*(one(row) for row in range(len(completions))))

        return reward

    table = compute(
        judge(0, 1), judge(len(numbers), -2), completions=[str(number) for number in numbers]
    )
    assert sorted(ended) == list(range(2 * len(numbers)))
    assert table.by_name["f0"] == numbers
    assert table.by_name["f1"] == [-2 * number for number in numbers]
    assert table.total == [-number for number in numbers]


def test_async_rewards_run_while_plain_ones_compute() -> None:
    """Each waits for the other, so one after the other could never end."""
    plain_is_here, async_is_here = threading.Event(), threading.Event()

    async def judge(completions: list[str]) -> list[float]:
        async_is_here.set()
        await asyncio.to_thread(plain_is_here.wait, 60)
        return [1.0]

    def plain(completions: list[str]) -> list[float]:
        plain_is_here.set()
        return [2.0 if async_is_here.wait(60) else 0.0]

    assert compute(judge, plain, completions=["a"]) == RewardTable(
        [3.0], {"f0": [1.0], "f1": [2.0]}
    )


def test_the_loop_is_the_same_for_every_batch_and_works_inside_another() -> None:
    """As an HTTP session needs it, and a notebook."""
    loops = []

    async def judge(completions: list[str]) -> list[float]:
        loops.append(asyncio.get_running_loop())
        return [1.0]

    async def notebook() -> Any:
        return compute(judge, completions=["a"])

    compute(judge, completions=["a"])
    asyncio.run(notebook())
    assert len(loops) == 2
    assert loops[0] is loops[1]


def test_a_failure_names_function_file_and_line() -> None:
    async def judge(completions: list[str], **columns: Any) -> list[float]:
        await asyncio.sleep(0)
        raise ConnectionError("the judge is away")

    with pytest.raises(RewardError) as caught:
        compute(judge, completions=["a", "b"])
    line = judge.__code__.co_firstlineno + 2
    assert str(caught.value) == (
        f"Reward f0 raised ConnectionError: the judge is away in {__file__} line {line} "
        "(batch of rollouts r0, r1)."
    )


def test_sys_exit_ends_no_run_as_if_it_were_done() -> None:
    def plain(completions: list[str]) -> list[float]:
        sys.exit(0)

    async def judge(completions: list[str]) -> list[float]:
        sys.exit(0)

    with pytest.raises(RewardError, match=r"f0 raised SystemExit: 0 in .* line"):
        compute(plain, completions=["a"])
    with pytest.raises(RewardError, match=r"f0 raised RuntimeError: it called sys\.exit"):
        compute(judge, completions=["a"])


def test_a_failing_plain_reward_stops_the_async_ones() -> None:
    cancelled = threading.Event()

    async def judge(completions: list[str]) -> list[float]:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return [1.0]

    started = threading.Event()

    async def signal(completions: list[str]) -> list[float]:
        started.set()
        return [1.0]

    def broken(completions: list[str]) -> list[float]:
        started.wait(60)
        raise ValueError("no")

    with pytest.raises(RewardError, match="f2 raised ValueError: no"):
        compute(judge, signal, broken, completions=["a"])
    assert cancelled.wait(60)


# What a function is given


def test_a_chat_completion_is_a_list_of_one_message_as_in_trl() -> None:
    seen: list[Any] = []

    def look(prompts: Any, completions: Any, answer: Any) -> list[float]:
        seen.append((prompts, completions, answer))
        return [1.0]

    chat = [{"role": "user", "content": "hi"}]
    compute(look, completions=["a"], prompt=chat, answer=["x"], other=["y"])
    assert seen == [([chat], [[{"role": "assistant", "content": "a"}]], ["x"])]
    compute(look, completions=["a"], answer=["x"])
    assert seen[1] == (["q"], ["a"], ["x"])


def test_text_code_on_a_chat_says_how_to_read_it() -> None:
    def upper(completions: list[str]) -> list[float]:
        return [float(completion.isupper()) for completion in completions]

    chat = [{"role": "user", "content": "hi"}]
    with pytest.raises(RewardError, match=r'its text is completion\[0\]\["content"\]\.'):
        compute(upper, completions=["a"], prompt=chat)
