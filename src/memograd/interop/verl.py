"""Our rows as verl's, and our rewards as its reward function.

    data_source, prompt (messages), ability,
    reward_model {style: "rule", ground_truth}, extra_info {index, split, rewards, prompt, columns}

`ground_truth` is the row's column `answer`, empty if it has none; `extra_info.columns` holds all of
its columns as JSON text, because Parquet wants one type a column. `compute_score` reads them:

    custom_reward_function.path=.../memograd/interop/verl.py
    custom_reward_function.name=compute_score

Invariant: `compute_score` of a row is the total that our own trainer would compute.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from memograd.data.record_files import as_lines, check_new, write_new
from memograd.errors import BadInput
from memograd.interop.scoring import rewards_of, score
from memograd.tasks.text.rows import TextRow

SOURCE: Final = "memograd"


def verl_rows(
    rows: Sequence[TextRow], rewards: str, *, split: str = "train"
) -> list[dict[str, Any]]:
    """The rows as verl's; `rewards` is the specification that `compute_score` computes.

    Raises:
        BadInput: the specification cannot be read.
    """
    rewards_of(rewards)
    return [_row(row, number, rewards, split) for number, row in enumerate(rows)]


def write_verl(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write verl's rows into the new file `path`: `.parquet`, or `.jsonl`.

    Raises:
        BadInput: the file is there, has another ending, cannot be written, or Parquet needs
            pyarrow.
    """
    if path.suffix not in (".parquet", ".jsonl"):
        raise BadInput(f"{path} must end in .parquet or .jsonl.")
    check_new(path)
    if path.suffix == ".jsonl":
        write_new(path, as_lines(rows))
        return
    try:
        import pyarrow
        from pyarrow import parquet

        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows]), path)
    except ModuleNotFoundError:
        raise BadInput("Parquet needs pyarrow; run pip install 'memograd[parquet]'.") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error}).") from error


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any]
) -> float:
    """The weighted total of the row's rewards for one solution, as verl asks for it.

    Raises:
        RewardError: a reward cannot be computed.
    """
    prompt = json.loads(extra_info["prompt"])
    columns = json.loads(extra_info["columns"])
    return score(str(extra_info["rewards"]), prompt, solution_str, columns)


def _row(row: TextRow, number: int, rewards: str, split: str) -> dict[str, Any]:
    prompt = [{"role": "user", "content": row.prompt}]
    if not isinstance(row.prompt, str):
        prompt = [{"role": one["role"], "content": one["content"]} for one in row.prompt]
    answer = row.columns.get("answer")
    truth = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return {
        "data_source": SOURCE,
        "prompt": prompt,
        "ability": SOURCE,
        "reward_model": {"style": "rule", "ground_truth": "" if answer is None else truth},
        "extra_info": {
            "index": number,
            "split": split,
            "rewards": rewards,
            "prompt": json.dumps(row.prompt, ensure_ascii=False),
            "columns": json.dumps(row.columns, ensure_ascii=False),
        },
    }
