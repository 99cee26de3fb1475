"""Versions of what was trained: the policy that decides and the ranker, and going back.

    GET  /versions                    both folders: what serves, what each version was measured at
    POST /versions/{kind}/rollback    make the version current that was so before

The folders are those of the memory's settings (`policy`, `ranking`). A version decides over
everybody's memory, so only an admin key that is bound to no owner sees any. Measurements are those
that were written down when a version was made: by `memograd learn` in the folder's log, and in the
ranker itself. Invariants: a rollback changes what the reader was shown: it names the current
version, and is refused where that is another one by now; a number that nobody wrote down is not
shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, Response

from memograd.errors import BadInput
from memograd.memory.manager.trained.files import PolicyVersions
from memograd.memory.records.versions import VersionsFolder
from memograd.memory.search.ranker.files import RankerVersions
from memograd.serve.page.view import PageRefused, View, Viewing

KINDS = (PolicyVersions.kind, RankerVersions.kind)

routes = APIRouter()


@routes.get("/versions")
def versions(view: Viewing) -> HTMLResponse:
    """What serves now, and the versions beside it."""
    folders = _folders(view)
    shown: dict[str, ShownVersions] = {}
    problems: dict[str, str] = {}
    for kind, folder in folders.items():
        try:
            shown[kind] = shown_versions(folder)
        except BadInput as error:
            problems[kind] = str(error)
    memory = view.served.memory
    ranking = memory.recall.ranking
    return view.page(
        "versions.html",
        kinds=KINDS,
        shown=shown,
        problems=problems,
        decides=memory.manager.actor,
        ranks_by="" if ranking.ranker is not None else ranking.reason,
    )


@routes.post("/versions/{kind}/rollback")
def roll_back(
    view: Viewing,
    kind: str,
    current: Annotated[str, Form()],
    confirm: Annotated[str, Form()] = "",
) -> Response:
    """Go one version back. current: the version that the reader was shown as current."""
    folders = _folders(view)
    if kind not in folders:
        raise PageRefused(view.say("versions.nofolder", kind=kind[:80]), 404)
    if confirm != "rollback":
        raise PageRefused(view.say("versions.confirm"))
    folder = folders[kind]
    with folder.held():
        if folder.current != current:
            raise PageRefused(view.say("versions.moved", version=folder.current))
        if folder.before:
            folder.check_fits(folder.before[0])
        version = folder.rollback()
    assert view.identity is not None
    view.served.access.note(
        key_id=view.identity.key_id,
        key_name=view.identity.name,
        via="page",
        action=f"roll back {kind}",
        owner=None,
        items=[version],
    )
    return view.moved("/versions")


def _folders(view: View) -> Mapping[str, VersionsFolder]:
    """The folders of versions that the memory's settings name, by kind."""
    assert view.identity is not None
    view.identity.need_operator()
    settings = view.served.memory.store.settings
    found: dict[str, VersionsFolder] = {}
    if settings.policy is not None and PolicyVersions.is_in(Path(settings.policy).expanduser()):
        found[PolicyVersions.kind] = PolicyVersions(settings.policy)
    if RankerVersions.is_in(Path(settings.ranking).expanduser()):
        found[RankerVersions.kind] = RankerVersions(settings.ranking)
    return found


MOST_EVENTS: Final = 30


CHANGES: Final = frozenset({"adopted", "rolled back"})


LEARNT: Final = frozenset({"learned", "refused"})


SHIPPED_MEASURE: Final = ("fusion_recall_at_10", "trained_recall_at_10")


@dataclass(frozen=True)
class VersionMeasure:
    """What was measured of a version on questions that it did not learn from, from 0 to 1.

    before: of the version that it was to replace; for `recall`, of rank fusion.
    """

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class VersionLine:
    """One version. state: current, before (it can be gone back to) or kept. problem: why it cannot
    be read, empty when it can."""

    version: str
    state: str
    kept_at: datetime
    refused: bool
    measured: Sequence[VersionMeasure]
    problem: str


@dataclass(frozen=True)
class VersionEvent:
    """One line of the log. what: adopted, rolled back, learned or refused."""

    at: str
    what: str
    version: str


@dataclass(frozen=True)
class ShownVersions:
    """A folder. lines: the newest first. previous: where a rollback leads, None at the first.
    events: what happened, the latest first."""

    kind: str
    folder: str
    current: str
    previous: str | None
    lines: Sequence[VersionLine]
    events: Sequence[VersionEvent]


def shown_versions(versions: VersionsFolder) -> ShownVersions:
    """A folder with all its versions. Raises BadInput when its files cannot be read."""
    current, before = versions.current, versions.before
    events = versions.events()
    lines = [
        _line(versions, version, _state(version, current, before), events)
        for version in reversed(versions.versions())
    ]
    return ShownVersions(
        kind=versions.kind,
        folder=str(versions.folder),
        current=current,
        previous=before[0] if before else None,
        lines=lines,
        events=list(_happened(events))[::-1][:MOST_EVENTS],
    )


def _happened(events: Sequence[Mapping[str, Any]]) -> Iterator[VersionEvent]:
    for one in events:
        if one["event"] in CHANGES | LEARNT:
            version = one.get("version" if one["event"] in CHANGES else "after_version")
            yield VersionEvent(one["at"], one["event"], str(version))


def _state(version: str, current: str, before: Sequence[str]) -> str:
    if version == current:
        return "current"
    return "before" if version in before else "kept"


def _line(
    versions: VersionsFolder, version: str, state: str, events: Sequence[Mapping[str, Any]]
) -> VersionLine:
    told = [one for one in events if one["event"] in LEARNT and one.get("after_version") == version]
    made = told[-1] if told else None
    measured: list[VersionMeasure] = []
    problem = ""
    try:
        versions.check_fits(version)
        if isinstance(versions, RankerVersions):
            measured = list(_of_ranker(versions.load(version).made_from))
        elif made is not None:
            measured = list(_of_policy(made))
    except BadInput as error:
        problem = str(error)
    file = versions.folder / version / versions.about_file
    return VersionLine(
        version=version,
        state=state,
        kept_at=datetime.fromtimestamp(file.stat().st_mtime, UTC),
        refused=made is not None and made["event"] == "refused",
        measured=measured,
        problem=problem,
    )


def _of_policy(report: Mapping[str, Any]) -> Iterator[VersionMeasure]:
    """By the report of `memograd learn`."""
    for name in ("feedback", "generated"):
        before, after = (report[side].get(name) for side in ("before", "after"))
        if after is not None:
            yield VersionMeasure(name, before, after)


def _of_ranker(made_from: Mapping[str, Any]) -> Iterator[VersionMeasure]:
    """By what a ranker says of its training: both forms, from a run and from feedback."""
    held_out = made_from.get("held_out")
    if not isinstance(held_out, Mapping):
        return
    if all(name in held_out for name in SHIPPED_MEASURE):
        yield VersionMeasure("recall", *(held_out[name] for name in SHIPPED_MEASURE))
    for name in ("turns", "items"):
        if name in held_out:
            yield VersionMeasure(name, held_out[name]["before"], held_out[name]["after"])
