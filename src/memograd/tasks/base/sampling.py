"""Who draws for a policy in training: itself, or the servers of the settings.

Invariant: the servers are left as they were found, however a run ends: what it loaded is unloaded,
and its folder of adapters is gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from memograd.config import SamplerConfig
from memograd.errors import BadInput
from memograd.grpo.sampler_gap import GapLimits
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import resolve_model

PROBE_TEXT = "The quick brown fox jumps over the lazy dog. 敏捷的狐狸跳过懒狗。 0 1 2 3 4 5 6 7 8 9"
"""What servers are tried with; its beginning is the tokenizer's own."""
SERVER_LOG = "sampler-server.log"
"""What a server that was started for the run says, in the run folder."""
ADAPTERS = "sampler-adapters"
"""Where the run folder keeps versions of the adapter while servers need them."""


@contextmanager
def sampling_of(
    policy: LanguageModel, config: SamplerConfig, folder: Path, *, probed: bool = True
) -> Iterator[None]:
    """Within this block `policy` draws as the settings say; versions of its adapter are written
    into `folder`, or where the settings say. `probed`: servers are tried before.

    Raises `BadInput` for servers that are not there, or do not fit.
    """
    if config.engine == "local":
        yield
        return
    from memograd.policy.remote.pool import ServerPool
    from memograd.policy.remote.probe import probe
    from memograd.policy.remote.sampler import RemoteSampler
    from memograd.policy.remote.server import VllmServer

    with ExitStack() as stack:
        urls = config.url or [stack.enter_context(_started(policy, config, folder))]
        servers = [
            VllmServer(
                url,
                api_key=os.environ.get(config.api_key_env, ""),
                seconds=config.seconds,
                load_seconds=config.load_seconds,
                connections=config.connections,
            )
            for url in urls
        ]
        pool = ServerPool(
            servers,
            (config.adapters or folder / ADAPTERS).resolve(),
            patience=config.patience,
            connections=config.connections,
        )
        sampler = RemoteSampler(
            policy, pool, max_staleness=config.max_staleness, sleeps=config.sleep
        )
        stack.callback(sampler.close)
        if probed:
            limit = GapLimits.of(config, policy.dtype).stop
            probe(policy, sampler, policy.encode(PROBE_TEXT), limit=limit)
        policy.remote = sampler
        stack.callback(setattr, policy, "remote", None)
        yield


def _started(
    policy: LanguageModel, config: SamplerConfig, folder: Path
) -> AbstractContextManager[str]:
    """The server of this run, on this machine."""
    from memograd.policy.remote.start import started_server

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise BadInput(
            "sampler.start=true starts a server for one process, and there are "
            f"{os.environ['WORLD_SIZE']}: start servers yourself, and give sampler.url."
        )
    return started_server(
        resolve_model(policy.name),
        command=config.command,
        options=config.options,
        rank=policy.adapter_rank,
        adapters=config.max_staleness + 2,
        log=folder / SERVER_LOG,
        seconds=config.start_seconds,
        sleep=config.sleep,
    )
