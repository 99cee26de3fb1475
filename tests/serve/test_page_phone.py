"""The page on a phone: nothing is wider than the screen, and a finger finds everything.

Invariants, on every page, in both languages, over texts that have no place to break: the page
never scrolls sideways (a table scrolls inside its own frame, and its buttons stay in sight), no
text is cut off or smaller than 12 pixels, and every target is 24 by 24 CSS pixels or more (WCAG
2.2, 2.5.8), but for links within a sentence, which the rule leaves to the line.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asked import Serving, serve
from browsing import entered
from run_folders import example_runs

from memograd.gateway.records import CallRecord, Choice
from memograd.gateway.store import TraceStore
from memograd.memory import Memory
from memograd.memory.manager.trained.files import PolicyVersions
from memograd.web.running import running

WORD = "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft"
URL = f"https://example.org/a/path/without/any/break?{'and_one_more_parameter=1&' * 4}#end"
CHINESE = "我住在波士顿一条没有名字的小街上每天早上七点起床先喝一杯绿茶再沿着河边跑步五公里" * 2
USER = f"小红-{WORD}"
RUN = "memory-construct-smollm2-135m-instruct-longmemeval-seed-12-of-three"

MEASURE = r"""() => {
  const wide = document.documentElement.clientWidth;
  const box = (one) => one.getBoundingClientRect();
  const style = (one) => getComputedStyle(one);
  const told = (one) => {
    const {width, height, right} = box(one);
    return `${Math.round(width)}x${Math.round(height)} to ${Math.round(right)}: `
      + one.outerHTML.slice(0, 160);
  };
  const says = (one, what) => [...one.childNodes].some(
    (node) => node.nodeType === Node.TEXT_NODE && what.test(node.data));
  const sentence = (link) => style(link).display === 'inline' && says(link.parentElement, /\p{L}/u);
  const all = [...document.body.querySelectorAll('*')].filter((one) => one.checkVisibility()
    && one.getClientRects().length && !one.closest('.skip, .hidden, svg'));
  const targets = all
    .filter((one) => one.matches('button, input, select, textarea, summary, a[href]')
      && !(one.matches('a') && sentence(one)))
    .map((one) => one.matches('[type=checkbox], [type=radio]') && one.closest('label') || one);
  return {
    wider: document.documentElement.scrollWidth - wide,
    outside: all.filter((one) => !one.closest('.wide, pre, .uplot')
      && (box(one).right > wide + 1 || box(one).left < -1)).map(told),
    cut: all.filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth
      && style(one).overflowX !== 'visible' && !one.matches('.wide, pre, input, select')).map(told),
    swiped: all.filter((one) => one.matches('.wide button') && (box(one).right > wide + 1
      || !one.contains(document.elementFromPoint(box(one).x + 9, box(one).y + 9))
        && box(one).y > 0 && box(one).bottom < innerHeight)).map(told),
    small: all.filter((one) => says(one, /\S/) && parseFloat(style(one).fontSize) < 12).map(told),
    tight: targets.filter((one) => box(one).width < 24 || box(one).height < 24).map(told),
    targets: targets.length,
  };
}"""


def fill(memory: Memory) -> None:
    """A few hundred items of one user, most of them with nothing that a line could break at."""
    for number in range(70):
        for text in (
            f"I bookmarked {URL}{number} in spring.",
            f"I work at {WORD}{number}.",
            f"{CHINESE}第{number}次。",
            f"I like jazz number {number}.",
        ):
            memory.add(text, user_id=USER, infer=False, metadata={"page": URL, WORD: number})
    memory.add("I like tea.", agent_id=WORD, infer=False)
    [*_, item] = memory.get_all(user_id=USER)["results"]
    memory.update(item["id"], f"I bookmarked nothing but {WORD}.")


def long_run(runs: Path) -> Path:
    """A run beside the others whose names, prompts, tokens and answers are long."""
    run = Path(shutil.copytree(runs / "good", runs / RUN))
    first = (run / "rollouts/step-0001.jsonl").read_text()
    groups = [json.loads(line) for line in first.splitlines()]
    groups[0] |= {"id": WORD, "columns": {"question": CHINESE, "answer": URL}}
    groups[0]["prompt"] = [{"role": "user", "content": f"{URL} {CHINESE} {WORD}"}]
    groups[0]["rollouts"][0]["rows"][0]["texts"] = [WORD, URL, CHINESE, "波"]
    groups[0]["rollouts"][0]["rewards"] = {WORD: 1.0, "judge": None}
    for step in range(1, 41):
        lines = [json.dumps({**group, "step": step}) + "\n" for group in groups]
        (run / f"rollouts/step-{step:04d}.jsonl").write_text("".join(lines))
    said = {f"memory, untrained, {WORD}": URL, "oracle": CHINESE, "memory, trained": WORD}
    answer = {"id": "1", "question": f"{CHINESE} {URL}", "gold": WORD, "answers": said}
    (run / "answers.jsonl").write_text(json.dumps(answer) + "\n")
    config = {"steps": 3, "model": WORD, "data": URL, "embedder": "e5"}
    (run / "config.json").write_text(json.dumps(config))
    report = f"# {WORD}\n\nin points, {URL}\n\n| method | F1 | tokens |\n| --- | ---: | ---: |\n"
    (run / "evaluation.md").write_text(report + f"| {WORD} | 21.5 | 1000 |\n")
    return run


@pytest.fixture(scope="module")
def phoned(
    tmp_path_factory: pytest.TempPathFactory, trigrams: Any, make_head: Any
) -> Iterator[tuple[Serving, str, list[str]]]:
    """A memory that a run left, with long texts everywhere: served, its address, its pages."""
    folder = tmp_path_factory.mktemp("phone")
    runs = example_runs(folder)
    run = long_run(runs)
    policies = PolicyVersions(folder / f"policies-{WORD}")
    for number in (1, 2):
        policies.adopt(policies.save(make_head(add=float(number))))
    traces = f"sqlite:///{folder}/traces.db"
    with closing(TraceStore(traces)) as store:
        rollout = store.create(metadata={"task": URL}).record.id
        store.begin_call(rollout)
        said = ({"role": "user", "content": f"{CHINESE} {URL}"},)
        store.record(CallRecord(rollout, 0, WORD, WORD, 1, said, (Choice(URL, "stop"),)))
        store.reward(rollout, 1.0)
    opening = {"embedder": trigrams(), "ranking": "fusion", "policy": policies.folder}
    with Memory.open(run / "memory", **opening) as memory:
        fill(memory)
        serving = serve(memory, runs=runs, traces=traces)
        serving.served.keys.create(WORD, owner=f"user:{USER}", rights=["read", "write"])
        serving.served.keys.create("laptop", owner=None, rights=["admin"])
        items = memory.get_all(user_id=USER)["results"]
        pages = [
            *("/memory", "/memory?find=nobody"),
            *(f"/memory?owner=user:{USER}{rest}" for rest in ("", "&q=绿茶", "&at=9", "&after=30")),
            *(f"/memory/item/{item['id']}" for item in (items[-1], items[0], items[1], items[2])),
            *("/memory/item/unknown", "/chat", f"/chat?user={USER}"),
            *("/runs", f"/runs?run=good&run={RUN}"),
            *(f"/runs/{RUN}{rest}" for rest in ("", "/steps/1", "/answers", "/steps/99")),
            *("/versions", "/traces", "/traces?state=failed", f"/traces/{rollout}"),
            *("/keys", "/api"),
        ]
        with running(serving.app) as address:
            yield serving, address, pages
        serving.served.close()


def wrong(page: Any, where: str) -> dict[str, Any]:
    """What does not fit, by its sort, with everything that is folded standing open."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    measured = page.evaluate(MEASURE)
    assert measured.pop("targets") > 5, where
    return {sort: found for sort, found in measured.items() if found}


def walk(page: Any, address: str, pages: list[str], language: str) -> dict[str, Any]:
    """What does not fit: on the pages, with each of their dialogs open, and after using them."""
    found = {}
    for path in pages:
        page.goto(f"{address}/page{path}{'&' if '?' in path else '?'}lang={language}")
        assert page.get_attribute("html", "lang") == {"en": "en", "zh": "zh-CN"}[language]
        if "run=" in path:
            page.wait_for_selector(".uplot")
        found[path] = wrong(page, path)
        for opener in page.query_selector_all("[data-opens]"):
            opener.tap()
            found[f"{path} {opener.inner_text()}"] = wrong(page, path)
            page.evaluate("document.querySelector('dialog[open]').close()")
    page.goto(f"{address}/page/chat?user={USER}")
    page.fill("#text", f"I moved to Boston, and I read {URL} and {WORD}.")
    page.tap("#say button")
    page.wait_for_selector("#written .op")
    found["said"] = wrong(page, "said")
    page.tap(".top nav li:last-child a")
    page.fill("[name=name]", WORD)
    page.tap(".key-form button")
    page.wait_for_selector(".made")
    found["made"] = wrong(page, "made")
    return {where: one for where, one in found.items() if one}


@pytest.mark.parametrize(
    ("width", "height", "language"),
    [
        (360, 740, "en"),
        *(
            pytest.param(*phone, marks=pytest.mark.slow)
            for phone in ((360, 740, "zh"), (390, 844, "en"), (390, 844, "zh"))
        ),
    ],
)
def test_everything_fits_a_phone(
    chromium: Any, phoned: tuple[Serving, str, list[str]], width: int, height: int, language: str
) -> None:
    serving, address, pages = phoned
    phone = {"viewport": {"width": width, "height": height}, "has_touch": True, "is_mobile": True}
    page = entered(chromium, serving, address, **phone)
    found = walk(page, address, pages, language)
    page.close()
    assert not found, json.dumps(found, indent=1, ensure_ascii=False)
