"""Relative links of README and docs lead to files that are there, and so do the paths they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_resolve(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
    targets = re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", text)
    missing = [
        target
        for target in targets
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists()
    ]
    assert missing == []


FOLDERS = [ROOT, ROOT / "src" / "memograd", ROOT / "examples"]
ROOMS = {path.name for folder in FOLDERS for path in folder.iterdir() if path.is_dir()}
MODULES = {
    path.name
    for folder in ("src", "tests", "benchmarks", "examples", "docs", "corpus")
    for path in (ROOT / folder).rglob("*.py")
}
OF_USERS = {"my_task", "my_env.py", "my_agent.py", "my_rewards.py", "FILE.py", "NAME"}


# The log and the changes tell of what was.
@pytest.mark.parametrize(
    "page",
    [*(page for page in PAGES if page.name != "log.md"), ROOT / "CONTRIBUTING.md"],
    ids=name,
)
def test_paths_in_code_are_there(page: Path) -> None:
    """`memory/state/`, `grpo/trainer` and `test_bandit.py`: from the root, from the package, or by
    name; a beginning will do."""
    missing = []
    for named in re.findall(r"`([\w./-]+)`", page.read_text(encoding="utf-8")):
        first, *others = named.split("/")
        if {first, *others} & OF_USERS:
            continue
        if "/" not in named and named.endswith(".py"):
            there = named in MODULES
        elif "/" in named and first in ROOMS:
            there = any(any(folder.glob(f"{named.rstrip('/')}*")) for folder in FOLDERS)
        else:
            continue
        if not there:
            missing.append(named)
    assert missing == []
