"""What a memory needs to work here: one finding for each thing, and what to do where it is lacking.

Nothing is created or changed by looking; only a journal on a database server gets its tables.
Invariants: `examine` never raises, and no finding holds a key, a token or a password.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from memograd.config import MemorySettings
from memograd.errors import MemogradError

if TYPE_CHECKING:
    from memograd.memory.embedders import Embedder
    from memograd.memory.journal import Journal

PYTHON: Final = (3, 11)
PACKAGES: Final = {
    "numpy": "numpy",
    "sqlalchemy": "sqlalchemy",
    "jieba": "jieba",
    "snowballstemmer": "snowballstemmer",
    "pymilvus": "pymilvus",
    "milvus_lite": "milvus-lite",
    "filelock": "filelock",
}
"""What every memory imports, and how pip calls it."""

ENDPOINT_SECONDS: Final = 10.0
DAMAGED_SHOWN: Final = 3
SHORTEST_SECRET: Final = 4  # masking shorter ones would make the findings unreadable

# A question, what answers it and what does not. An embedder that knows no Chinese sees unknown
# characters and ranks them by chance.
CHINESE_TRIALS: Final = (
    ("我家的猫整天睡觉。", "小猫总是在打盹。", "我昨天报了税。"),
    ("我弟弟在医院当医生。", "我的兄弟是一名大夫。", "这辆车是红色的。"),
    ("I have a cat.", "我养了一只猫。", "我昨天去爬山了。"),
)
ENGLISH_TRIALS: Final = (
    ("My cat sleeps all day.", "The kitten naps a lot.", "I filed my tax return."),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found. ok: True, False, or None for something optional that is not there.

    message: what is so, one sentence. remedy: what to do; empty where nothing needs doing.
    """

    name: str
    ok: bool | None
    message: str
    remedy: str = ""


def examine(settings: MemorySettings) -> list[Finding]:
    """Look at everything that the settings name, in the order in which a memory needs it."""
    findings: list[Finding] = []
    embedders: list[Embedder] = []
    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("python", _python),
        ("folder", lambda: _folder(settings)),
        ("embedder", lambda: _embedder(settings, embedders)),
        ("journal", lambda: _journal(settings, embedders)),
        ("policy", lambda: _policy(settings, embedders)),
        ("ranking", lambda: _ranking(settings, embedders)),
        ("index", lambda: _index(settings)),
        ("endpoint", lambda: _endpoint(settings)),
    ]
    for name, check in checks:
        try:
            findings.extend(check())
        except MemogradError as error:
            findings.append(_failed(name, str(error)))
        except Exception as error:  # a doctor that stops at the first surprise helps nobody
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            findings.append(
                Finding(name, False, f"The check failed ({reason}).", "report this as a bug")
            )
    secrets = _secrets(settings)
    return [_without(secrets, finding) for finding in findings]


def _python() -> Iterator[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < PYTHON:
        yield Finding("python", False, f"This is Python {version}.", "use Python 3.11 or newer")
        return
    missing = [pip for name, pip in PACKAGES.items() if importlib.util.find_spec(name) is None]
    if missing:
        yield Finding(
            "python",
            False,
            f"Packages are missing: {', '.join(missing)}.",
            f"run pip install {' '.join(missing)}",
        )
    else:
        yield Finding("python", True, f"Python {version} with all packages that a memory needs.")


def _folder(settings: MemorySettings) -> Iterator[Finding]:
    folder = settings.path.expanduser().absolute()
    remedy = "choose another folder (MEMOGRAD_PATH), or give yourself the right to write there"
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        yield Finding("folder", False, f"{nearest} is a file, not a folder.", remedy)
        return
    try:
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as error:
        yield Finding("folder", False, f"{nearest} cannot be written: {error.strerror}.", remedy)
        return
    state = "can be written" if nearest == folder else "does not exist yet and can be created"
    yield Finding("folder", True, f"The folder {folder} {state}.")


def _embedder(settings: MemorySettings, loaded: list[Embedder]) -> Iterator[Finding]:
    from memograd.memory.embedders import check_vectors, embedder_from_settings

    embedder = embedder_from_settings(settings)
    vectors = embedder.embed(["I moved to Berlin.", "我搬到了北京。"])
    check_vectors(vectors, 2, embedder.dimension, embedder.name)
    loaded.append(embedder)
    if not _ranks(embedder, ENGLISH_TRIALS):
        yield Finding(
            "embedder",
            False,
            f"The embedder {embedder.name!r} works, but does not rank English sentences.",
            "choose another embedder, such as e5",
        )
    elif not _ranks(embedder, CHINESE_TRIALS):
        yield Finding(
            "embedder",
            True,
            f"The embedder {embedder.name!r} works ({embedder.dimension} dimensions), but not for"
            " Chinese.",
            "choose e5 if memories may be Chinese",
        )
    else:
        yield Finding(
            "embedder",
            True,
            f"The embedder {embedder.name!r} works for English and Chinese"
            f" ({embedder.dimension} dimensions).",
        )


def _ranks(embedder: Embedder, trials: Sequence[tuple[str, str, str]]) -> bool:
    """Whether every question is nearer to its answer than to the other sentence."""
    questions = embedder.embed_queries([question for question, _, _ in trials])
    answers = embedder.embed([answer for _, answer, _ in trials])
    others = embedder.embed([other for _, _, other in trials])
    nearer = (questions * answers).sum(axis=1) > (questions * others).sum(axis=1)
    return bool(nearer.all())


def _journal(settings: MemorySettings, embedders: Sequence[Embedder]) -> Iterator[Finding]:
    from sqlalchemy.engine import make_url

    from memograd.memory.journal import Journal, sqlite_url

    file = settings.path.expanduser().absolute() / "journal.db"
    url = settings.journal_url or sqlite_url(file)
    if str(url).startswith("sqlite"):
        file = Path(make_url(url).database or "").expanduser()
        if not file.exists():
            yield Finding("journal", True, f"There is no memory in {file} yet: it will be created.")
            return
        if damage := _damage(file):
            yield Finding(
                "journal",
                False,
                f"The journal {file} is damaged ({damage}).",
                "restore a copy, or export what can still be read",
            )
            return
    with Journal.open(url) as journal:
        events = journal.last_seq()
        made_by, dimension = journal.get_meta("embedder"), journal.get_meta("dimension")
        damaged = list(_damaged_events(journal))
    if damaged:
        told = ", ".join(damaged[:DAMAGED_SHOWN]) + (", ..." if damaged[DAMAGED_SHOWN:] else "")
        yield Finding(
            "journal",
            False,
            f"The journal opens, but {len(damaged)} of its {events} events cannot be read ({told})"
            " and are passed over.",
            "restore a copy, or keep the rest: memograd memory export writes what can be read",
        )
    else:
        yield Finding("journal", True, f"The journal opens and is whole ({events} events).")
    for embedder in embedders:
        if made_by in (None, embedder.name) and dimension in (None, str(embedder.dimension)):
            continue
        yield Finding(
            "embedder of the journal",
            False,
            f"The memory was made with the embedder {made_by!r} ({dimension} dimensions), but the"
            f" settings name {embedder.name!r} ({embedder.dimension}).",
            f"set MEMOGRAD_EMBEDDER={made_by}, or run memograd memory reindex --embedder"
            f" {embedder.name}",
        )


def _damaged_events(journal: Journal) -> Iterator[str]:
    """The events whose contents are not what an event of their kind holds, by their places."""
    from memograd.memory.state.memory_state import NOT_READABLE
    from memograd.memory.write.transfer import check_contents

    try:
        for event in journal.export_events():
            try:
                check_contents(event)
            except (*NOT_READABLE, OverflowError, RecursionError):
                yield f"event {event.seq}, {event.kind} of {event.scope.owner}"
    except (*NOT_READABLE, OverflowError) as error:  # not even its kind or its time can be read
        raise MemogradError(
            f"The journal opens, but a row of it is no event ({error!r}): restore a copy."
        ) from error


def _policy(settings: MemorySettings, embedders: Sequence[Embedder]) -> Iterator[Finding]:
    """Whether the policy loads and reads this embedder's vectors; nothing where none is set."""
    if settings.policy is None and not settings.defer_below:
        return
    from memograd.memory.configured import check_policy, configured_manager

    manager = configured_manager(settings)
    for embedder in embedders:
        check_policy(manager, embedder)
    others = {"rules": "the rules decide", "trained": "the relation model decides"}
    other = others.get(settings.manager, f"the {settings.manager} decides")
    unsure = f"; below {settings.defer_below:g} {other}"
    yield Finding(
        "policy",
        True,
        f"The trained policy {manager.actor.removeprefix('policy:')} in {settings.policy} decides"
        f"{unsure if settings.defer_below else ''}.",
    )


def _ranking(settings: MemorySettings, embedders: Sequence[Embedder]) -> Iterator[Finding]:
    """Why searches rank by fusion; nothing where the trained ranker does."""
    from memograd.memory.search.ranker.trained import choose_ranking

    for embedder in embedders:
        reason = choose_ranking(settings.ranking, embedder.name).reason.rstrip(".")
        if not reason:
            continue
        chosen = settings.ranking in ("trained", "fusion")
        yield Finding(
            "ranking",
            None if chosen else False,
            f"Searches order their hits by rank fusion: {reason}.",
            "" if chosen else "set ranking=trained for the ranker that ships",
        )


def _damage(file: Path) -> str:
    """What SQLite says is wrong with the file; empty when it is whole."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)
        try:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        return str(error)
    return "" if answer == "ok" else " ".join(str(answer).split())[:200]


def _index(settings: MemorySettings) -> Iterator[Finding]:
    from memograd.memory.index.connection import Connection

    uri = settings.milvus_uri or str(settings.path.expanduser().absolute() / "index.db")
    is_file = "://" not in uri and uri.endswith(".db")
    if is_file and not Path(uri).expanduser().exists():
        yield Finding("index", True, f"There is no index in {uri} yet: it is made when needed.")
        return
    token = settings.milvus_token
    connection = Connection(uri, token.get_secret_value() if token else None)
    try:
        with connection.explained("list its collections"):
            collections: Any = connection.client.list_collections()
    finally:
        connection.close()
    name = settings.milvus_collection_name
    state = "holds" if name in collections else "does not hold yet"
    yield Finding("index", True, f"Milvus answers at {connection.where} and {state} {name!r}.")


def _endpoint(settings: MemorySettings) -> Iterator[Finding]:
    model = settings.openai_model
    configured = (
        settings.openai_base_url is not None
        or settings.openai_api_key is not None
        or model is not None
        or settings.embedder.startswith("openai")
    )
    if not configured:
        yield Finding("endpoint", None, "No OpenAI-compatible endpoint is set; none is needed.")
    else:
        listed = yield from _models(settings)
        if listed is None:
            return
        if model is not None and model not in listed:
            yield Finding(
                "chat model",
                False,
                f"The model {model!r} is not among the {len(listed)} that the endpoint lists.",
                f"set OPENAI_MODEL to one of them ({', '.join(listed[:5])})",
            )
            return
        if model is not None:
            yield Finding("chat model", True, f"The endpoint offers the model {model!r}.")
    if model is None:
        yield Finding(
            "chat model",
            None,
            "No chat model is set; add and search need none.",
            "set OPENAI_MODEL to let a model answer or decide",
        )


def _models(settings: MemorySettings) -> Generator[Finding, None, list[str] | None]:
    """Yields the finding about the endpoint; returns the ids of its models, None if unknown."""
    import openai

    from memograd.memory.embedders import endpoint_of

    endpoint = endpoint_of(settings)
    client = endpoint.client(retries=0, timeout=ENDPOINT_SECONDS)
    try:
        with endpoint.explained("list its models"):
            try:
                listed = [str(model.id) for model in client.models.list().data]
            except openai.NotFoundError:
                yield Finding("endpoint", None, f"{endpoint.shown} does not list its models.")
                return None
    except (AttributeError, TypeError):
        yield Finding(
            "endpoint",
            False,
            f"{endpoint.shown} answers something that is not a list of models.",
            "check OPENAI_BASE_URL, which usually ends in /v1",
        )
        return None
    yield Finding("endpoint", True, f"{endpoint.shown} answers and lists {len(listed)} models.")
    return listed


def _failed(name: str, sentence: str) -> Finding:
    """A finding from one of our errors, which say what is wrong, a colon, and what to do."""
    message, separator, remedy = sentence.rpartition(": ")
    if not separator or remedy.count("(") != remedy.count(")"):
        return Finding(name, False, sentence, "correct the setting that this is about")
    return Finding(name, False, f"{message}.", remedy.removesuffix("."))


def _secrets(settings: MemorySettings) -> list[str]:
    hidden = [settings.openai_api_key, settings.milvus_token]
    secrets = [secret.get_secret_value() for secret in hidden if secret is not None]
    secrets += [secret.rpartition(":")[2] for secret in secrets]  # of user:password
    for url in (settings.journal_url, settings.milvus_uri, settings.openai_base_url):
        password = urlsplit(url).password if url else None
        secrets += [password, unquote(password)] if password else []
    return sorted({one for one in secrets if len(one) >= SHORTEST_SECRET}, key=len, reverse=True)


def _without(secrets: Sequence[str], finding: Finding) -> Finding:
    for secret in secrets:
        finding = replace(
            finding,
            message=finding.message.replace(secret, "***"),
            remedy=finding.remedy.replace(secret, "***"),
        )
    return finding
