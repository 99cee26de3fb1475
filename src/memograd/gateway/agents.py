"""Running agents: an async function in this process, or any program, once for every attempt.

An agent is unchanged code: it is given a base URL and an API key, and calls a model there as it
would call OpenAI's. What it must do beside its work is say how well it went, by returning a number
or by posting one to its rollout.

    async def agent(task: dict, base_url: str, api_key: str) -> float | None

Where rewards are computed from what was said (`Running.self_rewarding` is False), what an agent
returns is not looked at, and an agent that the model drove into one of `Running.ends` (too many
turns, a conversation that is full) has finished, with the trace as it stands.

A program gets the task as JSON on standard input, OPENAI_BASE_URL, OPENAI_API_KEY,
MEMOGRAD_ROLLOUT_URL and MEMOGRAD_ROLLOUT_ID in its environment, and says {"reward": 0.5} in the
last line of its output, or posts it.

Invariants: every attempt is a rollout of its own, a retry too; an attempt that crashes, takes too
long or gives no reward where it should ends its rollout with the reason, and after its last retry
the run with an error that names it, never with a reward of 0; programs are gone when their time is
up.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import shlex
import shutil
import signal
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memograd.errors import RAISED_BY_USERS, BadInput, MemogradError, place_in
from memograd.gateway.store import TraceStore
from memograd.rewards.user_code import function_of, load_file, load_module, source_of
from memograd.rollout.episode import EpisodeError
from memograd.rollout.types import is_finite_number, own_copy

LOOK_SECONDS = 0.05
"""How often a program is looked at, whether it has ended."""

Agent = Callable[[dict[str, Any], str, str], Awaitable[Any]]
"""Given a task, a base URL and an API key; gives a reward, or None if it has posted one. Where it
does not reward itself, anything."""


class AgentFailed(EpisodeError):
    """An agent gave no reward in any of its tries; the message names the rollout and says why."""


@dataclass(frozen=True)
class AgentAttempt:
    """One attempt wanted: the agent's task, what the rollout is called, and its seed."""

    task: Mapping[str, Any]
    name: str
    seed: int | None = None


@dataclass(frozen=True)
class Running:
    """How agents run: so many at once, so many seconds a try, so many further tries.

    self_rewarding: an attempt must give a reward. ends: names of exception classes, or codes of
    OpenAI's errors, with which an attempt is over instead of failed, if it need not give one.
    """

    concurrency: int = 8
    seconds: float = 600.0
    retries: int = 1
    self_rewarding: bool = True
    ends: Collection[str] = ()


async def run_agents(
    agent: Agent,
    attempts: Sequence[AgentAttempt],
    store: TraceStore,
    url: str,
    *,
    running: Running | None = None,
    policy_version: int = 0,
) -> list[str]:
    """Let `agent` make all attempts at the gateway at `url`; the ids of the rollouts that count.

    Raises AgentFailed for the first attempt that failed in every try; the others are stopped.
    """
    running = running or Running()
    room = asyncio.Semaphore(running.concurrency)

    async def one(attempt: AgentAttempt) -> str:
        why = ""
        async with room:
            for number in range(running.retries + 1):
                seed = None if attempt.seed is None else attempt.seed + number
                made = store.create(
                    metadata={"name": attempt.name, "try": number, "task": dict(attempt.task)},
                    policy_version=policy_version,
                    seconds=running.seconds + 60,
                    seed=seed,
                )
                base_url = f"{url}/rollout/{made.record.id}/v1"
                try:
                    await _one_try(agent, attempt, base_url, made.api_key, running, store)
                except AgentFailed as error:
                    why = str(error)
                    if store.rollout(made.record.id).state in ("open", "running"):
                        store.fail(made.record.id, why)
                else:
                    return made.record.id
        raise AgentFailed(f"{attempt.name}: {why}")

    tasks = [asyncio.ensure_future(one(attempt)) for attempt in attempts]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _one_try(
    agent: Agent,
    attempt: AgentAttempt,
    base_url: str,
    api_key: str,
    running: Running,
    store: TraceStore,
) -> None:
    """Run the agent once; its rollout is rewarded or finished, or AgentFailed says why not."""
    rollout_id, cut_short = rollout_of(base_url), None
    clock = asyncio.timeout(running.seconds)
    try:
        async with clock:
            given = await agent(own_copy(dict(attempt.task)), base_url, api_key)
    except RAISED_BY_USERS as error:
        if clock.expired() and isinstance(error, TimeoutError):
            raise AgentFailed(f"the agent took more than {running.seconds:g} s") from None
        if running.self_rewarding or not _is_end(error, running.ends):
            raise AgentFailed(
                f"the agent raised {type(error).__name__}: {error}"
                f"{'' if isinstance(error, MemogradError) else place_in(source_of(agent), error)}"
            ) from error
        given, cut_short = None, f"{type(error).__name__}: {error}"
    if not running.self_rewarding:
        state = store.rollout(rollout_id).state
        if state == "open":
            raise AgentFailed("the agent made no call" + (f" ({cut_short})" if cut_short else ""))
        if state == "running":  # an agent may have posted a reward, which nobody asked for
            store.finish(rollout_id, cut_short)
        return
    if given is not None and (isinstance(given, bool) or not is_finite_number(given)):
        raise AgentFailed(f"the agent returned {given!r}, which is no finite number")
    posted = store.rollout(rollout_id)
    if posted.state != "rewarded":
        if given is None:
            raise AgentFailed("the agent neither returned a reward nor posted one")
        store.reward(rollout_id, float(given))
    elif given is not None and given != posted.reward:
        raise AgentFailed(f"the agent posted the reward {posted.reward} and returned {given}")


def _is_end(error: BaseException, ends: Collection[str]) -> bool:
    """Whether this is one of `ends`: by the class or one above it, or by OpenAI's code."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint(ends) or getattr(error, "code", None) in ends


def rollout_of(base_url: str) -> str:
    """The id in a rollout's base URL."""
    return base_url.removesuffix("/v1").rpartition("/")[2]


def program(command: Sequence[str], *, folder: Path | None = None) -> Agent:
    """An agent that is a program, run in `folder` if one is given."""

    async def run(task: dict[str, Any], base_url: str, api_key: str) -> float | None:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": api_key,
            "MEMOGRAD_ROLLOUT_URL": base_url.removesuffix("/v1"),
            "MEMOGRAD_ROLLOUT_ID": rollout_of(base_url),
        }
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,  # so that what it started can be ended with it
        )
        given = json.dumps(task, ensure_ascii=False, default=str).encode()
        telling = asyncio.ensure_future(process.communicate(given))
        try:
            # Its output ends with whatever it has started and left, so that is ended as it ends.
            while process.returncode is None and not telling.done():
                await asyncio.wait({telling}, timeout=LOOK_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            out, err = await telling
        if process.returncode != 0:
            last = err.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise MemogradError(f"{command[0]} ended with {process.returncode}: {last[0]}")
        return _told(out.decode(errors="replace"))

    return run


def load_agent(spec: str) -> Agent:
    """The agent that `spec` names: `my_agent.py:run`, `my_package.agents:run`, or a program as
    `exec:python my_agent.py`. Raises BadInput if there is none."""
    if spec.startswith("exec:"):
        try:
            command = shlex.split(spec.removeprefix("exec:"))
        except ValueError as error:
            raise BadInput(f"The agent {spec!r} is no command line: {error}.") from error
        if not command:
            raise BadInput("--agent exec: names no program; write exec:python my_agent.py.")
        if shutil.which(command[0]) is None:
            raise BadInput(f"The agent {spec!r} names no program: there is no {command[0]}.")
        return program(command)
    source, _, name = spec.rpartition(":")
    if not source or not name:
        raise BadInput(f"The agent {spec!r} names no function; write path/to/file.py:function.")
    module = (
        load_file(Path(source), "agent") if source.endswith(".py") else load_module(source, "agent")
    )
    found = function_of(module, name, "agent")
    if not asyncio.iscoroutinefunction(found):
        raise BadInput(
            f"{spec} is no async function; write async def {name}(task, base_url, api_key)."
        )
    try:
        inspect.signature(found).bind({}, "", "")
    except TypeError as error:
        raise BadInput(
            f"{spec} is called with task, base URL and key, and does not take them ({error}); "
            f"write async def {name}(task, base_url, api_key)."
        ) from error
    agent: Agent = found
    return agent


def _told(output: str) -> float | None:
    """The reward in the last line of a program's output, if that is what it says."""
    lines = output.strip().splitlines()
    try:
        said = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    reward = said.get("reward") if isinstance(said, dict) else None
    return reward if isinstance(reward, int | float) else None
