"""Runs: which there are, their curves beside each other, their rollouts, before and after.

    GET /runs                     the list; run=A&run=B draws their curves beside each other
    GET /runs/curves?run=A        the numbers of the curves, as JSON
    GET /runs/NAME                one run: curves, report, settings
    GET /runs/NAME/steps/N        the groups of one step, token by token
    GET /runs/NAME/answers        one question, two policies, side by side

A run holds the conversations that it was trained on, so only an admin key that is bound to no owner
sees any. Invariant: nothing here changes a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse

from memograd.evaluation.run_log import TokenText, logged_steps, read_rollouts, spans
from memograd.serve.page import run_files
from memograd.serve.page.view import PageRefused, View, Viewing

MOST_BESIDE: Final = 8
NO_DIFFERENCE: Final = 1e-9

routes = APIRouter()


@dataclass(frozen=True)
class ShownRollout:
    """One rollout of a group, with its tokens."""

    reward: float | None
    parts: Mapping[str, float | None]
    advantage: float | None
    stop_reason: str
    tokens: list[TokenText]


@dataclass(frozen=True)
class ShownGroup:
    """One group. flat: all rewards are equal, so that nothing could be learnt from it."""

    id: str
    prompt: list[tuple[str, str]]
    columns: Mapping[str, Any]
    flat: bool
    rollouts: list[ShownRollout]


@routes.get("/runs")
def runs(view: Viewing, run: Annotated[list[str] | None, Query()] = None) -> HTMLResponse:
    """The list of runs, and the curves of those that are chosen."""
    folder = _folder(view)
    chosen = (run or [])[:MOST_BESIDE]
    for name in chosen:
        run_files.run_path(folder, name)
    return view.page(
        "runs.html", runs=run_files.list_runs(folder), chosen=chosen, folder=str(folder)
    )


@routes.get("/runs/curves")
def curves(view: Viewing, run: Annotated[list[str], Query()]) -> JSONResponse:
    """The numbers that are drawn."""
    folder = _folder(view)
    series = {
        name: run_files.curves(run_files.run_path(folder, name)) for name in run[:MOST_BESIDE]
    }
    order = [name for name in run_files.CURVES if any(name in one for one in series.values())]
    titles = {name: view.say("curve." + name) for name in order}
    return JSONResponse({"runs": series, "curves": titles})


@routes.get("/runs/{name}")
def run(view: Viewing, name: str) -> HTMLResponse:
    """One run."""
    path = run_files.run_path(_folder(view), name)
    [line] = [one for one in run_files.list_runs(path.parent) if one.name == name]
    return view.page(
        "run.html",
        run=line,
        steps=logged_steps(path),
        answered=run_files.has_answers(path),
        report=run_files.report(path),
        settings=run_files.settings(path),
    )


@routes.get("/runs/{name}/steps/{step}")
def rollouts(view: Viewing, name: str, step: int) -> HTMLResponse:
    """The groups of one step."""
    path = run_files.run_path(_folder(view), name)
    steps = logged_steps(path)
    if step not in steps:
        raise PageRefused(view.say("rollouts.none", step=step), 404)
    groups = [_group(record) for record in read_rollouts(path, step)]
    return view.page("rollouts.html", name=name, step=step, steps=steps, groups=groups)


@routes.get("/runs/{name}/answers")
def before_and_after(
    view: Viewing,
    name: str,
    first: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    left: str = "",
    right: str = "",
) -> HTMLResponse:
    """What two policies answered to the same questions."""
    path = run_files.run_path(_folder(view), name)
    answered, more = run_files.answers(path, first)
    if not answered:
        raise PageRefused(view.say("answers.none"), 404)
    methods = list(answered[0].said)
    # The one that was trained stands on the right, what it began as on the left.
    right = right if right in methods else methods[-1]
    left = left if left in methods else _counterpart(methods, right)
    return view.page(
        "answers.html",
        name=name,
        answered=answered,
        methods=methods,
        left=left,
        right=right,
        first=first,
        more=first + run_files.ANSWERS_ON_A_PAGE if more else None,
    )


def _counterpart(methods: list[str], trained: str) -> str:
    """The method that is called as the trained one was before; else the first."""
    for before in (trained.replace("trained", "untrained"), run_files.BEFORE):
        if before in methods and before != trained:
            return before
    return methods[0]


def _folder(view: View) -> Path:
    assert view.identity is not None
    view.identity.need_operator()
    return view.served.settings.runs


def _group(record: Mapping[str, Any]) -> ShownGroup:
    prompt = record["prompt"]
    said = (
        [("", prompt)]
        if isinstance(prompt, str)
        else [(str(one["role"]), str(one["content"])) for one in prompt]
    )
    rewards = [one["reward"] for one in record["rollouts"]]
    known = [reward for reward in rewards if isinstance(reward, int | float)]
    return ShownGroup(
        id=str(record["id"]),
        prompt=said,
        columns=record["columns"],
        flat=len(known) == len(rewards) and max(known) - min(known) <= NO_DIFFERENCE,
        rollouts=[
            ShownRollout(
                reward=one["reward"],
                parts=one["rewards"],
                advantage=one["advantage"],
                stop_reason=str(one["stop_reason"]),
                tokens=[token for row in one["rows"] for token in spans(row)],
            )
            for one in record["rollouts"]
        ],
    )
