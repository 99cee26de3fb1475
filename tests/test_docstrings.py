"""The files and modules that docstrings name are there, and so are the modules that docs name.

(The files that docs name: `test_docs_links.py`.)
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "memograd"
BESIDE = {"benchmarks", "corpus", "docs", "examples", "tests"}
TESTS = {path.name for path in (ROOT / "tests").rglob("*.py")}
OF_OTHERS = {"task_eval/evaluation.py", "evaluation/metrics/utils.py"}


@pytest.fixture(scope="module")
def docstrings() -> dict[Path, str]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        said = (ast.get_docstring(node) for node in nodes if isinstance(node, kinds))
        found[path] = "\n".join(text for text in said if text)
    return found


def pages() -> dict[Path, str]:
    """The log tells of what was."""
    paths = [*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")]
    return {path: path.read_text(encoding="utf-8") for path in paths if path.name != "log.md"}


def is_there(file: str, source: Path) -> bool:
    """A path counts from the root, from the package, or from a folder in which the source stands;
    a name alone is a file beside the source, or a test."""
    above = [folder for folder in source.parents if folder.is_relative_to(PACKAGE)]
    beside = [ROOT, *above] if "/" in file else [source.parent]
    return file in TESTS or any((folder / file).exists() for folder in beside)


def resolves(dotted: str) -> bool:
    """Whether `memograd.a.b` is a folder or a file, or a name in the code of one."""
    at = PACKAGE
    names = dotted.split(".")[1:]
    for place, name in enumerate(names):
        if (at / name).is_dir():
            at = at / name
        elif (at / f"{name}.py").is_file():
            at = at / f"{name}.py"
        else:  # a name, or a name and its attribute
            code = (at / "__init__.py" if at.is_dir() else at).read_text(encoding="utf-8")
            return place >= len(names) - 2 and re.search(rf"\b{name}\b", code) is not None
    return True


def modules(text: str) -> set[str]:
    """`memograd.grpo.trainer.Trainer` as it stands; `memory.search.context` from the package, where
    the first two words are a room and a module in it."""
    found = set()
    for named in re.findall(r"`(\w+(?:\.\w+)+)`", text):
        first, second, *rest = named.split(".")
        if first == "memograd":
            found.add(named)
        elif rest and ((PACKAGE / first / second).is_dir() or is_module(PACKAGE / first / second)):
            found.add(f"memograd.{named}")
    return found


def is_module(path: Path) -> bool:
    return path.with_name(f"{path.name}.py").is_file()


def test_files_in_docstrings_are_there(docstrings: dict[Path, str]) -> None:
    missing = []
    for source, text in docstrings.items():
        for file in set(re.findall(r"`([\w./-]+)`", text)) - OF_OTHERS:
            outside = "/" in file and file.split("/")[0] in BESIDE
            of_ours = outside or file.endswith((".py", ".toml"))
            if of_ours and not is_there(file, source):
                missing.append(f"{source.relative_to(ROOT)}: {file}")
    assert missing == []


def test_modules_in_docstrings_and_docs_are_there(docstrings: dict[Path, str]) -> None:
    missing = [
        f"{source.relative_to(ROOT)}: {name}"
        for source, text in (docstrings | pages()).items()
        for name in modules(text)
        if not resolves(name)
    ]
    assert missing == []
