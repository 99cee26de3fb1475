"""Versions on the page: what serves, what was measured, and going back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked import Serving
from browsing import Browser

from memograd.memory.manager.trained.files import PolicyVersions
from memograd.memory.search.ranker.files import RankerVersions, shipped_ranker
from memograd.serve.identity import COOKIE, page_token
from memograd.serve.keys import Right


@pytest.fixture
def policies(tmp_path: Path, make_head: Callable[..., Any]) -> PolicyVersions:
    """Two versions, of which the second was learnt from feedback, and one that was refused."""
    versions = PolicyVersions(tmp_path / "策略")
    first, second, third = (versions.save(make_head(add=float(number))) for number in (1, 2, 3))
    versions.adopt(first)
    before, after = ({"feedback": one, "generated": 0.5} for one in (0.25, 0.75))
    learned = {"before_version": first, "after_version": second, "before": before, "after": after}
    versions.log("learned", **learned)
    versions.adopt(second)
    versions.log("refused", **{**learned, "after_version": third})
    return versions


@pytest.fixture
def rankers(tmp_path: Path) -> RankerVersions:
    """The ranker that ships, and one that was learnt."""
    versions = RankerVersions(tmp_path / "rankers")
    shipped = replace(shipped_ranker(), embedder="trigram")
    versions.adopt(versions.save(shipped))
    found = {"fusion": 0.1, "before": 0.2, "after": 0.625}
    learned = replace(shipped, made_from={"held_out": {"adopted": True, "items": found}})
    versions.adopt(versions.save(learned))
    return versions


@pytest.fixture
def serving(
    make_serving: Any, open_memory: Any, policies: PolicyVersions, rankers: RankerVersions
) -> Serving:
    memory = open_memory(policy=policies.folder, ranking=str(rankers.folder))
    served: Serving = make_serving(memory)
    return served


def rows(page: str) -> dict[str, str]:
    """The row of each version."""
    found = [row for row in page.split("<tr>") if 'scope="row"' in row]
    return {row.split("<code>")[1].split("</code>")[0]: row.split("</tr>")[0] for row in found}


def test_versions_with_what_was_measured(
    serving: Serving, policies: PolicyVersions, rankers: RankerVersions
) -> None:
    page = Browser(serving).get("/versions").text
    shown = rows(page)
    assert list(shown) == policies.versions()[::-1] + rankers.versions()[::-1]
    current = shown[policies.current]
    assert "in service" in current
    assert "0.250 → 0.750" in current
    assert "refused when it was made" in shown[policies.versions()[-1]]
    assert "nothing was written down" in shown[policies.before[0]]
    assert "0.200 → 0.625" in shown[rankers.current]
    held_out = shipped_ranker().made_from["held_out"]
    fusion, trained = held_out["fusion_recall_at_10"], held_out["trained_recall_at_10"]
    assert f"{fusion:.3f} → {trained:.3f}" in shown[rankers.before[0]]
    assert f"At work now: policy:{policies.current}" in page
    assert "使用中" in Browser(serving).get("/versions", lang="zh").text


@pytest.mark.parametrize("kind", ["policy", "ranker"])
def test_a_rollback_holds_from_the_next_call(serving: Serving, kind: str, request: Any) -> None:
    versions = request.getfixturevalue({"policy": "policies", "ranker": "rankers"}[kind])
    browser = Browser(serving)
    newer, older = versions.current, versions.before[0]
    path = f"/versions/{kind}/rollback"
    assert browser.post(path, current=newer).status_code == 400
    assert versions.current == newer
    assert browser.post(path, current=newer, confirm="rollback").headers["HX-Redirect"]
    assert versions.current == older
    if kind == "policy":
        assert serving.memory.manager.actor == f"policy:{older}"
    else:
        ranker = serving.memory.recall.ranking.ranker
        assert ranker is not None
        assert "held_out" in ranker.made_from
        assert "items" not in ranker.made_from["held_out"]
    again = browser.post(path, current=newer, confirm="rollback")
    assert again.status_code == 400
    assert older in again.text
    assert "nothing is before it" in browser.post(path, current=older, confirm="rollback").text
    noted = [(one.action, one.items) for one in serving.served.access.read(
        owner=None, before=None, limit=5
    )]  # fmt: skip
    assert (f"roll back {kind}", [older]) in noted


def test_only_an_operator_and_only_from_the_page(
    serving: Serving, policies: PolicyVersions
) -> None:
    current = policies.current
    form = {"current": current, "confirm": "rollback"}
    for owner, right in (("user:alice", Right.admin), (None, Right.erase)):
        browser = Browser(serving, owner, [right])
        assert browser.get("/versions").status_code == 403
        assert browser.post("/versions/policy/rollback", **form).status_code == 403
    browser = Browser(serving)
    path = "/page/versions/policy/rollback"
    token = {"X-Memograd-Token": page_token(browser.web.cookies[COOKIE])}
    for headers in ({}, {"Origin": "http://localhost"}, token, {**token, "Origin": "http://evil"}):
        assert browser.web.post(path, data=form, headers=headers).status_code == 403
    assert browser.web.get(path).status_code == 405
    assert browser.post("/versions/../rollback", **form).status_code == 404
    assert browser.post("/versions/x/rollback", **form).status_code == 404
    assert policies.current == current


def test_what_is_damaged_is_told_and_never_gone_back_to(
    serving: Serving, policies: PolicyVersions
) -> None:
    current, before = policies.current, policies.before[0]
    (policies.folder / before / "head.json").write_text("{}")
    browser = Browser(serving)
    assert "cannot be read" in rows(browser.get("/versions").text)[before]
    form = {"current": current, "confirm": "rollback"}
    assert browser.post("/versions/policy/rollback", **form).status_code == 400
    assert policies.current == current
    with (policies.folder / "log.jsonl").open("a") as file:
        file.write('{"at": "2026-')
    page = browser.get("/versions")
    assert page.status_code == 200
    assert "Line 5 of" in page.text


def test_a_memory_without_versions_says_how(make_serving: Any) -> None:
    page = Browser(make_serving()).get("/versions").text
    assert "MEMOGRAD_POLICY=policies" in page
    assert "the setting ranking is fusion" in page
    assert "rollback" not in page
