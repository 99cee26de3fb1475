"""A gateway over the tiny model, in a thread of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from memograd.config import LoraConfig
from memograd.gateway.app import create_app
from memograd.gateway.backend import Backend
from memograd.gateway.local import AnswerSampling, LocalBackend
from memograd.gateway.store import TraceStore
from memograd.policy.language_model import LanguageModel
from memograd.web.running import running

torch.set_num_threads(1)

TOOL_TEMPLATE = (
    "{# <tool_call> #}{% if tools %}<|start|>system\n{{ tools | tojson }}<|end|>{% endif %}"
    "{% for message in messages %}<|start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


@pytest.fixture(params=["sqlite", "postgresql"])
def trace_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where traces can be kept: SQLite and PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/痕迹.db"
    return str(request.getfixturevalue("postgres_url"))


def plain_client(**given: Any) -> httpx.Client:
    """A client without certificates: reading them costs more than most tests here."""
    return httpx.Client(verify=False, timeout=60, **given)


@dataclass
class Rollout:
    """A rollout's address and key, and a client that has both."""

    id: str
    base_url: str
    api_key: str
    client: httpx.Client

    def chat(self, *messages: Any, **fields: Any) -> httpx.Response:
        said = [
            {"role": "user", "content": one} if isinstance(one, str) else one for one in messages
        ]
        return self.client.post(
            f"{self.base_url}/chat/completions", json={"messages": said, **fields}
        )


@dataclass
class Gateway:
    """A running gateway, its store and its backend."""

    url: str
    store: TraceStore
    backend: Any
    client: httpx.Client

    def rollout(self, **fields: Any) -> Rollout:
        made = self.client.post(f"{self.url}/rollout", json=fields).json()
        key = made["api_key"]
        client = plain_client(headers={"Authorization": f"Bearer {key}"})
        return Rollout(made["id"], made["base_url"], key, client)


@pytest.fixture
def tiny_policy(tiny_model_folder: Path) -> LanguageModel:
    policy = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return policy


@pytest.fixture
def tool_template(tmp_path: Path) -> Path:
    file = tmp_path / "tools.jinja"
    file.write_text(TOOL_TEMPLATE)
    return file


@pytest.fixture
def local(tiny_policy: LanguageModel, tool_template: Path) -> Iterator[LocalBackend]:
    sampling = AnswerSampling(max_tokens=12)
    backend = LocalBackend(tiny_policy, sampling=sampling, chat_template=tool_template)
    yield backend
    backend.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Starts a gateway over a backend."""
    with ExitStack() as stack:

        def started(backend: Backend, store: TraceStore | None = None, **settings: Any) -> Gateway:
            store = store or TraceStore(f"sqlite:///{tmp_path}/traces.db")
            stack.callback(store.close)
            url = stack.enter_context(running(create_app(backend, store, **settings)))
            client = stack.enter_context(plain_client())
            return Gateway(url, store, backend, client)

        yield started


@pytest.fixture
def gateway(local: LocalBackend, start: Callable[..., Gateway]) -> Gateway:
    return start(local)
