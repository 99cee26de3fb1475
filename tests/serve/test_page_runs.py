"""Runs on the page: the list, curves, rollouts token by token, before and after."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from asked import Serving
from browsing import Browser
from run_folders import HOSTILE, example_runs

from memograd.serve.keys import Right


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return example_runs(tmp_path)


@pytest.fixture
def browser(make_serving: Any, folder: Path) -> Browser:
    return Browser(make_serving(runs=folder))


def test_the_list_hides_no_run(browser: Browser) -> None:
    page = browser.get("/runs").text
    assert "memory-qa" in page
    assert "finished" in page
    assert "damaged" in page
    assert "no-run" not in page
    assert "还没有" not in browser.get("/runs", lang="zh").text


def test_curves_of_runs_beside_each_other(browser: Browser) -> None:
    told = browser.get("/runs/curves", run=["good", "broken"]).json()
    assert told["runs"]["good"] == {
        "step": [1, 2, 3],
        "reward_mean": [0.1, 0.2, 0.3],
        "loss": [0.5, 0.5, 0.5],
        "kl": [None, 0.1, 0.1],
    }
    assert told["runs"]["broken"] == {"step": []}
    assert told["curves"] == {"reward_mean": "Reward", "loss": "Loss", "kl": "KL to the start"}
    page = browser.get("/runs", run=["good", "broken"]).text
    assert 'data-curves="/page/runs/curves?run=good&amp;run=broken"' in page


def test_one_run(browser: Browser) -> None:
    page = browser.get("/runs/good").text
    assert "3 steps" in page
    assert "smollm2" in page
    assert "Before and after" in page
    assert "&lt;script&gt;" in page
    assert browser.get("/runs/broken").status_code == 200


@pytest.mark.parametrize("name", ["no-run", "missing", "..", "%2e%2e%2fruns", "good%2f.."])
def test_other_folders_are_no_runs(browser: Browser, name: str) -> None:
    assert browser.get(f"/runs/{name}").status_code == 404
    assert browser.get("/runs", run=[name]).status_code == 404


def test_rollouts_token_by_token(browser: Browser) -> None:
    page = browser.get("/runs/good/steps/1").text
    tokens = re.findall(r'<span class="token (\w+)"(?: title="([\d.]+)")?>([^<]*)</span>', page)
    shown = [one for one in tokens if one[2] in ("Bos", "ton", "波") or "script" in one[2]][:4]
    assert shown == [
        ("likely", "0.900", "Bos"),
        ("open", "0.300", "ton"),
        ("observation", "", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("unlikely", "0.010", "波"),
    ]
    assert "advantage +0.70" in page
    assert "exact 1.000" in page
    assert "judge –" in page
    assert page.count("nothing to learn from") == 1
    assert "<script>alert" not in page
    assert browser.get("/runs/good/steps/2").status_code == 404


def test_before_and_after(browser: Browser) -> None:
    page = browser.get("/runs/good/answers").text
    assert page.count("<blockquote>old</blockquote>") == page.count("<blockquote>new</blockquote>")
    assert page.count('class="question"') == 25
    assert "<blockquote>x</blockquote>" not in page
    rest = browser.get("/runs/good/answers", first=25, left="oracle").text
    assert rest.count('class="question"') == 5
    assert rest.count("<blockquote>x</blockquote>") == 5
    assert browser.get("/runs/broken/answers").status_code == 404


def test_before_and_after_of_a_text_run(browser: Browser, folder: Path) -> None:
    record = {
        "id": "a",
        "prompt": [{"role": "user", "content": "2+2?"}],
        "columns": {"answer": 4},
        "before": {"answer": "5", "rewards": {"total": 0.0, "exact": 0.0}},
        "after": {"answer": "4", "rewards": {"total": 1.0, "exact": 1.0}},
    }
    (folder / "good" / "answers.jsonl").write_text(json.dumps(record) + "\n")
    page = browser.get("/runs/good/answers").text
    assert page.index("<blockquote>5</blockquote>") < page.index("<blockquote>4</blockquote>")
    assert "after · 1.000" in page


def test_only_an_operator_sees_runs(make_serving: Any, folder: Path) -> None:
    serving: Serving = make_serving(runs=folder)
    for owner, right in (("user:alice", Right.admin), (None, Right.read)):
        browser = Browser(serving, owner, [right])
        for path in ("/runs", "/runs/good", "/runs/curves?run=good", "/runs/good/steps/1"):
            assert browser.get(path).status_code == 403, path
    nothing = make_serving(runs=folder / "nothing")
    assert "There is no run in the folder" in Browser(nothing).get("/runs").text


def test_the_report_is_shown_as_a_table(browser: Browser) -> None:
    page = browser.get("/runs/good").text
    assert '<th scope="col" class="right">F1</th>' in page
    assert '<td class="right">21.5</td>' in page
    assert "<b>rules</b>: in points" in page
    assert "---" not in page and "**" not in page and HOSTILE not in page


@pytest.mark.parametrize("line", ["no json", "[]", '{"method": "trained", "answer": "x"}', "{}"])
def test_answers_of_another_form_hide_no_run(browser: Browser, folder: Path, line: str) -> None:
    (folder / "good" / "answers.jsonl").write_text(line + "\n")
    assert browser.get("/runs/good").status_code == 200
    refused = browser.get("/runs/good/answers")
    assert refused.status_code == 400
    assert "answers of the run good cannot be read" in refused.text
