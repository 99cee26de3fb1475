"""Versions of what was trained: the policy that decides and the ranker, and going back.

    GET  /versions                    both folders: what serves, what each version was measured at
    POST /versions/{kind}/rollback    make the version current that was so before

The folders are those of the memory's settings (`policy`, `ranking`). A version decides over
everybody's memory, so only an admin key that is bound to no owner sees any. Invariant: a rollback
changes what the reader was shown: it names the current version, and is refused where that is
another one by now.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, Response

from memograd.errors import BadInput
from memograd.memory.manager.trained.versions import PolicyVersions
from memograd.memory.records.versions import VersionsFolder
from memograd.memory.search.ranker.versions import RankerVersions
from memograd.serve.page.version_lines import ShownVersions, shown_versions
from memograd.serve.page.view import View, Viewing
from memograd.serve.refusals import NotFound

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
        raise NotFound(view.say("versions.nofolder", kind=kind[:80]))
    if confirm != "rollback":
        raise BadInput(view.say("versions.confirm"))
    folder = folders[kind]
    with folder.held():
        if folder.current != current:
            raise BadInput(view.say("versions.moved", version=folder.current))
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
