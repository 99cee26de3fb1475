"""The REST interface, described to read: every route with its parameters and its body.

Written by the server out of the same description that `/openapi.json` gives, so that no script of
somebody else's runs on the address that holds the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse

from memograd.serve.page.view import Viewing

routes = APIRouter()


@dataclass(frozen=True)
class ApiField:
    """A parameter or a field of a body. place: path, query, header or body."""

    name: str
    place: str
    kind: str
    required: bool
    said: str


@dataclass(frozen=True)
class ApiRoute:
    """One route."""

    method: str
    path: str
    said: str
    fields: list[ApiField]


@routes.get("/api")
def api(view: Viewing) -> HTMLResponse:
    """All routes by what they are about."""
    server: FastAPI = view.request.app.state.server
    return view.page("api.html", tags=_by_tag(server.openapi()))


def _by_tag(description: Mapping[str, Any]) -> dict[str, list[ApiRoute]]:
    found: dict[str, list[ApiRoute]] = {}
    schemas = description["components"]["schemas"]
    for path, methods in description["paths"].items():
        for method, told in methods.items():
            fields = [*_parameters(told, schemas), *_body(told, schemas)]
            said = told.get("description") or told.get("summary", "")
            route = ApiRoute(method.upper(), path, said, fields)
            found.setdefault(told["tags"][0], []).append(route)
    return found


def _parameters(told: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[ApiField]:
    for one in told.get("parameters", ()):
        kind = _kind(one["schema"], schemas)
        said = one.get("description", "")
        yield ApiField(one["name"], one["in"], kind, one.get("required", False), said)


def _body(told: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[ApiField]:
    for content in told.get("requestBody", {}).get("content", {}).values():
        for schema in _alternatives(content["schema"], schemas):
            for name, one in schema.get("properties", {}).items():
                required = name in schema.get("required", ())
                said = one.get("description", "")
                yield ApiField(name, "body", _kind(one, schemas), required, said)


def _alternatives(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a schema may be: itself, followed where it refers to another one."""
    if "$ref" in schema:
        return _alternatives(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    either = schema.get("anyOf", ())
    return [one for part in either for one in _alternatives(part, schemas)] or [schema]


def _kind(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    kinds: dict[str, None] = {}
    for one in _alternatives(schema, schemas):
        if "enum" in one or "const" in one:
            kinds.update(dict.fromkeys(map(str, one.get("enum", [one.get("const")]))))
        elif one.get("type") == "array":
            kinds[f"[{_kind(one.get('items', {}), schemas)}]"] = None
        elif one.get("type") != "null":
            kinds[str(one.get("type", "any"))] = None
    return " | ".join(kinds)
