"""One request of the page: who looks, in which language, and how the answer is written.

A view takes `Viewing` and returns `view.page(template, ...)`. Invariant: a view reaches memories by
`view.memory` alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

import memograd
from memograd.serve.identity import Identity
from memograd.serve.page import texts
from memograd.serve.page.page_memory import PageMemory
from memograd.serve.page.texts import LANGUAGES, in_language, preferred, recognised, say
from memograd.serve.refusals import Refused, shortened
from memograd.serve.served import Asking, Served

PREFIX: Final = "/page"
LANGUAGE_COOKIE: Final = "memograd_language"
STATIC: Final = Path(str(files("memograd.serve.page") / "static"))
YEAR_SECONDS: Final = 365 * 24 * 3600


class PageRefused(Refused):
    """A refusal of the page itself, in its language already."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


class View:
    """A request with what every template needs."""

    def __init__(self, request: Request, served: Served, identity: Identity | None) -> None:
        """identity: None for an answer to somebody unknown, which shows no memory."""
        self.request, self.served, self.identity = request, served, identity
        self.language = preferred(
            request.query_params.get("lang"),
            request.cookies.get(LANGUAGE_COOKIE),
            request.headers.get("accept-language", ""),
        )
        self.say = partial(say, self.language)

    def told(self, sentence: str) -> str:
        """What the memory or the server said in English, in the language of the page."""
        # One that quotes what was sent may be megabytes, and to recognise takes the square of it.
        name, values = recognised(shortened(sentence))
        return self.say("told." + name, **values)

    @property
    def memory(self) -> PageMemory:
        """The memory as this session's key may see it."""
        assert self.identity is not None
        return PageMemory(self.served.memory, self.identity, self.served.access, via="page")

    @property
    def by_htmx(self) -> bool:
        """Whether a part of a page asks, rather than the browser for a whole one."""
        return "hx-request" in self.request.headers

    def page(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A template, filled in."""
        return self._written(_templates().get_template(template), status, values)

    def moved(self, path: str, **query: object) -> Response:
        """Tell htmx to go to another page, after a change."""
        return Response(headers={"HX-Redirect": address(path, **query)})

    def refused(self, status: int, sentence: str) -> HTMLResponse:
        """One sentence of the page's language: as a page, or into the notice of the page that
        asked."""
        signed_in = self.identity is not None
        if not self.by_htmx:
            return self.page("refused.html", status=status, sentence=sentence, signed_in=signed_in)
        answer = self.page("notice.html", status=status, sentence=sentence)
        answer.headers.update(
            {"HX-Retarget": "#notice", "HX-Reselect": "#refusal", "HX-Reswap": "innerHTML"}
        )
        return answer

    def told_refusal(self, error: Refused) -> HTMLResponse:
        """A refusal as a page or a notice, in the language of the page."""
        if isinstance(error, PageRefused):
            return self.refused(error.status, error.detail)
        if error.status == 401 and self.request.url.path.startswith(PREFIX):
            return self.refused(401, self.say("refused.unknown"))
        return self.refused(error.status, self.told(error.detail))

    def _written(self, template: Any, status: int, values: Mapping[str, Any]) -> HTMLResponse:
        token = None if self.identity is None else self.identity.page_token
        text = template.render(
            say=self.say,
            told=self.told,
            because=partial(in_language, self.language),
            language=self.language,
            languages=LANGUAGES,
            here=self._here,
            path=self.request.url.path,
            identity=self.identity,
            token=token,
            **values,
        )
        # What a model or an agent said may hold half a surrogate pair, which UTF-8 cannot say.
        body = text.encode("utf-8", "replace")
        answer = HTMLResponse(body, status)
        if self.request.query_params.get("lang") in LANGUAGES:
            answer.set_cookie(
                LANGUAGE_COOKIE,
                self.language,
                max_age=YEAR_SECONDS,
                httponly=True,
                samesite="strict",
                path="/",
            )
        return answer

    def _here(self, /, **changed: object) -> str:
        """The address of this page with other values in its query; None leaves a name out."""
        query = {**self.request.query_params, **changed}
        return address(self.request.url.path.removeprefix(PREFIX), **query)


async def viewing(request: Request, identity: Asking) -> View:
    """Who looks, with a place and a turn until the answer is made."""
    return View(request, request.app.state.served, identity)


Viewing = Annotated[View, Depends(viewing)]
"""A view's parameter."""


def address(path: str, /, **query: object) -> str:
    """An address of the page; values that are None are left out."""
    given = {name: value for name, value in query.items() if value is not None and value != ""}
    # An id may hold anything: an imported one must not lead out of its page.
    return f"{PREFIX}{quote(path, errors='replace')}{'?' if given else ''}{urlencode(given)}"


@cache
def _static(name: str) -> str:
    """The address of a static file, which changes with its contents."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"{PREFIX}/static/{name}?v={digest}"


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("memograd.serve.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        day=texts.day, moment=texts.moment, number=texts.number, second=texts.second
    )
    environment.globals.update(
        address=address, static=_static, version=memograd.__version__, difference=texts.difference
    )
    return environment
