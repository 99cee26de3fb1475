"""What a command is given: which memory, whose, JSON options, texts and files of messages.

Invariant: what cannot be understood is BadInput that names the option or the line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from memograd.config import MemorySettings, load_memory_settings
from memograd.errors import BadInput

if TYPE_CHECKING:
    from memograd.memory import Memory

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Whose memory it is.")]
Agent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Which agent's.")]
Run = Annotated[str | None, typer.Option("--run", metavar="NAME", help="Which run's.")]
Where = Annotated[
    Path | None,
    typer.Option("--path", metavar="DIR", help="Folder of the memory; else the settings say."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print what the Python call returns.")]
FilterText = Annotated[
    str | None,
    typer.Option("--filters", metavar="JSON", help='Conditions: {"kind": "core"} for example.'),
]
MetadataText = Annotated[
    str | None,
    typer.Option("--metadata", metavar="JSON", help='Fields of your own: {"source": "mail"}.'),
]
ShowExpired = Annotated[
    bool, typer.Option("--show-expired", help="What is hidden because it has expired, too.")
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="As it was known at that moment.")
]
Policy = Annotated[
    Path | None,
    typer.Option("--policy", metavar="DIR", help="Trained policy that decides; else the settings."),
]
DeferBelow = Annotated[
    float | None,
    typer.Option(
        "--defer-below", metavar="P", help="Leave less probable decisions to the manager."
    ),
]
Ranking = Annotated[
    str | None,
    typer.Option("--ranking", metavar="HOW", help="trained, fusion, or a ranker; else settings."),
]
MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory.")]


class Ids(TypedDict):
    """Whose memory is meant, as the methods of `Memory` take it."""

    user_id: str | None
    agent_id: str | None
    run_id: str | None


def ids(user: str | None, agent: str | None, run: str | None) -> Ids:
    """What was typed as --user, --agent and --run."""
    return Ids(user_id=user, agent_id=agent, run_id=run)


def settings(
    path: Path | None,
    *,
    embedder: str | None = None,
    policy: Path | None = None,
    defer_below: float | None = None,
    ranking: str | None = None,
) -> MemorySettings:
    """The settings of the environment and `.env`; what the command line gives wins."""
    return load_memory_settings(
        path=path, embedder=embedder, policy=policy, defer_below=defer_below, ranking=ranking
    )


def open_memory(
    path: Path | None,
    *,
    make: bool = False,
    policy: Path | None = None,
    defer_below: float | None = None,
    ranking: str | None = None,
) -> Memory:
    """The memory of the settings; only what writes into it may make a new one."""
    from memograd.memory import Memory

    chosen = settings(path, policy=policy, defer_below=defer_below, ranking=ranking)
    if not make:
        check_memory(chosen)
    return Memory.open(settings=chosen)


def check_memory(chosen: MemorySettings) -> None:
    """Raise BadInput where the settings name no memory that is there; makes none."""
    if not there_is(chosen):
        raise BadInput(
            f"There is no memory in {chosen.path}: add something to it first, or give --path."
        )


def there_is(chosen: MemorySettings) -> bool:
    """Whether the settings name a memory that is there, as far as a folder can tell."""
    return bool(chosen.journal_url) or (chosen.path / "journal.db").is_file()


def json_object(text: str | None, option: str, example: str) -> dict[str, Any] | None:
    """The JSON object that an option holds; None where it was not given."""
    if text is None:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{option} is not JSON ({error}): quote it, as in '{{...}}'.") from None
    if not isinstance(parsed, dict):
        raise BadInput(f"{option} must be a JSON object such as {example}: {text!r}.")
    return parsed


def filters(text: str | None) -> dict[str, Any] | None:
    """The JSON object that `--filters` holds."""
    return json_object(text, "--filters", '{"kind": "core"}')


def metadata(text: str | None) -> dict[str, Any] | None:
    """The JSON object that `--metadata` holds."""
    return json_object(text, "--metadata", '{"source": "mail"}')


def messages(text: str | None, file: Path | None) -> str | list[dict[str, Any]]:
    """What `memory add` is to remember: a text, standard input for `-`, or a file of messages."""
    if (text is None) == (file is None):
        raise BadInput("Give either a text (- reads standard input) or --file.")
    if file is not None:
        return _messages_in(file)
    if text != "-":
        return str(text)
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise BadInput(f"Standard input is not UTF-8 text ({error}): convert it.") from None


def _messages_in(file: Path) -> list[dict[str, Any]]:
    """The chat messages in a JSON list, or one JSON object a line."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"The file {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"The file {file} is not UTF-8 text ({error}): convert it.") from None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = _lines(text, file)
    found = parsed if isinstance(parsed, list) else [parsed]
    for number, message in enumerate(found, start=1):
        if not isinstance(message, dict) or "content" not in message:
            raise BadInput(
                f"Message {number} of {file} must be an object with role and content, not"
                f" {json.dumps(message, ensure_ascii=False)[:60]}."
            )
    return found


def _lines(text: str, file: Path) -> list[Any]:
    parsed = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            parsed.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise BadInput(
                f"Line {number} of {file} is not JSON ({error}): give a JSON list of chat messages,"
                " or one message a line."
            ) from None
    return parsed
