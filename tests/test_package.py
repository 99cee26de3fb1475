"""The frame of the house: what an import costs, who may import whom, what the lock file pins."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import memograd

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "memograd"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Ground floor first: a room may import itself and the rooms before it. `data` only knows turns.
FLOORS = (
    *(
        "errors",
        "web",
        "planning",
        "config",
        "memory",
        "rollout",
        "data",
        "policy",
        "rewards",
    ),
    *("grpo", "evaluation", "reward_model", "gateway", "assistant"),
    *("tasks", "warm_start", "optimize", "interop", "serve", "integrations", "cli", "__main__"),
)
HEAVY = {
    *("torch", "transformers", "peft", "trl", "datasets", "sentence_transformers"),
    *("pymilvus", "milvus_lite", "matplotlib", "nltk", "pandas", "scipy"),
    *("fastapi", "uvicorn", "sqlglot", "pyarrow", "dspy", "optuna"),
}


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


@pytest.fixture(scope="module")
def imports(trees: dict[Path, ast.Module]) -> dict[Path, list[str]]:
    """Full names of what each source file imports anywhere, `from a import b` as "a.b"."""
    return {path: list(imported(path, tree)) for path, tree in trees.items()}


def imported(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(line) for group in groups for line in group]
    return [requirement for requirement in found if requirement.name != "memograd"]


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines)


# Imports


@pytest.mark.parametrize(
    "modules",
    ["memograd", "memograd.cli", "memograd.config, memograd.memory, memograd.data"],
)
def test_importing_loads_nothing_heavy(modules: str) -> None:
    script = f"import sys, {modules}; print(*(set(sys.modules) & {HEAVY}))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout.strip()) == (0, ""), shown.stderr


def test_serving_loads_no_training() -> None:
    training = HEAVY - {"fastapi", "uvicorn", "pymilvus"}
    script = f"import sys, memograd.serve.app; print(*(set(sys.modules) & {training}))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout.strip()) == (0, ""), shown.stderr


def test_a_room_imports_only_rooms_below_it(imports: dict[Path, list[str]]) -> None:
    upwards = []
    for path, names in imports.items():
        room = room_of(path)
        if room == "__init__":
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "memograd" and rest in vars(memograd) and rest not in FLOORS:
                continue  # a name of the package itself, such as its version
            if first == "memograd" and rest:
                other = rest.partition(".")[0]
                if FLOORS.index(other) > FLOORS.index(room):
                    upwards.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not upwards


def test_every_import_is_a_declared_dependency(imports: dict[Path, list[str]]) -> None:
    declared = {canonicalize_name(requirement.name) for requirement in requirements()}
    providers = packages_distributions()
    for path, names in imports.items():
        for name in {name.partition(".")[0] for name in names}:
            if name not in sys.stdlib_module_names and name != "memograd":
                found = {canonicalize_name(provider) for provider in providers.get(name, [name])}
                assert found & declared, f"{path} imports {name}, which pyproject.toml leaves out"


def test_every_module_says_what_it_is_for(trees: dict[Path, ast.Module]) -> None:
    silent = [str(path) for path, tree in trees.items() if not ast.get_docstring(tree)]
    assert not silent


def test_types_are_published() -> None:
    assert (PACKAGE / "py.typed").is_file()


# The lock file


def test_lock_pins_versions_and_nothing_else() -> None:
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


def test_lock_leaves_the_build_of_torch_to_the_machine() -> None:
    assert re.fullmatch(r"[0-9.]+", locked()["torch"])
    assert not [name for name in locked() if re.match("nvidia|cuda|triton", name)]


def test_lock_satisfies_every_requirement() -> None:
    versions = locked()
    for requirement in requirements():
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier, requirement
