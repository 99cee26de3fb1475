"""`vllm serve` as a child: it is told what it needs, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from memograd.errors import BadInput
from memograd.policy.remote.start import started_server

PROGRAM = """#!{python}
import http.server, json, os, subprocess, sys
if "--broken" in sys.argv:
    print("no such option")
    sys.exit(3)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        env = {{k: v for k, v in os.environ.items() if k.startswith("VLLM") or k == "PYTHONPATH"}}
        said = json.dumps({{"arguments": sys.argv, "env": env, "child": child.pid}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "vllm"
    file.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
    file.chmod(0o755)
    return str(file)


def serve(program: str, tmp_path: Path, *options: str, seconds: float = 60.0):
    return started_server(
        "a-model",
        command=program,
        options=options,
        rank=12,
        adapters=2,
        log=tmp_path / "server.log",
        seconds=seconds,
    )


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.is_file() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_it_is_told_what_training_needs_and_nothing_is_left(program, tmp_path):
    with serve(program, tmp_path, "--dtype=float32") as url:
        told = httpx.get(f"{url}/health").json()
        arguments = told["arguments"][1:]
        assert arguments[:2] == ["serve", "a-model"] and arguments[-1] == "--dtype=float32"
        assert "--enable-lora" in arguments
        assert arguments[arguments.index("--max-lora-rank") + 1] == "16"
        assert arguments[arguments.index("--logprobs-mode") + 1] == "processed_logprobs"
        assert told["env"]["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "1"
        assert "PYTHONPATH" not in told["env"]
        child = told["child"]
        assert alive(child)
    ends = time.monotonic() + 30
    while alive(child) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not alive(child)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


KILLED = """
import os, signal, sys
from pathlib import Path
import httpx
from memograd.policy.remote.start import started_server
with started_server(
    "m", command=sys.argv[1], options=[], rank=8, adapters=2, log=Path(sys.argv[2]), seconds=60
) as url:
    print(httpx.get(f"{url}/health").json()["child"], url, flush=True)
    os.kill(os.getpid(), int(sys.argv[3]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_it_where_this_process_is_killed(program, tmp_path, number):
    command = [
        sys.executable,
        "-c",
        KILLED,
        program,
        str(tmp_path / "server.log"),
        str(int(number)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -number, done.stderr
    child, url = done.stdout.split()
    ends = time.monotonic() + 60
    while alive(int(child)) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not alive(int(child))
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_a_server_that_does_not_come_up_says_why(program, tmp_path):
    said = r"ended with 3; .*server\.log ends with: no such option"
    with pytest.raises(BadInput, match=said), serve(program, tmp_path, "--broken"):
        pass
    with pytest.raises(BadInput, match="is no program"), serve("no-such-vllm", tmp_path):
        pass
