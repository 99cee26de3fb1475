"""Works that wait, wait at the same time; between their waits they run in order."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from memograd.rollout.async_calls import run_together, start


def meeting(count: int):
    """An async function that nobody leaves before `count` callers are in it: it never ends if they
    come one after another."""
    here = 0
    everybody = asyncio.Event()

    async def meet(name: str) -> str:
        nonlocal here
        here += 1
        if here == count:
            everybody.set()
        await asyncio.wait_for(everybody.wait(), 30)
        return name

    return meet


def test_works_wait_together_and_go_on_in_order_in_the_callers_thread() -> None:
    first, second = meeting(3), meeting(3)
    said: list[tuple[str, int]] = []

    def work(name: str):
        for meet in (first, second):
            future = start(meet(name))
            yield future
            assert threading.current_thread() is threading.main_thread()
            said.append((future.result(), len(said)))
        return name.upper()

    assert run_together([work(name) for name in "abc"]) == ["A", "B", "C"]
    assert [name for name, _ in said] == list("abcabc")


def test_works_that_do_not_wait_and_works_that_do() -> None:
    def at_once():
        return 1
        yield

    def later():
        future = start(asyncio.sleep(0, result=2))
        yield future
        return future.result()

    assert run_together([later(), at_once(), later()]) == [2, 1, 2]
    assert run_together([]) == []


def test_what_others_wait_for_is_cancelled_when_one_raises() -> None:
    waited = []

    def patient():
        waited.append(start(asyncio.sleep(600)))
        yield waited[0]

    def broken():
        raise ValueError("broken")
        yield

    with pytest.raises(ValueError, match="broken"):
        run_together([patient(), broken()])
    assert waited[0].cancelled()


def test_sys_exit_in_async_code_is_a_failure_and_the_loop_goes_on() -> None:
    async def leaves():
        sys.exit("done")

    with pytest.raises(RuntimeError, match=r"called sys\.exit\(done\)"):
        start(leaves()).result(timeout=60)
    assert start(asyncio.sleep(0, result="still there")).result(timeout=60) == "still there"
