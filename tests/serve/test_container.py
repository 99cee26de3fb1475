"""What the image and the composition promise, as far as it can be told without a container engine.

The image's own command runs here, with the environment that the files give it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

from memograd.cli.app import app
from memograd.config.memory_settings import ENVIRONMENT
from memograd.web.running import GRACE_SECONDS

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-of-the-composition"

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


@pytest.fixture(scope="module")
def dockerfile() -> dict[str, list[str]]:
    """The last stage's instructions, by name."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    for line in text.split("\nFROM ")[-1].splitlines():
        name, _, rest = line.strip().partition(" ")
        if name.isupper():
            found.setdefault(name, []).append(" ".join(rest.split()))
    return found


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)["services"]
    return found


def test_the_image_runs_as_nobody_with_its_memory_in_a_volume(
    dockerfile: dict[str, list[str]],
) -> None:
    assert dockerfile["USER"] == ["memograd"]
    assert dockerfile["VOLUME"] == ["/data"]
    environment = dict(re.findall(r"(\w+)=(\S+)", " ".join(dockerfile["ENV"])))
    assert {environment[name] for name in ("MEMOGRAD_PATH", "MEMOGRAD_CACHE")} == {
        "/data/memories",
        "/data/cache",
    }
    [run] = dockerfile["RUN"]
    assert "--owner memograd" in run and run.endswith("/data")
    assert "ARG" not in dockerfile  # nothing secret becomes a layer


def test_all_that_is_named_is_there(
    dockerfile: dict[str, list[str]], services: dict[str, Any]
) -> None:
    """Files, extras, options, ports, the path of the health check, the time to end in."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    build = text.split("\nFROM ")[1].replace("\\\n", " ")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for copied in re.findall(r"^COPY (.+) \S+$", build, re.M):
        for name in copied.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in ignored, name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (ROOT / project["readme"]).name in build  # the build of the package reads it
    assert all(name in build for name in project["license-files"])
    [extras] = re.findall(r'pip install .*"\.\[([\w,-]+)\]"', build)
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    assert "memograd" in project["scripts"]

    [serve] = [one for one in app.registered_groups if one.name == "serve"]
    assert serve.typer_instance is not None
    command = typer.main.get_command(serve.typer_instance)
    known = {name for one in command.params for name in one.opts}
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    entry = json.loads(dockerfile["ENTRYPOINT"][0])
    assert entry[:2] == ["memograd", "serve"]
    ours = [one for one in services.values() if "build" in one]
    said = [entry, json.loads(dockerfile["CMD"][0]), *(one["command"] for one in ours)]
    options = {word for words in said for word in words if word.startswith("--")}
    comments = [line for line in (text + compose).splitlines() if line.startswith("#")]
    options |= set(re.findall(r"(?<=memograd )--[\w-]+", "\n".join(comments)))
    assert options and options <= known

    [port] = dockerfile["EXPOSE"]
    assert entry[entry.index("--port") + 1] == port
    assert all(mapping.endswith(f":{port}") for one in ours for mapping in one["ports"])
    [check] = dockerfile["HEALTHCHECK"]
    assert f":{port}/healthz'" in check
    assert dockerfile["STOPSIGNAL"] == ["SIGTERM"]
    for one in ours:
        assert int(one["stop_grace_period"].removesuffix("s")) > GRACE_SECONDS
        assert one["build"] == "." and set(one["depends_on"]) <= services.keys()
        for waited, how in one["depends_on"].items():
            assert how["condition"] != "service_healthy" or "healthcheck" in services[waited]
    volumes = {name.partition(":")[0] for one in services.values() for name in one["volumes"]}
    assert volumes == yaml.safe_load(compose)["volumes"].keys()


def test_what_is_pulled_has_a_version(services: dict[str, Any]) -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    images = re.findall(r"^FROM (\S+)", text, re.M)
    images += [one["image"] for one in services.values() if "build" not in one]
    for image in images:
        _, _, tag = image.partition(":")
        assert re.search(r"\d", tag), image


def test_only_the_servers_can_be_reached_and_only_from_this_machine(
    services: dict[str, Any],
) -> None:
    ours = {name: one for name, one in services.items() if "build" in one}
    assert len(ours) == 2
    for name, one in services.items():
        ports = one.get("ports", [])
        assert all(port.startswith("127.0.0.1:") for port in ports), name
        assert bool(ports) == (name in ours)
    for one in ours.values():
        assert one["read_only"] and one["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in one["security_opt"]
        assert any(volume.endswith(":/data") for volume in one["volumes"])
        assert set(one["environment"]) <= {*ENVIRONMENT, "MEMOGRAD_SERVE_TOKEN"}
        needed = re.findall(r"\$\{(\w+)(:\?)?", json.dumps(one["environment"]))
        assert needed and all(mark == ":?" for _, mark in needed)  # refused where it is not set


@pytest.mark.slow
def test_the_images_command_serves_and_its_health_check_passes(
    dockerfile: dict[str, list[str]], tmp_path: Path
) -> None:
    entry = json.loads(dockerfile["ENTRYPOINT"][0]) + json.loads(dockerfile["CMD"][0])
    assert entry[0] == "memograd"
    entry[entry.index("--port") + 1] = "0"
    environment = os.environ | {
        **{"MEMOGRAD_PATH": str(tmp_path / "m"), "MEMOGRAD_SERVE_TOKEN": TOKEN},
        **{"MEMOGRAD_RANKING": "fusion", "PYTHONUNBUFFERED": "1"},
    }
    process = subprocess.Popen(
        [sys.executable, "-m", *entry],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        assert address.startswith("http://localhost:")  # what a browser can open, not 0.0.0.0
        port = address.rpartition(":")[2]
        [check] = dockerfile["HEALTHCHECK"]
        command = json.loads(check[check.index("CMD ") + 4 :])
        assert command[:2] == ["python", "-c"]
        healthy = [sys.executable, "-c", command[2].replace("8322", port)]
        assert subprocess.run(healthy).returncode == 0
        headers = {"X-API-Key": TOKEN, "Host": "localhost:8322"}
        address = f"http://127.0.0.1:{port}/users"
        assert httpx.get(address, headers=headers, trust_env=False).json() == {"results": []}
        foreign = httpx.get(address, headers=headers | {"Host": "memory.evil"}, trust_env=False)
        assert foreign.status_code == 403
        process.terminate()
        assert process.wait(60) == 143
    finally:
        process.kill()
