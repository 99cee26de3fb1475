"""Reading MemoryAgentBench (arXiv 2507.05257): one long context, many questions about it.

A published Parquet file is one of four skills (`Accurate_Retrieval-00000-of-00001.parquet`,...). A
row has `context`, `questions`, `answers` (for each question a list of texts, any of which is right)
and `metadata` (`source`, and where the source has them `question_types`, `question_dates`,
`question_ids`). The context is cut into chunks at the best places that it offers: ends of lines,
then ends of sentences (English and Chinese), then spaces, and within a word only where the word
alone is too long. A case's id is `<skill>/<row>`; the category of a question is its type, else the
source. Movies to recommend stay the numbers that the file gives for them.

Invariants: questions without a text or an answer are dropped and reported, dates that cannot be
read are left out and reported, never in silence; anything else out of the ordinary is BadInput. The
chunks joined are the context, none is over the limit, and cutting takes time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from memograd.data.conversation import ConstructionCase, LoadReport, Question
from memograd.data.longmemeval import ABSTENTION, DATE_EXAMPLE, DATE_PATTERN
from memograd.data.record_files import (
    answer_texts,
    decoded,
    field,
    moment,
    read_rows,
    typed,
)
from memograd.errors import BadInput

COLUMNS: Final = ("context", "questions", "answers", "metadata")
CHUNK_TOKENS: Final = 4096  # a common size for this benchmark


def load_memory_agent_bench(
    path: Path | str, *, chunk_tokens: int = CHUNK_TOKENS
) -> list[ConstructionCase]:
    """The cases of a file, with chunks of at most so many tokens (estimated).

    Raises BadInput, in one sentence, when it is not in the format. What
    `load_memory_agent_bench_with_report` drops is logged as warnings.
    """
    cases, report = load_memory_agent_bench_with_report(path, chunk_tokens=chunk_tokens)
    report.warn(path)
    return cases


def load_memory_agent_bench_with_report(
    path: Path | str, *, chunk_tokens: int = CHUNK_TOKENS
) -> tuple[list[ConstructionCase], LoadReport]:
    """The cases of a file, and what was dropped from it."""
    path = Path(path)
    skill = path.name.split("-")[0].removesuffix(".parquet")
    cases: list[ConstructionCase] = []
    report = LoadReport()
    for number, row in enumerate(read_rows(path, COLUMNS, "MemoryAgentBench")):
        where, identity = f"{path}, row {number}", f"{skill}/{number}"
        here = f"'metadata' in {where}"
        metadata = typed(decoded(row["metadata"], here), dict, here)
        source = field(metadata, "source", str, here)
        chunks = text_chunks(field(row, "context", str, where), chunk_tokens)
        questions = _questions(row, metadata, source, identity, where, report)
        if questions:
            filled = tuple(chunk for chunk in chunks if chunk.strip())
            cases.append(ConstructionCase(identity, source, filled, questions))
        else:
            report.dropped.append(identity)
    return cases, report


def _questions(
    row: dict[str, Any],
    metadata: dict[str, Any],
    source: str,
    identity: str,
    where: str,
    report: LoadReport,
) -> tuple[Question, ...]:
    asked = field(row, "questions", list, where)
    answers = field(row, "answers", list, where)
    if len(asked) != len(answers):
        raise BadInput(
            f"{where} has {len(asked)} questions and {len(answers)} answers: fetch the file again."
        )
    kinds = _column(metadata, "question_types", len(asked), where)
    dates = _column(metadata, "question_dates", len(asked), where)
    names = _column(metadata, "question_ids", len(asked), where)
    questions = []
    for place, (text, right) in enumerate(zip(asked, answers, strict=True)):
        here = f"{where}, question {place}"
        question_id = f"{identity}/q{place}"
        said = typed(text, str, here).strip()
        texts = answer_texts({"answers": right}, "answers", here)
        if not said or not texts:
            report.unasked.append(question_id)
            continue
        questions.append(
            Question(
                id=question_id,
                text=said,
                answer=texts[0],
                category=kinds[place] or source,
                evidence=(),
                adversarial=(names[place] or "").endswith(ABSTENTION),
                asked_at=_date(dates[place], question_id, report),
                accepted=texts[1:],
            )
        )
    return tuple(questions)


def _column(metadata: dict[str, Any], key: str, length: int, where: str) -> list[str | None]:
    """A list with an entry for each question; None for each where the source has none."""
    values = metadata.get(key) or []
    here = f"{key!r} in the metadata of {where}"
    listed = [None if one is None else typed(one, str, here) for one in typed(values, list, here)]
    if listed and len(listed) != length:
        raise BadInput(f"{here} has {len(listed)} entries for {length} questions.")
    return listed or [None] * length


def _date(text: str | None, question_id: str, report: LoadReport) -> datetime | None:
    if not text:
        return None
    try:
        return moment(text, DATE_PATTERN, question_id, DATE_EXAMPLE)
    except BadInput:
        report.undated.append((question_id, text))  # the question stands without it
        return None


BYTES_PER_TOKEN: Final = 3  # as in `memory.language.estimate_tokens`
LEAST_TOKENS: Final = 16
_PLACES: Final = (
    re.compile(r"(?<=\n)"),
    re.compile(r"(?<=[.!?] )|(?<=[。！？；])"),
    re.compile(r"(?<=\s)"),
    re.compile(r"(?<=.)", re.DOTALL),
)


def text_chunks(text: str, tokens: int) -> list[str]:
    """The text in chunks of at most `tokens` tokens, estimated; raises BadInput under 16."""
    if tokens < LEAST_TOKENS:
        raise BadInput(f"A chunk of {tokens} tokens is too small: give at least {LEAST_TOKENS}.")
    limit = tokens * BYTES_PER_TOKEN
    chunks: list[str] = []
    parts: list[str] = []
    filled = 0
    for part, cost in _parts(text, limit, 0):
        if filled + cost > limit:
            chunks.append("".join(parts))
            parts, filled = [], 0
        parts.append(part)
        filled += cost
    return [*chunks, "".join(parts)] if parts else chunks


def _parts(text: str, limit: int, level: int) -> Iterator[tuple[str, int]]:
    """Pieces of the text with their bytes, each within the limit, cut no finer than needed."""
    cost = len(text.encode("utf-8", "surrogatepass"))
    if cost <= limit:
        if text:
            yield text, cost
        return
    for part in _PLACES[level].split(text):
        yield from _parts(part, limit, level + 1)
