"""Running agents: in this process and as programs, with crashes, time limits and retries."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest
from scripted import ScriptedBackend

from memograd.errors import BadInput
from memograd.gateway.agents import (
    AgentAttempt,
    AgentFailed,
    Running,
    load_agent,
    program,
    run_agents,
)

PROGRAM = """
import json, os, sys, urllib.request
task = json.load(sys.stdin)
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
           "Content-Type": "application/json"}
def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))
said = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            {"messages": [{"role": "user", "content": task["prompt"]}]})
reward = len(said["choices"][0]["message"]["content"])
if task.get("post"):
    post(os.environ["MEMOGRAD_ROLLOUT_URL"] + "/reward", {"reward": reward})
else:
    print("done")
    print(json.dumps({"reward": reward}))
"""


@pytest.fixture
def gateway(start):
    return start(ScriptedBackend(lambda messages: messages[-1]["content"] * 2))


def run(gateway, agent, *tasks: dict, **settings) -> list[str]:
    attempts = [AgentAttempt(task, f"attempt {number}") for number, task in enumerate(tasks)]
    running = Running(**settings)
    return asyncio.run(run_agents(agent, attempts, gateway.store, gateway.url, running=running))


def states(gateway) -> list[str]:
    return [record.state for record in reversed(gateway.store.rollouts())]


def test_a_task_that_an_attempt_edits_is_whole_for_the_next_one(gateway) -> None:
    async def agent(task, base_url, api_key):
        task["cards"].pop()
        return len(task["cards"])

    same = {"cards": ["ace", "king"]}
    ids = run(gateway, agent, same, same)
    assert [gateway.store.rollout(one).reward for one in ids] == [1, 1]
    assert same == {"cards": ["ace", "king"]}


def test_results_are_in_order_whoever_finishes_first(gateway) -> None:
    async def agent(task, base_url, api_key):
        await asyncio.sleep(0.05 * (3 - task["n"]))
        return task["n"]

    ids = run(gateway, agent, *({"n": n} for n in range(4)))
    assert [gateway.store.rollout(one).reward for one in ids] == [0, 1, 2, 3]


def test_no_more_run_at_once_than_may(gateway) -> None:
    now, most = 0, 0

    async def agent(task, base_url, api_key):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return 1.0

    run(gateway, agent, *[{}] * 9, concurrency=3)
    assert most == 3


def test_a_retry_is_a_rollout_of_its_own(gateway) -> None:
    tries = []

    async def agent(task, base_url, api_key):
        tries.append(base_url)
        if len(tries) == 1:
            raise ValueError("crashed")
        return 0.5

    [rollout_id] = run(gateway, agent, {}, retries=1)
    assert states(gateway) == ["failed", "rewarded"]
    assert rollout_id in tries[1]
    failed = gateway.store.rollouts(state="failed")[0]
    assert "ValueError: crashed" in str(failed.error)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "neither returned a reward nor posted one"),
        (float("nan"), "no finite number"),
        ("good", "no finite number"),
        (True, "no finite number"),
        pytest.param(10**400, "no finite number", id="beyond-every-float"),
    ],
)
def test_no_reward_is_an_error_that_names_the_attempt(gateway, given, said: str) -> None:
    async def agent(task, base_url, api_key):
        return given

    with pytest.raises(AgentFailed, match=f"attempt 0: .*{said}"):
        run(gateway, agent, {}, retries=1)
    assert states(gateway) == ["failed", "failed"]


def test_an_agent_that_takes_too_long_is_ended(gateway) -> None:
    async def agent(task, base_url, api_key):
        await asyncio.sleep(60)

    with pytest.raises(AgentFailed, match=r"more than 0\.05 s"):
        run(gateway, agent, {}, seconds=0.05, retries=0)


def test_programs_return_or_post_their_reward(gateway, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM)
    agent = program([sys.executable, str(tmp_path / "agent.py")])
    ids = run(gateway, agent, {"prompt": "苹果"}, {"prompt": "abc", "post": True})
    assert [gateway.store.rollout(one).reward for one in ids] == [4, 6]
    assert [len(gateway.store.calls(one)) for one in ids] == [1, 1]


def test_a_program_that_fails_says_why(gateway) -> None:
    with pytest.raises(AgentFailed, match="ended with 3: bad luck"):
        code = "import sys; print('bad luck', file=sys.stderr); sys.exit(3)"
        run(gateway, program([sys.executable, "-c", code]), {}, retries=0)


def test_a_program_that_is_given_up_is_gone_with_what_it_started(tmp_path) -> None:
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text(
        "import os, pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "written = pathlib.Path(sys.argv[1] + '.part')\n"
        "written.write_text(f'{os.getpid()} {child.pid}')\n"
        "written.rename(sys.argv[1])\n"
        "time.sleep(600)\n"
    )
    pids = tmp_path / "pids"
    agent = program([sys.executable, str(sleeper), str(pids)])

    async def give_up() -> None:
        """As the time limit does: the agent is cancelled, here once its child runs."""
        running = asyncio.ensure_future(agent({}, "http://x/rollout/1/v1", "key"))
        while not pids.exists():
            assert not running.done()
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(asyncio.wait_for(give_up(), 60))
    for pid in map(int, pids.read_text().split()):
        give_up_at = time.monotonic() + 60
        while alive(pid) and time.monotonic() < give_up_at:
            time.sleep(0.02)
        assert not alive(pid)


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and is not collected does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_agents_are_loaded_by_name(tmp_path: Path) -> None:
    file = tmp_path / "named_agents.py"
    file.write_text(
        "async def run(task, base_url, api_key): return 1.0\n"
        "async def short(task): return 1.0\n"
        "def plain(): pass\n"
    )
    assert load_agent(f"{file}:run").__name__ == "run"
    for spec, said in [
        (f"{file}:plain", "no async function"),
        (f"{file}:walk", "run"),
        ("nothing", "names no function"),
        (f"{file}:short", "does not take them"),
        ("exec:", "names no program"),
        ("exec:'", "is no command line: No closing quotation"),
        ("exec:no_such_program --fast", "there is no no_such_program"),
    ]:
        with pytest.raises(BadInput, match=said):
            load_agent(spec)


def test_an_agents_own_time_limit_is_not_the_runs(gateway) -> None:
    async def agent(task, base_url, api_key):
        raise TimeoutError("the database did not answer")

    with pytest.raises(AgentFailed, match="raised TimeoutError: the database did not answer"):
        run(gateway, agent, {}, retries=0)


def test_what_a_program_leaves_running_does_not_keep_it(gateway, tmp_path) -> None:
    """A server that it started for its tools holds its output open."""
    pid = tmp_path / "pid"
    code = (
        "import pathlib, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(child.pid))\n"
        "print('{\"reward\": 2}')\n"
    )
    agent = program([sys.executable, "-c", code])
    [rollout] = run(gateway, agent, {"prompt": "x" * 200_000}, retries=0, seconds=60)
    assert gateway.store.rollout(rollout).reward == 2
    give_up_at = time.monotonic() + 60
    while alive(int(pid.read_text())):
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
