"""`memograd gateway` and `memograd traces` as they are typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.command_line import run

from memograd.gateway.records import CallRecord, Choice
from memograd.gateway.store import TraceStore


@pytest.fixture
def store_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("MEMOGRAD_GATEWAY_KEY", raising=False)
    return f"sqlite:///{tmp_path}/traces.db"


@pytest.mark.slow
def test_a_gateway_serves_until_it_is_interrupted(tiny_model_folder: Path, store_url: str) -> None:
    command = [sys.executable, "-m", "memograd", "gateway", "--model", str(tiny_model_folder)]
    command += ["--port", "0", "--store", store_url, "--device", "cpu", "--max-tokens", "5"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split(" at ")[1].split("/v1")[0]
        made = httpx.post(f"{url}/rollout", json={}, timeout=60).json()
        headers = {"Authorization": f"Bearer {made['api_key']}"}
        body = {"messages": [{"role": "user", "content": "你好"}], "n": 2}
        path = f"{made['base_url']}/chat/completions"
        assert httpx.post(path, json=body, headers=headers, timeout=60).status_code == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    [call] = TraceStore(store_url).calls(made["id"])
    assert [len(choice.token_ids or ()) > 0 for choice in call.choices] == [True, True]


def test_traces_are_listed_shown_and_exported(store_url: str, tmp_path: Path, capsys) -> None:
    store = TraceStore(store_url)
    rollout = store.create().record.id
    other = store.create().record.id
    store.begin_call(rollout)
    messages = ({"role": "user", "content": "你好\x1b[31m"},)
    choices = (Choice("好", "stop", token_ids=(1,), logprobs=(-0.5,)),)
    store.record(CallRecord(rollout, 0, "agent", "m", 0, messages, choices, prompt_ids=(1, 2)))
    store.reward(rollout, 0.5)

    dead = store.create().record.id
    store.fail(dead, "the agent raised ValueError: 坏了")

    traces = ("--store", store_url)
    _, out, _ = run(capsys, "traces", "list", *traces, "--state", "failed")
    assert dead in out and "坏了" in out
    code, out, _ = run(capsys, "traces", "list", *traces, "--state", "rewarded")
    assert code == 0 and rollout in out and "0.5" in out and other not in out
    _, out, _ = run(capsys, "traces", "list", *traces, "--json")
    assert {record["id"]: record["reward"] for record in json.loads(out)} == {
        rollout: 0.5,
        other: None,
        dead: None,
    }
    _, out, _ = run(capsys, "traces", "show", rollout[:9], *traces)
    assert "你好" in out and "token ids kept" in out and "\x1b" not in out
    _, out, _ = run(capsys, "traces", "show", rollout, *traces, "--json")
    assert json.loads(out)["calls"][0]["choices"][0]["token_ids"] == [1]
    file = tmp_path / "out.jsonl"
    code, _, _ = run(capsys, "traces", "export", *traces, "--state", "rewarded", "--out", str(file))
    assert code == 0 and json.loads(file.read_text())["id"] == rollout
    code, _, err = run(capsys, "traces", "export", *traces, "--out", str(file))
    assert code == 2 and "exists already" in err
    _, out, _ = run(capsys, "traces", "export", *traces, "--format", "otel", rollout)
    assert "resourceSpans" in json.loads(out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gateway", "--model", "m", "--host", "0.0.0.0"], "MEMOGRAD_GATEWAY_KEY"),
        (["gateway", "--model", "m", "--token-ids"], "--upstream"),
        (
            ["gateway", "--model", "m", "--upstream", "http://x/v1", "--adapter", "a"],
            "--adapter",
        ),
        (["gateway", "--model", "m", "--upstream", "nowhere"], "is no URL"),
        (["gateway", "--model", "m", "--store", "mysql://x/y"], "not understood|kept in|needs"),
        (["gateway", "--model", "m", "--host", "no such host"], "needs a key"),
        (["traces", "list", "--store", "sqlite:///none.db"], "no trace store"),
        (["traces", "list", "--state", "happy"], "no state 'happy'"),
        (["traces", "export", "--state", "happy"], "no state 'happy'"),
        (["traces", "export", "zz", "--state", "failed"], "--state chooses among all"),
        (["traces", "show", "zz"], "No rollout"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], said: str, store_url: str, tmp_path, monkeypatch, capsys
) -> None:
    import re

    monkeypatch.chdir(tmp_path)
    TraceStore(store_url).close()
    if "--store" not in arguments:
        arguments = [*arguments, "--store", store_url]
    if arguments[0] == "gateway":
        arguments += ["--port", "0"]
    code, _, err = run(capsys, *arguments)
    assert code == 2, err
    assert re.search(said, err)
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "option",
    [
        ("--adapter", "a"),
        ("--device", "cpu"),
        ("--max-tokens", "5"),
        ("--max-batch", "3"),
        ("--chat-template", "t.jinja"),
    ],
)
def test_what_is_for_a_local_model_is_refused_before_another_server(
    store_url: str, capsys, option: tuple[str, str]
) -> None:
    behind = ("--model", "q", "--upstream", "http://127.0.0.1:9/v1", "--store", store_url)
    code, _, err = run(capsys, "gateway", *behind, *option)
    assert code == 2
    assert err == f"memograd: {option[0]} is for a local model; leave it out behind --upstream.\n"


def test_a_trace_is_shown_with_its_api_and_readable_times(store_url: str, capsys) -> None:
    store = TraceStore(store_url, clock=lambda: 1_700_000_000.0)
    rollout = store.create(seconds=3e9).record.id  # not over yet
    store.begin_call(rollout)
    messages = ({"role": "user", "content": "你好"},)
    choices = (Choice("好", "stop"),)
    for number, asked in enumerate([{"api": "responses"}, {}]):
        call = CallRecord(rollout, number, "writer", "m", 0, messages, choices, asked=asked)
        store.record(call)
    _, out, _ = run(capsys, "traces", "show", rollout, "--store", store_url)
    assert "call 0 by writer, responses:" in out and "call 1 by writer, chat:" in out
    shown = {"updated_at": "2023-11-14 22:13:20", "deadline": "2118-12-09 03:33:20"}
    for name, when in shown.items():
        [line] = [line for line in out.splitlines() if line.startswith(name)]
        assert line.split(maxsplit=1)[1].strip() == when
