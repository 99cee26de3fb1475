"""The docs as a site, in both languages: `make docs` writes `site/`, and `site/zh/` in Chinese.

zensical builds one language at a time. Each gets the README as its first page and all pages of
`docs/`; a page that stands in `docs/zh/` takes the place of the English one. What leads to a file
that is no page (code, settings) becomes plain text. Invariant: every page is in the navigation
once, and no link of the site leads nowhere (zensical's strict mode ends the build).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")

# Sections of the navigation: their name in both languages, and their pages.
SECTIONS = [
    (("The memory", "记忆"), ["memory", "retrieval", "relations", "memory-measures"]),
    (("Serving", "服务"), ["serve", "page", "mcp", "integrations"]),
    (
        ("Training", "训练"),
        [
            "tasks",
            "memory-policy",
            "memory-policy-in-use",
            "memory-policy-evaluation",
            "memory-construct",
            "text-task",
            "episodes",
            "sql-agent",
            "reward-model",
            "warm-start",
            "gateway",
            "optimize",
            "interop",
        ],
    ),
    (
        ("How it trains", "训练的方法"),
        ["algorithms", "runs", "distributed", "planning", "performance", "sampler"],
    ),
    (("Data", "数据"), ["data", "lifelog"]),
    (("Reference", "参考"), ["architecture", "results", "log"]),
]
LANGUAGES = {"en": "README.md", "zh": "README.zh-CN.md"}


def pages(language: str) -> dict[str, Path]:
    """The file behind each page of a language's site, by the name of the page."""
    found = {path.name: path for path in sorted((ROOT / "docs").glob("*.md"))}
    if language != "en":
        found |= {path.name: path for path in sorted((ROOT / "docs" / language).glob("*.md"))}
    return found | {"index.md": ROOT / LANGUAGES[language]}


def text_of(page: str, language: str) -> str:
    """A page with its links as the site has them."""
    path = pages(language)[page]
    known = {file.resolve(): name for name, file in pages(language).items()}
    english = {file.resolve(): name for name, file in pages("en").items()}

    def linked(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        place, _, part = target.partition("#")
        if re.match(r"[a-z]+:", target) or not place:
            return found.group()
        file = (path.parent / place).resolve()
        name = known.get(file)
        if name is None and (twin := english.get(file)) is not None:
            if twin in known.values() and file != ROOT / "README.md":  # a Chinese page's original
                return f"[{text}](../{twin.removesuffix('.md')}.html{f'#{part}' if part else ''})"
            name = twin
        if file.is_relative_to(ROOT / "docs" / "images"):
            name = f"images/{file.name}"
        if name == "index.md" and page == "index.md":  # the README in the other language
            return f"[{text}]({'../' if language == 'zh' else 'zh/'}index.html)"
        if name is None:
            return str(text)
        return f"{picture}[{text}]({name}{f'#{part}' if part else ''})"

    held: list[str] = []

    def hide(found: re.Match[str]) -> str:
        held.append(found.group())
        return f"\0{len(held) - 1}\0"

    text = re.sub(r"^```.*?^```", hide, path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = LINK.sub(linked, text)
    return re.sub("\0(\\d+)\0", lambda found: held[int(found.group(1))], text)


def settings(language: str) -> str:
    """The configuration of one language's build."""
    chinese = language == "zh"
    nav: list[dict[str, str | list[str]]] = [{"memograd": "index.md"}]
    nav += [{heading[chinese]: [f"{name}.md" for name in names]} for heading, names in SECTIONS]
    quoted = json.dumps(nav, ensure_ascii=False).replace('": ', '" = ')  # TOML's inline tables
    return f"""
[project]
site_name = "memograd"
site_description = "A memory for language-model agents that is trained"
docs_dir = "docs"
site_dir = "site"
use_directory_urls = false
nav = {quoted}

[project.theme]
language = "{language}"
font = false
features = ["navigation.sections", "content.code.copy", "search.highlight"]

[[project.extra.alternate]]
name = "English"
link = "{"./" if not chinese else "../"}index.html"
lang = "en"

[[project.extra.alternate]]
name = "中文"
link = "{"zh/" if not chinese else "./"}index.html"
lang = "zh"
"""


def stage(language: str, folder: Path) -> None:
    """Write what zensical builds one language from."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    for page in pages(language):
        (docs / page).write_text(text_of(page, language), encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "images", docs / "images")
    (folder / "zensical.toml").write_text(settings(language), encoding="utf-8")


def build(out: Path) -> None:
    """Build the site of both languages into `out`, which is replaced once both are built."""
    with tempfile.TemporaryDirectory() as work:
        for language in LANGUAGES:
            folder = Path(work) / language
            stage(language, folder)
            command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"The site in {language} was not built:\n{done.stdout}{done.stderr}")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(Path(work) / "en" / "site", out)
        shutil.copytree(Path(work) / "zh" / "site", out / "zh")
        (out / "zh" / "404.html").unlink()  # a server shows the one at the root


if __name__ == "__main__":
    build(ROOT / "site")
    print(f"{ROOT / 'site' / 'index.html'}")
