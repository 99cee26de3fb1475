"""Draws `docs/images/page.png`: the memory browser with a search, as README shows it.

    python benchmarks/page_picture.py [--out docs/images/page.png]

Needs the extra `serve`, the package playwright and a `chromium` on the path. The memory is made
here, of the sentences below, by the readers and deciders that every memory has.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from memograd.memory import Memory
from memograd.serve.app import create_app
from memograd.serve.keys import Right
from memograd.serve.session import login_path
from memograd.web.running import running

SAID = (
    ("2024-02-11T09:00:00", "I live in Boston. I work as a nurse at the children's hospital."),
    ("2024-02-11T09:01:00", "My dog is called Rex and he is afraid of thunder."),
    ("2024-02-12T19:30:00", "I am allergic to peanuts."),
    ("2024-03-02T19:30:00", "I love jazz, and I play the saxophone on Sundays."),
    ("2024-03-04T08:10:00", "My sister Clara is getting married in Lisbon in June."),
    ("2024-06-20T18:10:00", "I switched jobs: I am a school nurse in Denver now."),
)
QUESTION = "Where does she work now?"


def main() -> None:
    """Make the memory, serve it, take the picture."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images/page.png"))
    out: Path = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "m") as memory:
        for moment, text in SAID:
            memory.add(text, user_id="alice", timestamp=moment)
        app = create_app(memory)
        rights = [Right.admin]
        token = app.state.served.keys.login_token(name="picture", owner=None, rights=rights)
        with running(app) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--no-proxy-server"]
            )
            page = browser.new_page(viewport={"width": 1180, "height": 760}, locale="en-US")
            page.goto(address + login_path(token))
            page.goto(f"{address}/page/memory?owner=user:alice&q={QUESTION}")
            page.wait_for_selector(".why")
            page.screenshot(path=out)
            browser.close()
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
