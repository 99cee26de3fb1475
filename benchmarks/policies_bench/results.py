"""The file of finished results, what is in it already, and its summary over seeds."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memograd.tasks.memory_ops.settings import OperationsConfig

KS = (5, 10)
STUDENT_T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306}
Row = dict[str, Any]


class Results:
    """The file of finished results, one JSON line each; `settings` names what made them."""

    def __init__(self, path: Path, config: OperationsConfig) -> None:
        self._path = path
        same = config.model_copy(update={"seed": 0, "out": None}).model_dump_json()
        self._settings = hashlib.sha256(same.encode()).hexdigest()[:8]
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        rows = [json.loads(line) for line in lines]
        self.rows: list[Row] = [row for row in rows if row["settings"] == self._settings]

    def once(self, what: str, seed: int, make: Callable[[], Row]) -> None:
        """Make the result, unless it is there, and write it down."""
        if any((row["what"], row["seed"]) == (what, seed) for row in self.rows):
            return
        began = time.perf_counter()
        row = {"bench": "memory_policies", "what": what, "seed": seed, "settings": self._settings}
        row |= make()
        row["seconds"] = round(time.perf_counter() - began, 1)
        self.rows.append(row)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        shown = {key: value for key, value in row.items() if key not in ("curve", "asked")}
        print(json.dumps(shown, ensure_ascii=False), flush=True)


def summarise(results: Results) -> None:
    """One line for each method and budget: mean over seeds with its interval."""
    for what in dict.fromkeys(row["what"] for row in results.rows):
        rows = [row for row in results.rows if row["what"] == what]
        groups = [key for key, value in rows[0].items() if isinstance(value, dict)]
        for group in groups:
            names = [k for k, v in rows[0][group].items() if isinstance(v, int | float)]
            found = {name: over_seeds([row[group][name] for row in rows]) for name in names}
            if found:
                line = {"bench": "memory_policies", "summary": what, "of": group}
                print(json.dumps({**line, "seeds": len(rows), **found}, ensure_ascii=False))


def over_seeds(values: Sequence[float]) -> list[float]:
    """Mean, and the 95% interval of Student's t where there are several seeds."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return [round(mean, 4)]
    half = STUDENT_T.get(n, 2.262) * float(np.std(values, ddof=1)) / n**0.5
    return [round(mean, 4), round(mean - half, 4), round(mean + half, 4)]


def mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
