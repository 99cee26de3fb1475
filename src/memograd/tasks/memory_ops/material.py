"""The life logs that a memory policy is trained and measured on, ready for walking.

They are generated, or from files. Logs of generated training data and of held-out data share no
wording, no name and some not even the attributes.

Every statement becomes a fact, every text has its vector and terms. A statement's subject is found
in its text, as the running memory's reader does it: the generator names none for small talk, so its
own word for it would tell what is not worth remembering. `LogMemory`, the memory of one walk
through a log, makes items exactly as the running memory does, and knows the statement whose text
each carries now: an UPDATE replaces the text, so what the item said before is carried no longer.

Invariants: no log that is measured was trained on, under whatever id, and where the held-out forms
are measured they were not trained on; a statement becomes the same fact, and is searched by the
same vector and terms, as the running memory would make of it; forks never see each other's changes;
`carried` names exactly the living items.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import numpy as np

from memograd.data.detect import load_any
from memograd.data.lifelog import (
    Lifelog,
    LifelogSettings,
    Probe,
    generate_in_languages,
    lifelog_of,
    read_lifelogs,
)
from memograd.data.splits import in_common, told_in
from memograd.errors import BadInput
from memograd.memory.analysis import analyse
from memograd.memory.embedders import Embedder
from memograd.memory.language import language_of
from memograd.memory.reader.fact import Fact
from memograd.memory.reader.rules import subject_of
from memograd.memory.reader.setting import display
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import MemoryOp, OpKind
from memograd.memory.records.scope import Scope
from memograd.memory.search import Hit, Query
from memograd.memory.search.related import find_related
from memograd.memory.state import MemoryState
from memograd.memory.statements import parse_statement
from memograd.tasks.memory_ops.settings import OperationsConfig

View = Literal["statements", "turns"]
EMBED_BATCH: Final = 256
EVAL_SEED: Final = 1_000_003  # far from the seeds that people choose for training
_OF_TEST_SPLIT = re.compile(r"life-(en|zh)-test-")  # as generated logs are called


@dataclass(frozen=True)
class AskedProbe:
    """A probe with its question as a query, and its statements by number in the log.

    misleading: number of a statement, and of the one from which on it misleads: the statement that
    superseded it or asked to forget it, itself where none did (hearsay that was wrong).
    """

    probe: Probe
    query: Query
    needed: tuple[int, ...]
    misleading: tuple[tuple[int, int], ...]

    def needed_at(self, now: int) -> tuple[int, ...]:
        """What it needs of the statements up to number `now`."""
        return tuple(number for number in self.needed if number <= now)

    def misleading_at(self, now: int) -> tuple[int, ...]:
        """What misleads once the statements up to number `now` were told."""
        return tuple(number for number, since in self.misleading if since <= now)


@dataclass(frozen=True)
class EmbeddedLog:
    """A log, its statements as facts, and everything of it that is searched for.

    vectors_ND: of the facts' texts. tokens_N: their size. last_N: after which statement a probe is
    asked is `AskedProbe`'s position in `asked_after`.
    """

    log: Lifelog
    facts: tuple[Fact, ...]
    queries: tuple[Query, ...]
    probes: tuple[AskedProbe, ...]
    asked_after: tuple[int, ...]
    vectors_ND: np.ndarray
    tokens_N: np.ndarray


def embed_logs(
    logs: Sequence[Lifelog], embedder: Embedder, *, view: View = "statements"
) -> list[EmbeddedLog]:
    """Embed all texts of all logs, each different text once.

    view: what a fact's text is: what a reader would write down (`statements`), or the raw turn that
    says it (`turns`). Raises BadInput for a log without statements.
    """
    check_statements(logs)
    texts = {log.id: _texts(log, view) for log in logs}
    passages = _embedded(embedder.embed, (text for log in logs for text in texts[log.id]))
    questions = _embedded(
        embedder.embed_queries, (probe.question.text for log in logs for probe in log.probes)
    )
    return [_embed_log(log, texts[log.id], passages, questions) for log in logs]


_SCOPE: Final = Scope(user_id="log")


class LogMemory:
    """What is remembered of a log so far. carried: item id to number of the statement."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self.state = MemoryState(log.vectors_ND.shape[1])
        self.carried: dict[str, int] = {}

    def fork(self) -> LogMemory:
        """The same memory, free to go another way."""
        fork = LogMemory(self._log)
        fork.state = self.state.fork()
        fork.carried = dict(self.carried)
        return fork

    @property
    def tokens(self) -> int:
        """Size of all items together."""
        return int(self._log.tokens_N[list(self.carried.values())].sum()) if self.carried else 0

    def related(self, number: int) -> list[Hit[MemoryItem]]:
        """The items that a decision about a statement looks at."""
        return find_related(self.state.items, self._log.queries[number])

    def apply(self, op: MemoryOp, number: int) -> None:
        """Do to the memory what `op` says, on behalf of the statement with that number."""
        if op.kind is OpKind.NONE:
            return
        if op.kind is OpKind.DELETE:
            assert op.item_id is not None  # MemoryOp refuses others
            self.remove(op.item_id)
            return
        item_id = op.item_id or self._log.log.statements[number].id
        change = self.state.replace_item if op.kind is OpKind.UPDATE else self.state.add_item
        query = self._log.queries[number]
        change(self._item(item_id, number), query.vector, query.terms)
        # Put behind the others, as in the state: a changed item is the most recent one.
        self.carried.pop(item_id, None)
        self.carried[item_id] = number

    def remove(self, item_id: str) -> None:
        """Take an item out."""
        self.state.remove_item(item_id)
        del self.carried[item_id]

    def statements_in(self, hits: Sequence[Hit[MemoryItem]]) -> set[int]:
        """Which statements these items carry."""
        return {self.carried[hit.record.id] for hit in hits}

    def vectors(self) -> np.ndarray:
        """Of all items in their order, float32 [items, d]."""
        vectors: np.ndarray = self._log.vectors_ND[list(self.carried.values())]
        return vectors

    def _item(self, item_id: str, number: int) -> MemoryItem:
        fact = self._log.facts[number]
        told = fact.told_at or datetime(1970, 1, 1, tzinfo=UTC)
        return MemoryItem(
            id=item_id,
            text=fact.text,
            scope=_SCOPE,
            created_at=told,
            updated_at=told,
            sources=fact.sources,
            valid_from=fact.valid_from,
        )


def check_statements(logs: Sequence[Lifelog]) -> None:
    """Raise BadInput for a log without statements."""
    for log in logs:
        if not log.statements:
            raise BadInput(f"The log {log.id!r} has no statement: there is nothing to decide on.")


def token_count(text: str) -> int:
    """About how many tokens a text has: a quarter of its letters, each Chinese character one."""
    wide = sum(1 for character in text if ord(character) > 0x2E80)
    return max(1, wide + (len(text) - wide + 3) // 4)


def _texts(log: Lifelog, view: View) -> list[str]:
    if view == "statements":
        return [statement.text for statement in log.statements]
    turns = {turn.id: turn.index_text() for turn in log.turns}
    return [turns[statement.turn_id] for statement in log.statements]


def _embedded(
    embed: Callable[[Sequence[str]], np.ndarray], texts: Iterator[str]
) -> dict[str, Query]:
    distinct = list(dict.fromkeys(texts))
    found: dict[str, Query] = {}
    for start in range(0, len(distinct), EMBED_BATCH):
        batch = distinct[start : start + EMBED_BATCH]
        for text, vector in zip(batch, embed(batch), strict=True):
            found[text] = Query(text, np.asarray(vector, np.float32), tuple(analyse(text)))
    return found


def _embed_log(
    log: Lifelog, texts: Sequence[str], passages: dict[str, Query], questions: dict[str, Query]
) -> EmbeddedLog:
    numbers = {statement.id: number for number, statement in enumerate(log.statements)}
    superseded = _superseded(log, numbers)
    speakers = {turn.id: turn.speaker for turn in log.turns}
    facts = tuple(
        Fact(
            text,
            sources=(statement.id,),
            told_at=statement.told_at,
            valid_from=statement.told_at,
            subject=_subject(text, speakers[statement.turn_id]),
            retracts=statement.retracts,
        )
        for text, statement in zip(texts, log.statements, strict=True)
    )
    times = [statement.told_at for statement in log.statements]
    probes = tuple(
        AskedProbe(
            probe,
            questions[probe.question.text],
            tuple(numbers[name] for name in probe.needed),
            tuple(
                (numbers[name], superseded.get(numbers[name], numbers[name]))
                for name in probe.misleading
            ),
        )
        for probe in log.probes
    )
    return EmbeddedLog(
        log=log,
        facts=facts,
        queries=tuple(passages[text] for text in texts),
        probes=probes,
        asked_after=tuple(_last_told(times, one.probe.asked_at) for one in probes),
        vectors_ND=np.stack([passages[text].vector for text in texts]),
        tokens_N=np.array([token_count(text) for text in texts]),
    )


def _subject(text: str, speaker: str) -> str:
    return subject_of(text, parse_statement(text), display(speaker, language_of(text)))


def _superseded(log: Lifelog, numbers: dict[str, int]) -> dict[int, int]:
    """Which statement first replaced another or took it back; a property of the story."""
    found: dict[int, int] = {}
    for number, statement in enumerate(log.statements):
        gold = statement.gold
        if gold and gold.target and gold.kind in (OpKind.UPDATE, OpKind.DELETE):
            found.setdefault(numbers[gold.target], number)
    return found


def _last_told(times: Sequence[datetime], moment: datetime) -> int:
    """Number of the last statement told by then, -1 if none was."""
    return sum(1 for time in times if time <= moment) - 1


def training_logs(config: OperationsConfig) -> list[Lifelog]:
    """The logs to train on; raises BadInput for files that cannot be read."""
    if config.data:
        return logs_of_files(config.data)
    settings = LifelogSettings(split="train")
    return generate_in_languages(config.logs, config.seed, config.languages, settings)


def evaluation_logs(config: OperationsConfig) -> list[Lifelog]:
    """The logs to measure on.

    Raises BadInput when one of them is trained on too, or its held-out words are.
    """
    known = training_logs(config) if config.data else []
    if not config.eval_data:
        if told := [log.id for log in known if _OF_TEST_SPLIT.match(log.id)]:
            raise BadInput(
                f"data holds {told[0]}, a generated log in the words and names of the split test,"
                " which the logs to measure on are made of too: generate data with --split train,"
                " or say with eval_data what to measure on."
            )
        settings = LifelogSettings(split="test")
        return generate_in_languages(config.eval_logs, EVAL_SEED, config.languages, settings)
    logs = logs_of_files(config.eval_data)
    if common := sorted(in_common(map(told_in, known), map(told_in, logs))):
        raise BadInput(
            f"data and eval_data have {', '.join(common)} in common: what was trained"
            " on says nothing about other conversations; take it out of one of them."
        )
    return logs


def logs_of_files(paths: Sequence[Path]) -> list[Lifelog]:
    """Life logs as they are; conversations with questions turn by turn.

    Raises BadInput for files that cannot be read, hold no log, or a log without statements.
    """
    logs: list[Lifelog] = []
    for path in paths:
        if is_lifelog_file(path):
            logs += read_lifelogs(path)
        else:
            for conversation in load_any(path):
                text = " ".join(turn.text for turn in conversation.turns[:20])
                logs.append(lifelog_of(conversation, language_of(text)))
    if not logs:
        raise BadInput(f"{', '.join(map(str, paths))} hold no log and no conversation.")
    check_statements(logs)
    return logs


def is_lifelog_file(path: Path) -> bool:
    """Whether the first line of a file is a life log."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and {"statements", "probes"} <= set(first)


def fingerprint(logs: Sequence[Lifelog]) -> str:
    """SHA-256 of everything in these logs."""
    digest = hashlib.sha256()
    for log in logs:
        digest.update(json.dumps(asdict(log), default=str, sort_keys=True).encode())
    return digest.hexdigest()
