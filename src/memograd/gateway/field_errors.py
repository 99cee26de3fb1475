"""What is wrong with a request's fields, as one sentence that names the field.

pydantic lists every way in which a value does not fit, each alternative of a field by itself.
Invariant: the sentence is about the alternative that the value came nearest to, and names all kinds
of values that would do where it is of none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

WANTED: Final[Mapping[str, str]] = {
    "string_type": "a text",
    "string_unicode": "a text that can be written as UTF-8",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
"""What would have done, by the kind of pydantic's error."""


def field_error(errors: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The field, empty for the whole request, and the sentence about it."""
    located = [(_field(error["loc"]), error) for error in errors]
    while True:
        field, first = located[0]
        if first["type"] not in WANTED:
            return _told(field, _sentence(first))
        of_field = [one for one in located if one[0][: len(field)] == field]
        nearer = [one for one in of_field if one[0] != field or one[1]["type"] not in WANTED]
        if not nearer:
            kinds = dict.fromkeys(WANTED[error["type"]] for _, error in of_field)
            return _told(field, f"{' or '.join(kinds)} is wanted")
        located = nearer


def _told(field: tuple[str, ...], what: str) -> tuple[str, str]:
    where = ".".join(field)
    return where, f"{where or 'The request'}: {what}."


def _field(place: Sequence[str | int]) -> tuple[str, ...]:
    """A place in a request without what pydantic adds: where it was looked for (`body`), and names
    of alternatives, which have brackets and dashes in them."""
    parts = map(str, place[1:] if place[:1] in (("body",), ("query",), ("path",)) else place)
    return tuple(part for part in parts if part.isalnum() or part.isidentifier())


def _sentence(error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind == "missing":
        return "it is missing"
    if kind == "extra_forbidden":
        return "this field is not known here"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message.replace(" after validation", "").rstrip(".")
