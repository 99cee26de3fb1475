"""The page in a real Chromium: what only a browser can tell.

Needs `chromium` (apt-get install chromium fonts-noto-cjk) and the package playwright; axe-core is
fetched by npm in the test that is marked slow. Playwright's own browsers are not used.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asked import Serving
from browsing import entered
from run_folders import example_runs

from memograd.gateway.records import CallRecord, Choice
from memograd.gateway.store import TraceStore
from memograd.memory.manager.trained.files import PolicyVersions
from memograd.serve.keys import Right
from memograd.serve.session import login_path
from memograd.web.running import running

OPERATORS_PAGES = (
    *(
        "/page/chat",
        "/page/chat?user=alice",
        "/page/runs",
        "/page/runs?run=good",
        "/page/runs/good",
    ),
    *("/page/runs/good", "/page/runs/good/steps/1", "/page/runs/good/answers"),
    *("/page/versions", "/page/traces", "/page/keys", "/page/api"),
)
AXE = "axe-core@4.14.1"
HOSTILE = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"


@pytest.fixture
def served(serving: Serving) -> Iterator[str]:
    """The address of a served memory with something in it."""
    memory = serving.memory
    memory.add(HOSTILE, user_id="mallory", infer=False, metadata={HOSTILE: HOSTILE})
    for text in ("I live in Boston.", "I love jazz.", "I drive an old Volvo."):
        memory.add(text, user_id="alice", infer=False)
    memory.add("我喜欢喝绿茶，不喝咖啡。", user_id="小红", infer=False)
    [first, *_] = memory.get_all(user_id="alice")["results"]
    memory.update(first["id"], "I live in Denver.")
    with running(serving.app) as address:
        yield address


@pytest.fixture
def trained(
    make_serving: Any, open_memory: Any, make_head: Any, tmp_path: Path
) -> Iterator[tuple[Serving, str, str]]:
    """A served memory with two policies and traces: with its address, and a rollout's id."""
    policies = PolicyVersions(tmp_path / "policies")
    for number in (1, 2):
        policies.adopt(policies.save(make_head(add=float(number))))
    url = f"sqlite:///{tmp_path}/traces.db"
    with closing(TraceStore(url)) as store:
        rollout = store.create(metadata={"task": HOSTILE}).record.id
        store.begin_call(rollout)
        said = ({"role": "user", "content": HOSTILE},)
        answer = (Choice(HOSTILE, "stop"),)
        store.record(CallRecord(rollout, 0, "agent", "tiny", 1, said, answer))
        store.reward(rollout, 1.0)
    runs = example_runs(tmp_path)
    serving = make_serving(open_memory(policy=policies.folder), traces=url, runs=runs)
    serving.key("user:小红")
    serving.memory.add("I like tea.", user_id="alice", infer=False)
    with running(serving.app) as address:
        yield serving, address, rollout


@pytest.fixture
def opened(chromium: Any, served: str, serving: Serving) -> Iterator[Callable[..., Any]]:
    """Opens signed-in tabs; fails at the end when one of them logged an error."""
    contexts, errors = [], []

    def opening(path: str, **given: Any) -> Any:
        context = chromium.new_context(**{"locale": "en-US", **given})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: said.type == "error" and errors.append(said.text))
        token = serving.served.keys.login_token(name="page", owner=None, rights=[Right.admin])
        page.goto(served + login_path(token))
        page.goto(served + path)
        return page

    yield opening
    for context in contexts:
        context.close()
    assert errors == []


def test_searching_as_one_types(opened: Callable[..., Any]) -> None:
    page = opened("/page/memory?owner=user:alice")
    page.fill("#q", "jazz")
    page.wait_for_selector("#results .why")
    assert page.inner_text("#results .item >> nth=0").startswith("I love jazz.")
    assert "q=jazz" in page.url
    page.go_back()
    page.wait_for_selector("#results .item")


@pytest.mark.slow
def test_the_slider_goes_back_by_keyboard(opened: Callable[..., Any]) -> None:
    page = opened("/page/memory?owner=user:alice")
    page.focus("#at")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".then")
    assert "I live in Boston." in page.inner_text("#results")
    assert page.inner_text(".item.changed ins") == "Denver"
    page.focus("#at")
    page.keyboard.press("Home")
    page.wait_for_selector("#results:has-text('1 known then')")
    page.wait_for_selector("#count-semantic:text-is('1')")  # of the kinds, what was known then
    page.fill("#q", "jazz")
    page.wait_for_selector("#results .why")
    assert page.input_value("#q") == "jazz"


@pytest.mark.slow
def test_a_memory_is_edited_forgotten_and_erased(
    opened: Callable[..., Any], serving: Serving
) -> None:
    page = opened("/page/memory?owner=user:alice")
    page.click("text=I love jazz.")
    page.click("button:has-text('Edit')")
    page.fill("#text", "I love Bach.")
    page.click("button:has-text('Save')")
    page.wait_for_selector("h1:has-text('I love Bach.')")
    page.click("button[data-opens=purge]")
    page.check("input[name=confirm]")
    page.click("dialog button:has-text('Erase')")
    page.wait_for_url("**/page/memory?owner=user*")
    assert "Bach" not in page.inner_text("main")
    left = [item["memory"] for item in serving.memory.get_all(user_id="alice")["results"]]
    assert left == ["I live in Denver.", "I drive an old Volvo."]


def test_a_key_is_made_once(chromium: Any, served: str, serving: Serving) -> None:
    page = entered(chromium, serving, served)
    page.goto(f"{served}/page/keys")
    page.fill("[name=name]", "phone")
    page.fill("[name=owner]", "alice")
    page.click(".key-form .main")
    page.wait_for_selector("#refusal")
    assert page.input_value("[name=name]") == "phone"  # to be mended
    page.fill("[name=owner]", "user:alice")
    page.click(".key-form .main")
    page.wait_for_selector(".made")
    page.wait_for_function("document.querySelector('[name=name]').value === ''")
    assert page.inner_text("#notice") == ""
    [key] = serving.served.keys.list()
    assert (key.name, key.owner) == ("phone", "user:alice")
    page.on("dialog", lambda asked: asked.accept())
    page.click("#keys .danger")
    page.wait_for_selector("#keys .bad")
    assert not serving.served.keys.exist()


def test_hostile_texts_are_only_texts(opened: Callable[..., Any]) -> None:
    page = opened("/page/memory?owner=user:mallory")
    assert HOSTILE in page.inner_text("#results")
    page.click("#results .text")
    page.wait_for_selector(".history")
    assert page.inner_text("h1") == HOSTILE
    assert "broken" not in page.title()
    assert page.query_selector("main img, main script") is None


@pytest.mark.slow
def test_a_version_is_taken_back(chromium: Any, trained: tuple[Serving, str, str]) -> None:
    serving, address, _ = trained
    policies = PolicyVersions(serving.memory.store.settings.policy or "")
    newer, older = policies.current, policies.before[0]
    page = entered(chromium, serving, address)
    page.goto(address + "/page/versions")
    page.click("button[data-opens=back-policy]")
    page.click("dialog button.danger")  # held back by the browser: the box is not ticked
    assert policies.current == newer
    page.check("dialog input[name=confirm]")
    page.click("dialog button.danger")
    page.wait_for_selector(f"tr:has-text('{older}') .version-current")
    assert policies.current == older
    page.close()


@pytest.mark.slow
def test_traces_are_only_texts(chromium: Any, trained: tuple[Serving, str, str]) -> None:
    serving, address, rollout = trained
    page = entered(chromium, serving, address)
    page.goto(address + "/page/traces")
    page.click(f"text={rollout}")
    page.wait_for_selector("blockquote")
    assert page.inner_text("blockquote") == HOSTILE
    assert "broken" not in page.title()
    assert page.query_selector("main img, main script") is None
    page.close()


@pytest.mark.slow
def test_another_site_cannot_ask(chromium: Any, served: str, opened: Callable[..., Any]) -> None:
    page = opened("/page/memory")
    foreign = served.replace("127.0.0.1", "evil.example")
    context = chromium.browser_type.launch(
        executable_path=shutil.which("chromium"),
        args=[
            "--no-sandbox",
            "--no-proxy-server",
            "--host-resolver-rules=MAP evil.example 127.0.0.1",
        ],
    )
    try:
        answer = context.new_page().goto(foreign + "/page/memory")
        assert answer is not None
        assert answer.status == 403
    finally:
        context.close()
    assert "Whose memory?" in page.inner_text("h1")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script of axe-core."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core comes by npm, which is not on this machine")
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run([npm, "pack", AXE], cwd=folder, capture_output=True, text=True)
    if packed.returncode:
        pytest.skip("npm cannot be reached")
    [archive] = folder.glob("*.tgz")
    shutil.unpack_archive(archive, folder)
    return folder / "package" / "axe.min.js"


def violations(page: Any, axe: Path) -> dict[str, list[str]]:
    """What axe finds wrong with a page: the elements by the rule."""
    page.add_script_tag(path=str(axe))
    result = page.evaluate("axe.run()")
    assert len(result["passes"]) > 15
    return {one["id"]: [node["html"] for node in one["nodes"]] for one in result["violations"]}


@pytest.mark.slow
def test_axe_finds_nothing(opened: Callable[..., Any], axe: Path, serving: Serving) -> None:
    [item, *_] = serving.memory.get_all(user_id="alice")["results"]
    paths = (
        "/page/memory",
        "/page/memory?owner=user:alice",
        "/page/memory?owner=user:alice&q=jazz",
    )
    found = {}
    for path in (*paths, "/page/memory?owner=user:alice&at=1", f"/page/memory/item/{item['id']}"):
        for scheme in ("light", "dark"):
            page = opened(path, color_scheme=scheme, bypass_csp=True)
            found[f"{path} {scheme}"] = violations(page, axe)
    assert not any(found.values()), found


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_was_trained(
    chromium: Any, trained: tuple[Serving, str, str], axe: Path, scheme: str
) -> None:
    serving, address, rollout = trained
    page = entered(chromium, serving, address, color_scheme=scheme, bypass_csp=True)
    found = {}
    for path in (f"/page/traces/{rollout}", *OPERATORS_PAGES):
        page.goto(address + path)
        found[path] = violations(page, axe)
    page.goto(address + "/page/versions")
    page.click("button[data-opens=back-policy]")
    found["dialog"] = violations(page, axe)
    page.close()
    assert not any(found.values()), found
