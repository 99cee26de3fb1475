"""Raw files of preferences into one format, with everything that is wrong with them listed.

    {"prompt": [messages] or text, "chosen": [one message] or text, "rejected": the same}

is what is written, one object a line: what `memograd dpo`, `memograd reward-model` and TRL read.

Invariant: reading what was written gives the pairs that were used, and every line of the input is
in the report.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from memograd.errors import BadInput
from memograd.warm_start.preference_rows import PreferenceRow
from memograd.warm_start.reward_model_rows import read_pairs, split_pairs, without_leaks

SHOWN = 10
"""Line numbers that are shown for a reason; the JSON report has all."""


@dataclass(frozen=True)
class Conversion:
    """What became of the rows of `source`: how many went where, and which lines went nowhere."""

    source: str
    rows: int
    written: dict[str, int]
    left_out: dict[str, list[str]]

    def as_json(self) -> str:
        """The whole report."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    def lines(self) -> list[str]:
        """The report for a person."""
        shown = [f"{self.rows} rows read from {self.source}"]
        shown += [f"{count} pairs written to {path}" for path, count in self.written.items()]
        for reason, places in self.left_out.items():
            more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
            kind = "lines" if len(places) > 1 else "line"
            shown.append(
                f"{len(places)} left out: {reason} ({kind} {', '.join(places[:SHOWN])}{more})"
            )
        return shown


def convert(
    data: Path,
    out: Path,
    *,
    held_out: Path | None = None,
    fraction: float = 0.1,
    apart_from: Path | None = None,
    string_prompts: str = "chat",
) -> Conversion:
    """Write the pairs of `data` into `out`, and `fraction` of the conversations into `held_out`.

    `apart_from` is a file of pairs to measure on: pairs that share a conversation with it are left
    out. `string_prompts`: whether a prompt that is a text is a user's message, or stays a text.

    Raises BadInput for files that cannot be read or must not be written, or rows that are no pairs.
    """
    files = [path.resolve() for path in (data, out, held_out, apart_from) if path is not None]
    if len(set(files)) < len(files):
        raise BadInput("The files that are read and written must all be different ones.")
    rows = read_pairs(data, string_prompts)
    total = rows.total
    if apart_from is not None:
        rows = without_leaks(rows, read_pairs(apart_from, string_prompts))
    parts = {out: rows.used}
    if held_out is not None:
        split = split_pairs(rows, fraction)
        parts = {out: split.train.used, held_out: split.held_out.used}
    for path, pairs in parts.items():
        _write(path, pairs)
    counts = {str(path): len(pairs) for path, pairs in parts.items()}
    return Conversion(str(data), total, counts, rows.left_out)


def _write(path: Path, rows: Sequence[PreferenceRow]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(_record(row), ensure_ascii=False) + "\n")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}); choose another.") from error


def _record(row: PreferenceRow) -> dict[str, object]:
    if isinstance(row.prompt, str):
        return {"prompt": row.prompt, "chosen": row.chosen, "rejected": row.rejected}
    return {
        "prompt": list(row.prompt),
        "chosen": [{"role": "assistant", "content": row.chosen}],
        "rejected": [{"role": "assistant", "content": row.rejected}],
    }
