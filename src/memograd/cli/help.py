"""What the help of every command ends with: settings, examples, and what the exit codes mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic.fields import FieldInfo

from memograd.config import Settings, known_settings

EXIT_CODES = """\
\b
Exit codes:
  0    done
  1    a failure (the message says what happened)
  2    the input is wrong (one sentence says what to change)
  130  interrupted
  143  asked to end (SIGTERM)"""


def epilog(*paragraphs: str) -> str:
    """The paragraphs with their line breaks, then the exit codes."""
    # \b keeps the line breaks of the paragraph that it begins.
    return "\n\n".join([*("\b\n" + paragraph for paragraph in paragraphs), EXIT_CODES])


def examples(lines: Sequence[str]) -> str:
    """Commands to try, one a line."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def setting_paragraphs(kind: type[Settings]) -> list[str]:
    """Every setting of a command with its default and what it means, a paragraph a group."""
    known = known_settings(kind)
    return [_paragraph(title, known, names) for title, names in _grouped(kind, known)]


def _paragraph(title: str, known: Mapping[str, FieldInfo], names: Sequence[str]) -> str:
    lines = [f"{title} (key=value, with their defaults):"]
    for key in names:
        field = known[key]
        listed = isinstance(field.default, list)
        default = ",".join(map(str, field.default)) if listed else field.default
        meaning = " ".join((field.description or "").split())
        lines += [f"  {key}={'none' if default in (None, '') else default}", f"      {meaning}"]
    return "\n".join(lines)


def _grouped(
    kind: type[Settings], known: Mapping[str, FieldInfo]
) -> Iterator[tuple[str, list[str]]]:
    """The keys by groups, the commonest first, then those that only this command reads."""
    listed = {
        title: [key for name in names for key in known if key.partition(".")[0] == name]
        for title, names in kind.groups.items()
    }
    named = {key for keys in listed.values() for key in keys}
    own = [key for key in known if key not in named]
    title, *others = listed or {"Settings": own}
    yield title, listed.get(title, own)
    if own and listed:
        yield "Settings of this task", own
    yield from ((title, listed[title]) for title in others)
