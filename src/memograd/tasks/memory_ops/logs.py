"""The life logs that a memory policy is trained and measured on: generated, or from files.

Logs of generated training data and of held-out data share no wording, no name and some not even the
attributes. Invariant: no log that is measured was trained on, under whatever id, and where the
held-out forms are measured they were not trained on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from memograd.data.detect import load_any
from memograd.data.lifelog import (
    Lifelog,
    LifelogSettings,
    generate_in_languages,
    lifelog_of,
    read_lifelogs,
)
from memograd.data.splits import in_common, told_in
from memograd.errors import BadInput
from memograd.memory.language import language_of
from memograd.tasks.memory_ops.material import check_statements
from memograd.tasks.memory_ops.settings import OperationsConfig

EVAL_SEED = 1_000_003  # far from the seeds that people choose for training
_OF_TEST_SPLIT = re.compile(r"life-(en|zh)-test-")  # as generated logs are called


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
