"""Benchmarks and examples name only what the package has: their commands stand in the docs."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted([*ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("examples/**/*.py")])


def named(script: Path) -> Iterator[tuple[str, str]]:
    """Module and name of every `from memograd... import ...` anywhere in the file."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "memograd":
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_that_a_script_imports_exists(script: Path) -> None:
    for module, name in named(script):
        found = importlib.import_module(module)
        if not hasattr(found, name):
            importlib.import_module(f"{module}.{name}")
