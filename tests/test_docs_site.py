"""The site of the docs: every page once in the navigation, in both languages, and no dead link."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHINESE = {
    *("memory", "serve", "page", "mcp", "integrations", "retrieval", "relations"),
    *("data", "tasks", "runs", "gateway", "episodes", "sql-agent", "results"),
}
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = spec_from_file_location("build_site", ROOT / "docs" / "build_site.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_stands_in_the_navigation_once(site: ModuleType) -> None:
    listed = [name for _, names in site.SECTIONS for name in names]
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


def test_both_languages_have_the_same_pages(site: ModuleType) -> None:
    assert site.pages("en").keys() == site.pages("zh").keys()
    translated = {path.stem for path in (ROOT / "docs" / "zh").glob("*.md")}
    assert translated >= CHINESE
    for name in translated:
        assert site.pages("zh")[f"{name}.md"] == ROOT / "docs" / "zh" / f"{name}.md"
        titles = re.findall(r"^# .*", site.text_of(f"{name}.md", "zh"), flags=re.MULTILINE)
        assert titles


@pytest.mark.parametrize("page", sorted(CHINESE))
def test_a_chinese_page_says_no_figure_that_the_english_one_does_not(page: str) -> None:
    english, chinese = (
        (ROOT / "docs" / folder / f"{page}.md").read_text("utf-8") for folder in ("", "zh")
    )
    in_words = re.sub(r"^```.*?^```", "", chinese, flags=re.DOTALL | re.MULTILINE)
    more = set(NUMBER.findall(in_words)) - set(NUMBER.findall(english))
    assert not more, sorted(more)


@pytest.mark.parametrize("page", sorted(CHINESE))
def test_a_chinese_page_leads_to_chinese_pages(page: str) -> None:
    text = (ROOT / "docs" / "zh" / f"{page}.md").read_text("utf-8")
    for other in re.findall(r"\]\(\.\./([\w-]+)\.md", text):
        assert other == page or other not in CHINESE, f"{page} leads to the English {other}"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_links_lead_to_pages_of_the_site(site: ModuleType, language: str) -> None:
    pages = site.pages(language)
    count = 0
    for page in pages:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", site.text_of(page, language), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            if target.endswith(".html"):  # the same page in the other language
                assert re.fullmatch(r"(\.\./|zh/)[\w-]+\.html", target), (page, target)
            elif target.startswith("images/"):
                assert (ROOT / "docs" / target).is_file(), (page, target)
            else:
                assert target in pages, (page, target)
    assert count > 100


@pytest.mark.slow
def test_the_snippets_of_the_chinese_guide_run(bare_environment: Path) -> None:
    text = (ROOT / "docs" / "zh" / "memory.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    script = bare_environment / "guide.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    command = [sys.executable, "-X", "utf8", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    for said in ("上海", "北京", "花生"):
        assert said in done.stdout, said


@pytest.mark.slow
def test_the_built_site_has_no_dead_link(site: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="needs the extra docs")
    out = tmp_path / "site"
    site.build(out)
    ids: dict[Path, set[str]] = {}
    dead = []
    built = [page for page in out.rglob("*.html") if page.name != "404.html"]
    assert len(built) == 2 * len(site.pages("en"))
    for page in built:
        for target in re.findall(r'<a [^>]*href="([^"]+)"', page.read_text("utf-8")):
            if re.match(r"[a-z]+:|//", target):
                continue
            place, _, part = target.partition("#")
            file = (page.parent / place).resolve() if place else page
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file():
                dead.append((page.name, target))
            elif part and file.suffix == ".html":
                if file not in ids:
                    ids[file] = set(re.findall(r'\bid="?([^"\s>]+)', file.read_text("utf-8")))
                if unquote(part) not in ids[file] and part not in ids[file]:
                    dead.append((page.name, target))
    assert dead == []
