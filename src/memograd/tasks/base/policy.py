"""The policy that a run trains: what it begins with, how it is opened, who draws for it.

Where several processes train it together: who holds the run folder, its weights, and who speaks.

Invariants: without a checkpoint the adapter is fresh and drawn from the run's seed, or that of the
run that `adapter` names, which is then the reference too; with one it is the checkpoint's. With
`tuning=full` there is none, and the same holds of all weights. Settings
that contradict the run begun from are refused, and those that were not given are taken from it, so
`config.json` says what was really trained. Servers are left as they were found, however a run ends:
what it loaded is unloaded, and its folder of adapters is gone. Only rank 0 writes into the run
folder and to the screen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

import torch.distributed as dist
from rich.console import Console

from memograd.config import LoraConfig, SamplerConfig, Settings, TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.checkpoint_folder import MANIFEST
from memograd.grpo.distributed import ALONE, World, joined_world
from memograd.grpo.resume import begun
from memograd.grpo.run_folder import FollowerFolder, checkpoint_step
from memograd.grpo.sampler_gap import GapLimits
from memograd.policy.full_model import FullModel
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import check_model, choose_device, resolve_model
from memograd.policy.model_policy import ModelPolicy

PROBE_TEXT = "The quick brown fox jumps over the lazy dog. 敏捷的狐狸跳过懒狗。 0 1 2 3 4 5 6 7 8 9"
"""What servers are tried with; its beginning is the tokenizer's own."""

SERVER_LOG = "sampler-server.log"
"""What a server that was started for the run says, in the run folder."""

ADAPTERS = "sampler-adapters"
"""Where the run folder keeps versions of the adapter while servers need them."""

REWARD_MODEL: Final = "reward-model"

C = TypeVar("C", bound=Settings)


def check_before_loading(config: TrainConfig, world: World = ALONE) -> None:
    """Refuse what these settings ask for and is not there, while nothing is loaded yet.

    Raises BadInput for a device, a model, servers or processes that cannot be there.
    """
    if config.sampler.url:
        from memograd.policy.remote.server import check_url

        for url in config.sampler.url:
            check_url(url)
    choose_device(config.device)
    check_model(config.model)
    check_shared(config, world)


def load_policy(config: TrainConfig, checkpoint: Path | None) -> ModelPolicy:
    """The model of the settings, with the checkpoint's adapter or weights, or those to begin with,
    and with a value head where the algorithm trains one."""
    policy = _opened(config, checkpoint)
    policy.stop = tuple(config.stop)
    again = config.activation_checkpointing
    if again or (again is None and policy.device.type == "cuda"):
        policy.checkpoint_activations()
    if config.advantage == "gae":
        policy.add_value_head(checkpoint or config.adapter)
    return policy


def _opened(config: TrainConfig, checkpoint: Path | None) -> ModelPolicy:
    # A run that is trained by several processes cuts its weights next (`share_weights`); whoever
    # measures it later is one process, and has them whole.
    to_cut = config.shard != "off" and dist.is_initialized()
    if config.tuning == "full":
        return FullModel.open(
            config.model,
            checkpoint,
            reference=config.beta > 0,
            device=config.device,
            forward=config.forward,
            to_cut=to_cut,
        )
    if checkpoint is not None:
        return LanguageModel.load_adapter(
            config.model,
            checkpoint,
            device=config.device,
            forward=config.forward,
            to_cut=to_cut,
            quantization=config.quantization,
        )
    if config.adapter is not None:
        return LanguageModel.load_adapter(
            config.model,
            config.adapter,
            reference=config.adapter,
            device=config.device,
            forward=config.forward,
            to_cut=to_cut,
            quantization=config.quantization,
        )
    return LanguageModel.load(
        config.model,
        lora=config.lora,
        device=config.device,
        seed=config.seed,
        forward=config.forward,
        to_cut=to_cut,
        quantization=config.quantization,
    )


def room_for_prompt(context_length: int, config: TrainConfig) -> int:
    """The most tokens that a prompt may have: what the longest answer leaves of `context_length`,
    or `max_prompt_length` if that is less.

    Raises BadInput where an answer alone fills the context.
    """
    room = context_length - config.max_completion_length
    if room < 1:
        raise BadInput(
            f"max_completion_length={config.max_completion_length} leaves no room for a prompt in"
            f" the {context_length} tokens that are there: set it to less."
        )
    return min(room, config.max_prompt_length or room)


class WithAdapter(Protocol):
    """Settings of a run that may begin with an adapter."""

    @property
    def adapter(self) -> Path | None: ...
    @property
    def model(self) -> str: ...
    @property
    def lora(self) -> LoraConfig: ...


def adapter_of(path: Path) -> Path:
    """The complete checkpoint at `path`, or the latest one of the run at `path`.

    Raises BadInput if there is none.
    """
    if (path / "adapter_config.json").is_file():
        checkpoint_step(path)  # refuses an incomplete one
        return path
    itself = is_whole(path) or (path / MANIFEST).is_file()
    checkpoint = path if itself else RunFolder.open(path).latest_checkpoint()
    if checkpoint is None:
        raise BadInput(f"{path} has no complete checkpoint, so there is no adapter in it.")
    if is_whole(checkpoint):
        raise BadInput(
            f"{path} was trained with tuning=full and has no adapter: give the whole model that it"
            f" is as model={checkpoint}."
        )
    if not (checkpoint / "adapter_config.json").is_file():
        raise BadInput(
            f"{checkpoint} holds no adapter of a language model: give a run, or a checkpoint, of a"
            " task that trains one."
        )
    return checkpoint


def is_whole(folder: Path) -> bool:
    """Whether a checkpoint holds a model, and not an adapter for one."""
    return (folder / "config.json").is_file() and any(folder.glob("model*.safetensors*"))


def settings_with_adapter(config: C, recipe: str = "") -> C:
    """The settings completed by those of the run that `adapter` belongs to.

    config: has the settings of `WithAdapter`. recipe: what trains with them, as `Begun` has it.
    `adapter` becomes the checkpoint itself; `model` and `lora` are that run's. Raises BadInput
    where they were given and differ.
    """
    given = cast(WithAdapter, config)
    if given.adapter is None:
        return config
    checkpoint = adapter_of(given.adapter).resolve()
    began = begun(RunFolder.open(checkpoint.parent))
    if (began.recipe == REWARD_MODEL) != (recipe == REWARD_MODEL):
        raise BadInput(
            f"adapter={given.adapter} cannot be begun with: adapters of reward models and of "
            "models that answer do not fit each other."
        )
    differs = {
        "model": _resolved(given.model) != _resolved(began.model),
        # Only what was given of it: the rest is that run's.
        "lora": any(
            getattr(given.lora, name) != getattr(began.lora, name)
            for name in given.lora.model_fields_set
        ),
    }
    for name in sorted(name for name in config.model_fields_set if differs.get(name)):
        raise BadInput(
            f"adapter={given.adapter} was trained with another {name}; leave {name} out to take "
            "that run's, or begin with a fresh adapter."
        )
    update = {"adapter": checkpoint, "model": began.model, "lora": began.lora}
    return config.model_copy(update=update)


def _resolved(model: str) -> str:
    return str(Path(model).resolve()) if Path(model).is_dir() else model


@contextmanager
def sampling_of(
    policy: ModelPolicy,
    config: SamplerConfig,
    folder: Path,
    *,
    world: World = ALONE,
    probed: bool = True,
) -> Iterator[None]:
    """Within this block `policy` draws as the settings say; versions of what is trained are written
    into `folder`, or where the settings say. `probed`: servers are tried before. All ranks of
    `world` enter it together; rank 0 starts the server, if the run does.

    Raises `BadInput` for servers that are not there, or do not fit.
    """
    if config.engine == "local":
        yield
        return
    from memograd.policy.remote.pool import ServerPool
    from memograd.policy.remote.probe import probe
    from memograd.policy.remote.sampler import RemoteSampler
    from memograd.policy.remote.server import SamplingFailed, VllmServer
    from memograd.policy.remote.weights_server import WeightsServer

    whole = isinstance(policy, FullModel)
    if whole and config.max_staleness and world.size > 1:
        raise BadInput(
            f"sampler.max_staleness={config.max_staleness} with tuning=full is for one process, "
            f"and there are {world.size}: use max_staleness=0."
        )
    with ExitStack() as stack:
        shares = stack.enter_context(ExitStack())
        if isinstance(policy, FullModel):
            shares.enter_context(policy.gathered())
        urls = config.url or [
            world.led(lambda: stack.enter_context(_started(policy, config, folder, world)))
        ]

        def opened() -> RemoteSampler:
            servers = [
                (WeightsServer if whole else VllmServer)(
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
            # One rank at a time can exchange the weights of a server.
            if probed and (world.leads or not whole):
                limit = GapLimits.of(config, policy.dtype).stop
                try:
                    probe(policy, sampler, policy.encode(PROBE_TEXT), limit=limit)
                except SamplingFailed as error:
                    raise BadInput(f"sampler.url: {error}") from error
            return sampler

        policy.remote = world.guarded(opened)
        stack.callback(setattr, policy, "remote", None)
        if whole:
            # Rank 0 measures by itself before training, and could not gather them alone then.
            policy.follow(world.led(policy.publisher(0)))
        shares.close()
        yield


def _started(
    policy: ModelPolicy, config: SamplerConfig, folder: Path, world: World
) -> AbstractContextManager[str]:
    """The server of this run, on this machine."""
    from memograd.policy.remote.start import started_server

    here = os.environ.get("LOCAL_WORLD_SIZE", str(world.size))
    if here != str(world.size):
        raise BadInput(
            f"sampler.start=true starts a server that this machine alone reaches, and {world.size} "
            f"processes train on several ({here} here): start servers yourself, and give "
            "sampler.url."
        )
    return started_server(
        resolve_model(policy.name),
        command=config.command,
        options=config.options,
        rank=policy.adapter_rank if isinstance(policy, LanguageModel) else None,
        adapters=config.max_staleness + 2,
        log=folder / SERVER_LOG,
        seconds=config.start_seconds,
        sleep=config.sleep,
    )


@contextmanager
def joined_ranks(device: str, console: Console) -> Iterator[World]:
    """`joined_world`, with `console` silent on all ranks but rank 0."""
    with joined_world(device) as world:
        console.quiet = not world.leads
        yield world


def plan_memory(policy: ModelPolicy, config: TrainConfig, world: World) -> str:
    """Let memory decide how large micro-batches are; returns what the run needs and there is.

    Raises `BadInput` where one answer of full length to the longest prompt does not fit.
    """
    budget = policy.plan_memory(ranks=1 if config.shard == "off" else world.size)
    row = (config.max_prompt_length or 1) + config.max_completion_length
    if not budget.fits(row):
        ways = ["a smaller model", "a smaller max_completion_length"]
        if not policy.checkpointing:
            ways.insert(0, "activation_checkpointing=true")
        if config.shard == "off":
            ways.insert(0, "shard=fsdp2 with several processes")
        if config.tuning == "full":
            ways += ["tuning=lora", *(["beta=0"] if policy.has_reference else [])]
        raise BadInput(
            f"model={config.model} cannot be trained here: {budget.says(row)}; use "
            f"{', or '.join(ways)}"
        )
    return budget.says(policy.usual_tokens())


def check_shared(config: TrainConfig, world: World) -> None:
    """Raise BadInput where one process by itself is to cut the weights among several."""
    if config.shard != "off" and world.size == 1:
        raise BadInput(
            "shard=fsdp2 cuts the model among several processes, and this is one by itself: start "
            "with torchrun --nproc_per_node=N -m memograd, or use shard=off"
        )


def share_weights(policy: ModelPolicy, config: TrainConfig, world: World) -> None:
    """Cut the policy's weights among the ranks where the settings ask for it; all must call it.

    Raises `BadInput` for one process, which has nobody to share them with.
    """
    check_shared(config, world)
    if config.shard == "off":
        return
    world.catch_up = world.guarded(policy.shard)


@contextmanager
def held(run: RunFolder, world: World) -> Iterator[RunFolder]:
    """`run` as this rank has it, locked for all by rank 0; raises what `RunFolder.lock` raises."""
    own = run if world.leads else FollowerFolder(run.path)
    with ExitStack() as stack:
        world.guarded(lambda: stack.enter_context(own.lock()))
        yield own
