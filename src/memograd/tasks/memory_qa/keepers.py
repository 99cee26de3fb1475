"""Who makes items of a conversation for memory-qa, and the file that keeps them.

Three keepers: rules, a trained head, a memory-construct run. Rules and heads hear the turns session
by session, as `Memory.add` would: a reader finds the facts and the manager decides what each
changes. A language model of memory-construct reads the turns in chunks of the size it was trained
on and says what to write down, greedily.

That may take hours where a language model reads, so `KeptFile` writes each conversation as soon as
it is done, a line each, and a run that goes on, or is measured, reads what is there:

    {"conversation": "conv-26", "turns": "<hash>", "keeper": "rules", "items": [{"text": ...}]}

The hash of its turns says whether a conversation is still the same.

Invariants: what is not there, or does not fit, is refused before anything is made; a policy is
never asked about what it was trained on, as far as its run says what that was; killed at any
instant, the file holds whole conversations only, and those that it holds are never made again.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from memograd.config import MemorySettings
from memograd.data import Conversation
from memograd.data.splits import in_common
from memograd.errors import BadInput
from memograd.evaluation.kept_rows import KeptRows
from memograd.grpo import RunFolder
from memograd.grpo.resume import stored_config
from memograd.memory import RawTurn, Scope
from memograd.memory.embedders import Embedder
from memograd.memory.embedders.load import load_embedder
from memograd.memory.language import language_of
from memograd.memory.manager import MemoryManager, RuleManager
from memograd.memory.manager.trained.manager import TrainedManager, open_policy, settled
from memograd.memory.reader import RuleReader
from memograd.memory.state.store import MemoryStore
from memograd.memory.write.changes import Labels
from memograd.memory.write.remember import learn
from memograd.tasks.base.policy import adapter_of, load_policy
from memograd.tasks.memory_construct.case import BuildCase, Chunk, grouped_turns
from memograd.tasks.memory_construct.measure import build
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.recipe import cases, speaker_for, told_of
from memograd.tasks.memory_construct.settings import ConstructTrainConfig
from memograd.tasks.memory_ops.material import training_logs
from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.memory_qa.scenarios import KeptItem
from memograd.tasks.memory_qa.settings import MemoryConfig


class KeptFile:
    """The items of conversations in the file `path`, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = KeptRows(
            path,
            "items of conversations",
            "that one's items made again",
            lambda row: row.keys() >= {"turns", "keeper", "items"},
            key="conversation",
        )

    def missing(self, conversations: Sequence[Conversation]) -> list[Conversation]:
        """Those that nothing was kept of yet.

        Raises:
            BadInput: one has the id of another conversation, whose items are in the file.
        """
        for one in conversations:
            row = self._kept.get(one.id)
            if row is not None and row["turns"] != _fingerprint(one):
                raise BadInput(
                    f"{self._path} holds the items of another conversation {one.id}: remove the "
                    "file, or give the conversation an id of its own."
                )
        return [one for one in conversations if self._kept.get(one.id) is None]

    def fill(self, conversations: Sequence[Conversation], keeper: Keeper) -> None:
        """Let the keeper make the items of these, and write them down one after the other."""
        for conversation, items in zip(conversations, keeper.keep(conversations), strict=True):
            row = {
                "turns": _fingerprint(conversation),
                "keeper": keeper.name,
                "items": [item.to_json() for item in items],
            }
            self._kept.put(conversation.id, row)

    def items(self, conversation: Conversation) -> list[KeptItem]:
        """What was kept of a conversation."""
        return [KeptItem.from_json(item) for item in self._of(conversation)["items"]]

    def keeper(self, conversation: Conversation) -> str:
        """Who made the items of a conversation."""
        return str(self._of(conversation)["keeper"])

    def _of(self, conversation: Conversation) -> Mapping[str, Any]:
        row = self._kept.get(conversation.id)
        assert row is not None  # `fill` comes before
        return row


def _fingerprint(conversation: Conversation) -> str:
    """SHA-256 of everything that was said."""
    said = json.dumps([turn.to_json() for turn in conversation.turns], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


CONSTRUCT = "memory-construct"
OPERATIONS = "memory-ops"


class Keeper(Protocol):
    """Makes items of conversations. name: who it is, for files and the screen."""

    @property
    def name(self) -> str: ...

    def keep(self, conversations: Sequence[Conversation]) -> Iterator[list[KeptItem]]:
        """The items of each conversation, in the order in which they were learnt."""
        ...


def keeper_of(memory: MemoryConfig, embedder: Embedder, device: str) -> Keeper:
    """The keeper that the settings name; a language model is loaded when it first reads.

    Raises:
        BadInput: there is no such policy, or it reads vectors of another embedder.
    """
    policy = memory.policy
    if policy is None:
        return ManagerKeeper(RuleManager(), embedder)
    if _speaks(policy):
        return ConstructKeeper(policy, device)
    manager = _deciding(policy, embedder.name)
    manager.check_embedder(embedder.name, embedder.dimension)
    return ManagerKeeper(manager, embedder)


def check_policy(policy: Path, embedder: str) -> None:
    """Refuse a policy that cannot keep items beside the embedder of that name; loads no model.

    Raises:
        BadInput: as `keeper_of`.
    """
    if _speaks(policy):
        _construct_run(policy)
    else:
        _deciding(policy, embedder)


def _speaks(policy: Path) -> bool:
    """Whether a language model keeps the items, and not a head."""
    return (policy / "adapter_config.json").is_file() or _task(policy) not in ("", OPERATIONS)


def _deciding(policy: Path, embedder: str) -> TrainedManager:
    manager = settled(open_policy(policy))
    assert isinstance(manager, TrainedManager)
    if manager.head.embedder != embedder:
        raise BadInput(
            f"The policy {policy} reads vectors of the embedder {manager.head.embedder}: set "
            f"memory.embedder={manager.head.embedder}."
        )
    return manager


def _construct_run(policy: Path) -> tuple[RunFolder, Path]:
    """The memory-construct run that a language model is of, and its checkpoint.

    Raises:
        BadInput: it is of no such run.
    """
    checkpoint = adapter_of(policy)
    run = RunFolder.open(checkpoint.parent)
    if run.task != CONSTRUCT:
        raise BadInput(
            f"{policy} is of a run of {run.task or 'another task'}, which builds no memory: "
            f"name a run of {CONSTRUCT}, or of {OPERATIONS}."
        )
    return run, checkpoint


class ManagerKeeper:
    """Rules or a trained head, behind the reader by rules."""

    def __init__(self, manager: MemoryManager, embedder: Embedder) -> None:
        self._manager, self._embedder = manager, embedder

    @property
    def name(self) -> str:
        """As the journal has it: `rules`, or `policy:` and the version of the weights."""
        return self._manager.actor

    def keep(self, conversations: Sequence[Conversation]) -> Iterator[list[KeptItem]]:
        """As of `Keeper`."""
        for conversation in conversations:
            with tempfile.TemporaryDirectory() as folder:
                settings = MemorySettings(path=Path(folder))
                with closing(MemoryStore(settings, self._embedder)) as store:
                    yield self._kept(store, conversation)

    def _kept(self, store: MemoryStore, conversation: Conversation) -> list[KeptItem]:
        scope, reader = Scope(run_id=conversation.id), RuleReader()
        for turns in _sessions(conversation):
            learn(
                store,
                reader,
                self._manager,
                turns,
                scope,
                Labels(),
                categorise=lambda text: (),
            )
        order = {turn.id: place for place, turn in enumerate(conversation.turns)}
        # What was told last is what an item says now.
        items = sorted(
            store.states.current(scope.owner).items,
            key=lambda item: max(order[source] for source in item.sources),
        )
        return [KeptItem(item.text, item.valid_from) for item in items]


class ConstructKeeper:
    """The language model of a memory-construct run, by its run folder or a checkpoint in it."""

    def __init__(self, policy: Path, device: str) -> None:
        run, self._checkpoint = _construct_run(policy)
        self._config = stored_config(run, ConstructTrainConfig).model_copy(
            update={"device": device}
        )
        self.name = f"{run.path.name}/{self._checkpoint.name}"

    def keep(self, conversations: Sequence[Conversation]) -> Iterator[list[KeptItem]]:
        """As of `Keeper`; a change of an item counts as learnt when it was changed."""
        config = self._config
        groups = [grouped_turns(one.turns, config.build.turns_per_chunk) for one in conversations]
        read = [_case(*pair) for pair in zip(conversations, groups, strict=True)]
        speaker = speaker_for(read, load_policy(config, self._checkpoint), config)
        texts = Texts(load_embedder(config.build.embedder))
        for case, chunks in zip(read, groups, strict=True):
            built = build(speaker, [case], texts, 1, f"keeping {case.id}")
            book = built.walks[0].book
            items = sorted(book.items, key=lambda item: book.written_in[item.id])
            yield [KeptItem(one.text, chunks[book.written_in[one.id]][0].time) for one in items]


def trained_on(policy: Path, conversations: Sequence[Conversation]) -> list[str] | None:
    """The ids of those conversations that a policy was trained on, there under whatever id; None if
    nobody can tell."""
    run = policy if (policy / "run.json").is_file() else policy.parent
    try:
        if _task(run) == CONSTRUCT:
            build = stored_config(RunFolder.open(run), ConstructTrainConfig)
            size, first = build.build.turns_per_chunk, build.build.chunks
            read = [_case(one, grouped_turns(one.turns, size)) for one in conversations]
            asked = [case.first_chunks(first) for case in read]
            return in_common(map(told_of, cases(build)[0]), map(told_of, asked))
        if _task(run) == OPERATIONS:
            config = stored_config(RunFolder.open(run), OperationsConfig)
            return in_common(map(told_of, training_logs(config)), map(told_of, conversations))
    except BadInput:  # its data are no longer there
        return None
    return None


def _task(folder: Path) -> str:
    """What is trained in a run folder; empty if it is none."""
    return RunFolder.open(folder).task if (folder / "run.json").is_file() else ""


def _sessions(conversation: Conversation) -> list[list[RawTurn]]:
    return [list(turns) for _, turns in groupby(conversation.turns, key=lambda t: t.session)]


def _case(conversation: Conversation, groups: Sequence[Sequence[RawTurn]]) -> BuildCase:
    """The conversation as it is read, without its questions."""
    chunks = tuple(Chunk("\n".join(turn.render() for turn in group)) for group in groups)
    return BuildCase(conversation.id, language_of(chunks[0].text), chunks, asked=())
