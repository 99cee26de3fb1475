"""Pairs for reward models: raw files into one format, and pairs to train on apart from those to
measure on.

    {"prompt": [messages] or text, "chosen": [one message] or text, "rejected": the same}

is what `convert` writes, one object a line, and what `memograd dpo`, `memograd reward-model` and
TRL read.

The unit of the split is the conversation: the first thing the user said (of a text prompt, all of
it), without differences of case and spaces. So a prompt, and a chat that goes on from it, are on
one side together. What is left out is counted and listed by line: what `read_preference_rows`
leaves out (repeated, equal, empty), pairs that say the opposite of an earlier one, and training
pairs whose conversation is held out.

Invariants: no conversation is on both sides, and which side it is on depends on its words alone;
reading what `convert` wrote gives the pairs that were used, and every line of the input is in the
report.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

from memograd.data.record_files import as_lines, check_new, write_new
from memograd.errors import BadInput
from memograd.warm_start.rows import PreferenceRow, Rows, read_preference_rows

OPPOSITE = "the opposite of an earlier row"

LEAKING = "its conversation is held out"

LEARNT = "its conversation was trained on"

TRAINED_FILE = "trained_on.json"


@dataclass(frozen=True)
class Split:
    """Pairs to train on, and pairs to measure on."""

    train: Rows[PreferenceRow]
    held_out: Rows[PreferenceRow]


def read_pairs(path: Path, string_prompts: str) -> Rows[PreferenceRow]:
    """The pairs in `path`; see `read_preference_rows`, and pairs that contradict an earlier one."""
    rows = read_preference_rows(path, string_prompts)
    said: set[str] = set()
    kept = []
    for row in rows.used:
        if _key(row, row.rejected, row.chosen) in said:
            rows.leave_out(row.place, OPPOSITE)
            continue
        said.add(_key(row, row.chosen, row.rejected))
        kept.append(row)
    rows.used[:] = kept
    return rows


def split_pairs(rows: Rows[PreferenceRow], fraction: float) -> Split:
    """Hold out `fraction` of the conversations, at least one: those with the smallest hashes.

    Raises BadInput if nothing would be left to train on.
    """
    names = [conversation(row) for row in rows.used]
    different = sorted(set(names), key=lambda name: hashlib.sha256(name.encode()).digest())
    chosen = set(different[: max(1, round(fraction * len(different)))])
    if len(chosen) == len(different):
        raise BadInput(
            f"{rows.source} has {len(different)} different conversations, and holding out "
            f"{fraction} of them leaves none to train on; give more, or name another file."
        )
    train: Rows[PreferenceRow] = Rows(rows.source, left_out=rows.left_out)
    held_out: Rows[PreferenceRow] = Rows(rows.source)
    for row, name in zip(rows.used, names, strict=True):
        (held_out if name in chosen else train).used.append(row)
    return Split(train, held_out)


def without_leaks(rows: Rows[PreferenceRow], held_out: Rows[PreferenceRow]) -> Rows[PreferenceRow]:
    """`rows` without the pairs whose conversation is in `held_out`; they are listed.

    Raises BadInput if none is left.
    """
    taken = {conversation(row) for row in held_out.used}
    kept = []
    for row in rows.used:
        if conversation(row) in taken:
            rows.leave_out(row.place, LEAKING)
        else:
            kept.append(row)
    if not kept:
        raise BadInput(f"Every conversation of {rows.source} is in {held_out.source} too.")
    rows.used[:] = kept
    return rows


def read_split(data: Path, eval_data: Path | None, fraction: float, string_prompts: str) -> Split:
    """The pairs of `data` to train on, and to measure on those of `eval_data`, or a part."""
    rows = read_pairs(data, string_prompts)
    if eval_data is None:
        return split_pairs(rows, fraction)
    held_out = read_pairs(eval_data, string_prompts)
    return Split(without_leaks(rows, held_out), held_out)


def note_trained(rows: Rows[PreferenceRow], run: Path, begun_with: Path | None = None) -> None:
    """Write down in the run folder which conversations were trained on, as hashes: those of `rows`,
    and those of the checkpoint that training began with."""
    names = {_hash(row) for row in rows.used}
    if begun_with is not None:
        names |= learnt_by(begun_with)
    write_learnt(names, run)


def write_learnt(names: Collection[str], folder: Path) -> None:
    """Write hashes of conversations into `folder`, where `learnt_by` finds them."""
    (folder / TRAINED_FILE).write_text(json.dumps(sorted(names)), encoding="utf-8")


def learnt_by(model: Path) -> set[str]:
    """Hashes of the conversations that a model was trained on: a run, a checkpoint in one, or what
    was merged of it; empty where nobody wrote them down. Raises BadInput for a damaged file."""
    in_run = (model.parent / "run.json").is_file()
    path = (model.parent if in_run else model) / TRAINED_FILE
    if not path.is_file():
        return set()
    try:
        return set(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"{path} is damaged ({error}): put it back as it was, or what was trained on would be "
            "measured on."
        ) from error


def without_trained(rows: Rows[PreferenceRow], model: Path) -> Rows[PreferenceRow]:
    """`rows` without the pairs that `model` was trained on (`learnt_by`); they are listed.

    Raises BadInput if no pair is left.
    """
    learnt = learnt_by(model)
    for row in rows.used.copy():
        if _hash(row) in learnt:
            rows.used.remove(row)
            rows.leave_out(row.place, LEARNT)
    if not rows.used:
        raise BadInput(
            f"{model} was trained on every conversation of {rows.source}; measure it on others."
        )
    return rows


def _hash(row: PreferenceRow) -> str:
    return hashlib.sha256(conversation(row).encode()).hexdigest()


def conversation(row: PreferenceRow) -> str:
    """What a pair's conversation begins with, as far as the split can tell."""
    if isinstance(row.prompt, str):
        text = row.prompt
    else:
        said = [message["content"] for message in row.prompt if message["role"] == "user"]
        text = said[0] if said else row.prompt[0]["content"]
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _key(row: PreferenceRow, better: str, worse: str) -> str:
    return json.dumps([row.prompt, better, worse], sort_keys=True)


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
    for path in filter(None, (out, held_out)):
        check_new(path)
    rows = read_pairs(data, string_prompts)
    total = rows.total
    if apart_from is not None:
        rows = without_leaks(rows, read_pairs(apart_from, string_prompts))
    parts = {out: rows.used}
    if held_out is not None:
        split = split_pairs(rows, fraction)
        parts = {out: split.train.used, held_out: split.held_out.used}
    for path, pairs in parts.items():
        write_new(path, as_lines(map(_record, pairs)))
    counts = {str(path): len(pairs) for path, pairs in parts.items()}
    return Conversion(str(data), total, counts, rows.left_out)


def _record(row: PreferenceRow) -> dict[str, object]:
    if isinstance(row.prompt, str):
        return {"prompt": row.prompt, "chosen": row.chosen, "rejected": row.rejected}
    return {
        "prompt": list(row.prompt),
        "chosen": [{"role": "assistant", "content": row.chosen}],
        "rejected": [{"role": "assistant", "content": row.rejected}],
    }
