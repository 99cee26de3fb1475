"""What the memory can be told, and where it is told: code, environment, `.env`, a TOML file.

Earlier sources in that order win; what none of them names has its default. A mistake is one
sentence that names the key, where it was written and what is expected; nothing of ours that is
unknown is ever ignored. Secrets appear in no message. A `.env` file has `NAME=value` a line, with
quotes and comments as every other tool reads them; values are not expanded, so that a password may
hold any character, and other programs keep their variables there too.

Invariants: for every key, the first source in the order above that names it decides, whatever the
others say; a line of `.env` that means nothing is an error with its number, never skipped.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SecretStr, TypeAdapter, ValidationError

from memograd.config.load import read_toml
from memograd.config.settings import Settings, Text
from memograd.errors import BadInput

WholeNumber = Annotated[int, Field(strict=True, ge=1)]
Secret = Annotated[SecretStr, Field(min_length=1)]


class MemorySettings(Settings):
    """Everything that a memory can be told; the defaults need no server, no key and no torch."""

    path: Path = Path("memories")
    """Folder that holds the memory."""
    journal_url: Annotated[Text | None, Field(repr=False)] = None
    """SQLAlchemy URL of the journal; none: a SQLite file in the folder."""
    embedder: Text = "e5"
    """e5, minilm, st:<model id or folder>, openai:<model>, or openai (its model is set apart)."""
    dimension: WholeNumber | None = None
    """Length of the embedding vectors; none: whatever the embedder makes."""
    top_k: WholeNumber = 20
    """Results of a search, at most."""
    ranking: Text = "trained"
    """What orders the hits of a search: trained (the ranker that ships), fusion, or the path of a
    ranker of memograd train retrieval."""
    core_token_budget: WholeNumber = 512
    """Tokens of core memories that every prompt shows, at most."""
    reader: Literal["trained", "rules", "chat"] = "trained"
    """Who finds facts in what is said: the trained relation model, rules, or openai_model."""
    manager: Literal["trained", "rules", "chat"] = "trained"
    """Who decides what a message changes: the trained relation model, rules, or openai_model."""
    relations: Path | None = None
    """File of the relation model; none: the one that comes with the package."""
    policy: Path | None = None
    """Trained head that decides what a fact changes: the folder final of a run of memograd train
    memory-ops, or a folder of policies, whose current one is followed; none: manager decides."""
    defer_below: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)] = 0.0
    """Decisions of the policy that are less probable than this are left to manager."""
    categories: dict[Text, Text] = Field(default_factory=dict)
    """Your own categories of memories: a name and what belongs there."""
    custom_instructions: Text | None = None
    """What a reader that is a chat model should heed besides its own instructions."""
    milvus_uri: Annotated[Text | None, Field(repr=False)] = None
    """Milvus or Zilliz server, or a path ending in .db; none: Milvus Lite in the folder."""
    milvus_token: Secret | None = None
    """Milvus token, or user:password."""
    milvus_collection_name: Text = "memograd"
    """Collection that holds the index."""
    openai_base_url: Annotated[Text | None, Field(repr=False)] = None
    """OpenAI-compatible endpoint for embeddings and chat; none: OpenAI's own."""
    openai_api_key: Secret | None = None
    """Key of the endpoint."""
    openai_model: Text | None = None
    """Chat model that answers; none: no chat model."""
    openai_vision_model: Text | None = None
    """Chat model that describes the pictures in messages; none: nobody does."""
    openai_embedding_model: Text | None = None
    """Embedding model behind the embedder `openai`."""


ENVIRONMENT: Final[Mapping[str, str]] = {
    "MEMOGRAD_PATH": "path",
    "MEMOGRAD_JOURNAL_URL": "journal_url",
    "MEMOGRAD_EMBEDDER": "embedder",
    "MEMOGRAD_TOP_K": "top_k",
    "MEMOGRAD_RANKING": "ranking",
    "MEMOGRAD_CORE_TOKEN_BUDGET": "core_token_budget",
    "MEMOGRAD_READER": "reader",
    "MEMOGRAD_MANAGER": "manager",
    "MEMOGRAD_RELATIONS": "relations",
    "MEMOGRAD_POLICY": "policy",
    "MEMOGRAD_DEFER_BELOW": "defer_below",
    "MEMOGRAD_CUSTOM_INSTRUCTIONS": "custom_instructions",
    "MILVUS_URI": "milvus_uri",
    "MILVUS_TOKEN": "milvus_token",
    "MILVUS_COLLECTION_NAME": "milvus_collection_name",
    "MILVUS_DIMENSION": "dimension",
    "OPENAI_BASE_URL": "openai_base_url",
    "OPENAI_API_KEY": "openai_api_key",
    "OPENAI_MODEL": "openai_model",
    "OPENAI_VISION_MODEL": "openai_vision_model",
    "OPENAI_EMBEDDING_MODEL": "openai_embedding_model",
}
"""Environment variables (or lines of `.env`) and what they set; `categories` needs a file."""

ALIASES: Final[Mapping[str, str]] = {"topk": "top_k", "collection_name": "milvus_collection_name"}
"""Other words for some keys, accepted in files and in code."""

DEFAULT_ENV_FILE: Final = Path(".env")

_OTHERS_OF_OURS: Final = frozenset(  # read elsewhere, no settings of the memory
    {
        *("MEMOGRAD_CACHE", "MEMOGRAD_DATA_MIRROR"),
        *("MEMOGRAD_GATEWAY_KEY", "MEMOGRAD_UPSTREAM_KEY", "MEMOGRAD_REWARD_MODEL_KEY"),
        *("MEMOGRAD_SERVE_TOKEN", "MEMOGRAD_KEY", "MEMOGRAD_HOOK_SECONDS"),
        *("MEMOGRAD_ROLLOUT_URL", "MEMOGRAD_ROLLOUT_ID"),  # an agent may open a memory
        *("MEMOGRAD_PROMPT_KEY", "MEMOGRAD_EVALUATION_KEY"),
        *("MEMOGRAD_TEST_MILVUS", "MEMOGRAD_TEST_POSTGRES", "MEMOGRAD_TEST_VLLM"),
        *("MEMOGRAD_AGENTS_PYTHON", "MEMOGRAD_VERIFIERS_PYTHON"),  # of tests and examples
    }
)
_NOT_SHOWN: Final = frozenset(
    {"journal_url", "milvus_token", "milvus_uri", "openai_api_key", "openai_base_url"}
)  # a key or a password may be part of them
_EXPECTED: Final[Mapping[str, str]] = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "path_type": "must be a path",
    "dict_type": "must be a table of names and descriptions",
}
_NUMBERS: Final[Mapping[str, type[int] | type[float]]] = {
    "dimension": int,
    "top_k": int,
    "core_token_budget": int,
    "defer_below": float,
}


@dataclass(frozen=True, slots=True)
class _Given:
    """One value and where it was written, as a message says it: `the file m.toml`."""

    key: str
    value: Any
    where: str


def load_memory_settings(
    file: Path | None = None, env_file: Path | None = DEFAULT_ENV_FILE, **given: Any
) -> MemorySettings:
    """The settings from code (`given`), the environment, `.env` and the `[memory]` table of `file`.

    An empty environment variable counts as not set; None in code too. `env_file=None` reads no
    `.env`; the default one may be missing. Relative paths are relative to the working directory,
    wherever they are written.

    Raises BadInput for a file that cannot be read, an unknown key and a value that does not fit.
    """
    sources = [
        *_from_mapping({k: v for k, v in given.items() if v is not None}, "the code"),
        *_from_environment(os.environ, "the environment"),
        *_from_env_file(env_file),
        *_from_toml(file),
    ]
    chosen: dict[str, _Given] = {}
    for value in sources:
        chosen.setdefault(value.key, value)
    try:
        return MemorySettings.model_validate({key: one.value for key, one in chosen.items()})
    except ValidationError as error:
        first = error.errors()[0]
        raise _misfit(chosen[str(first["loc"][0])], first) from None


def _from_mapping(values: Mapping[str, Any], where: str) -> Iterator[_Given]:
    written: dict[str, str] = {}
    for name, value in values.items():
        key = ALIASES.get(name, name)
        if key not in MemorySettings.model_fields:
            raise _unknown(name, [*MemorySettings.model_fields, *ALIASES], where)
        if key in written:
            raise BadInput(f"{written[key]} and {name} in {where} mean the same: keep one of them.")
        written[key] = name
        yield _Given(key, value, where)


def _from_environment(variables: Mapping[str, str], where: str) -> Iterator[_Given]:
    for name in variables:
        ours = name.startswith("MEMOGRAD_") and name not in _OTHERS_OF_OURS
        if ours and name not in ENVIRONMENT:
            raise _unknown(name, list(ENVIRONMENT), where)
    for name, key in ENVIRONMENT.items():
        text = variables.get(name, "").strip()
        if text:
            told = _Given(key, text, f"{where} ({name})")
            yield _Given(key, _number(told), told.where) if key in _NUMBERS else told


def _from_env_file(file: Path | None) -> Iterator[_Given]:
    if file is None or (file == DEFAULT_ENV_FILE and not file.exists()):
        return iter(())
    return _from_environment(read_dotenv(file), f"the file {file}")


def _from_toml(file: Path | None) -> Iterator[_Given]:
    if file is None:
        return iter(())
    tables = read_toml(file)
    for name, table in tables.items():
        if name != "memory" or not isinstance(table, dict):
            raise BadInput(
                f"{name} in the file {file} is not expected: the settings of a memory stand in its"
                " table [memory]."
            )
    return _from_mapping(tables.get("memory", {}), f"the file {file}")


def _number(told: _Given) -> int | float:
    try:
        return TypeAdapter(_NUMBERS[told.key]).validate_strings(told.value)
    except ValidationError as error:
        raise _misfit(told, error.errors()[0]) from None


def _misfit(told: _Given, problem: Any) -> BadInput:
    """The sentence about a value that pydantic refused; `problem` is one of its error details."""
    expected = str(_EXPECTED.get(problem["type"], problem["msg"])).format(**problem.get("ctx", {}))
    said = "" if told.key in _NOT_SHOWN else f", not {told.value!r}"
    return BadInput(f"{told.key} in {told.where} {expected}{said}.")


def _unknown(name: str, known: list[str], where: str) -> BadInput:
    close = difflib.get_close_matches(name, known)
    if close:
        return BadInput(f"Unknown key {name!r} in {where}: did you mean {' or '.join(close)}?")
    return BadInput(f"Unknown key {name!r} in {where}; the known keys are {', '.join(known)}.")


def cache_folder() -> Path:
    """`$MEMOGRAD_CACHE`, else `~/.cache/memograd`; it need not exist yet."""
    return Path(os.environ.get("MEMOGRAD_CACHE") or Path.home() / ".cache" / "memograd")


def read_dotenv(file: Path) -> dict[str, str]:
    """The variables in `file`; the last of two lines with one name counts.

    Raises BadInput when the file cannot be read or a line is not `NAME=value`.
    """
    from dotenv.parser import parse_stream

    try:
        with file.open(encoding="utf-8-sig") as stream:
            lines = list(parse_stream(stream))
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"The environment file {file} cannot be read: {reason}.") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"The environment file {file} is not UTF-8 text: {error}.") from None
    for line in lines:
        if line.error:
            raise BadInput(
                f"Line {line.original.line} of the environment file {file} is not NAME=value."
            )
    return {line.key: line.value for line in lines if line.key and line.value is not None}
