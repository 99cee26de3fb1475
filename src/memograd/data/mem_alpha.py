"""Reading the training data of Mem-alpha (arXiv 2509.25911): chunks, then questions.

A published Parquet file (`train.parquet`, `test.parquet`) has a row for each case: `instance_id`,
`data_source` (squad, hotpotqa, perltqa, booksum,...), `chunks` and `questions_and_answers`, the
last two as JSON texts. An answer is a text or a list of them, the first of which is `answer` and
the others `accepted`. A case's id is `<name of the file>/<row>`, since `instance_id` counts anew in
every source. The published files do not say which chunk holds an answer, so there is no evidence;
their column `prompt` is an instruction to the original's agent and is not kept.

Invariant: what cannot be asked (no text, no answer) or read (empty chunks) is dropped and reported,
never in silence; anything else out of the ordinary is BadInput.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from memograd.data.conversation import ConstructionCase, LoadReport, Question
from memograd.data.record_files import answer_texts, decoded, field, read_rows, typed

COLUMNS: Final = ("data_source", "chunks", "questions_and_answers")


def load_mem_alpha(path: Path | str) -> list[ConstructionCase]:
    """The cases of a file; raises BadInput, in one sentence, when it is not in the format.

    What `load_mem_alpha_with_report` drops is logged as warnings.
    """
    cases, report = load_mem_alpha_with_report(path)
    report.warn(path)
    return cases


def load_mem_alpha_with_report(path: Path | str) -> tuple[list[ConstructionCase], LoadReport]:
    """The cases of a file, and what was dropped from it."""
    path = Path(path)
    cases: list[ConstructionCase] = []
    report = LoadReport()
    for number, row in enumerate(read_rows(path, COLUMNS, "Mem-alpha")):
        where, identity = f"{path}, row {number}", f"{path.stem}/{number}"
        source = field(row, "data_source", str, where)
        chunks = _chunks(row, where, identity, report)
        questions = _questions(row, where, identity, source, report)
        if chunks and questions:
            cases.append(ConstructionCase(identity, source, chunks, questions))
        else:
            report.dropped.append(identity)
    return cases, report


def _chunks(row: dict[str, Any], where: str, identity: str, report: LoadReport) -> tuple[str, ...]:
    here = f"'chunks' in {where}"
    listed = [
        typed(chunk, str, f"chunk {place} in {where}")
        for place, chunk in enumerate(typed(decoded(row["chunks"], here), list, here))
    ]
    report.empty_chunks += [
        (identity, place) for place, chunk in enumerate(listed) if not chunk.strip()
    ]
    return tuple(chunk for chunk in listed if chunk.strip())


def _questions(
    row: dict[str, Any], where: str, identity: str, source: str, report: LoadReport
) -> tuple[Question, ...]:
    here = f"'questions_and_answers' in {where}"
    questions = []
    for place, pair in enumerate(typed(decoded(row["questions_and_answers"], here), list, here)):
        asked = f"{where}, question {place}"
        text = field(pair, "question", str, asked).strip()
        answers = answer_texts(pair, "answer", asked)
        if text and answers:
            questions.append(
                Question(
                    id=f"{identity}/q{place}",
                    text=text,
                    answer=answers[0],
                    category=source,
                    evidence=(),
                    accepted=answers[1:],
                )
            )
        else:
            report.unasked.append(f"{identity}/q{place}")
    return tuple(questions)
