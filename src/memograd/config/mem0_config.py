"""A configuration in mem0's form, read as settings of ours.

Read: `vector_store` (milvus), `embedder` (openai, huggingface, and our own names), `llm` (openai),
`custom_instructions` (with `llm`) and `history_db_path`. Accepted without effect, because nothing
here depends on them: `version`, `metric_type` (unit vectors rank alike under every metric) and the
sampling parameters of `llm` (temperature and the like). Everything else is refused by name, so no
wish is dropped in silence.
A section that is absent means our default, not mem0's: no server and no key are needed. With an
`llm`, the language model finds facts and decides, as in mem0; without one, rules do.

Invariant: every key either changes the settings, is in the lists below, or is refused. Imports
`memory_settings` and errors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from memograd.config.memory_settings import (
    DEFAULT_ENV_FILE,
    MemorySettings,
    load_memory_settings,
)
from memograd.errors import BadInput

SECTIONS: Final = ("vector_store", "embedder", "llm", "custom_instructions", "history_db_path")
WITHOUT_EFFECT: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"version"}),
    "vector_store": frozenset({"metric_type"}),
    "embedder": frozenset(),
    "llm": frozenset(
        {"temperature", "max_tokens", "top_p", "top_k", "reasoning_effort", "vision_details"}
    ),
}
"""Keys of the configuration ("") and of each section's `config` that change nothing here."""

OWN_EMBEDDERS: Final = ("e5", "minilm")
MEM0_HUGGINGFACE_MODEL: Final = "multi-qa-MiniLM-L6-cos-v1"
MEM0_OPENAI_MODEL: Final = "text-embedding-3-small"


def from_mem0_config(config: Mapping[str, Any]) -> MemorySettings:
    """The settings that a mem0 configuration describes; it wins over environment and `.env`.

    Raises BadInput for a provider or a key that memograd has no counterpart for.
    """
    values: dict[str, tuple[Any, str]] = {}
    for key, value in config.items():
        if key == "vector_store":
            _merge(values, _vector_store(_section(key, value, ("milvus",), _STORE_KEYS)[1]))
        elif key == "embedder":
            providers = ("openai", "huggingface", *OWN_EMBEDDERS)
            _merge(values, _embedder(*_section(key, value, providers, _EMBEDDER_KEYS)))
        elif key == "llm":
            _merge(values, _llm(_section(key, value, ("openai",), _LLM_KEYS)[1]))
        elif key == "custom_instructions" and value is not None:
            if config.get("llm") is None:
                raise BadInput(
                    "custom_instructions in the mem0 configuration has no reader: they are for a"
                    " language model, so give llm too."
                )
            values["custom_instructions"] = (value, key)
        elif key == "history_db_path":
            _merge(values, _history(value))
        elif key not in WITHOUT_EFFECT[""] and value is not None:
            raise BadInput(
                f"{key} in the mem0 configuration has no counterpart in memograd: leave it out"
                f" (known are {', '.join(SECTIONS)})."
            )
    return load_memory_settings(
        None, DEFAULT_ENV_FILE, **{setting: value for setting, (value, _) in values.items()}
    )


_STORE_KEYS: Final = ("url", "token", "collection_name", "embedding_model_dims", "db_name")
_EMBEDDER_KEYS: Final = ("model", "api_key", "embedding_dims", "openai_base_url")
_LLM_KEYS: Final = ("model", "api_key", "openai_base_url", "enable_vision")

_Values = Mapping[str, tuple[Any, str]]


def _section(
    name: str, section: Any, providers: Collection[str], keys: Collection[str]
) -> tuple[str, dict[str, Any]]:
    """The provider of a section and the keys of its `config` that are given, both checked."""
    if not isinstance(section, Mapping) or not set(section) <= {"provider", "config"}:
        raise BadInput(
            f"{name} in the mem0 configuration must be a mapping with provider and config."
        )
    provider = section.get("provider")
    if not isinstance(provider, str) or provider not in providers:
        hint = (
            " (any OpenAI-compatible server is reached with openai and openai_base_url)"
            if "openai" in providers
            else ""
        )
        raise BadInput(
            f"{name} in the mem0 configuration names the provider {provider!r}, but memograd has"
            f" {', '.join(providers)}{hint}."
        )
    given = section.get("config") or {}
    if not isinstance(given, Mapping):
        raise BadInput(f"{name}.config in the mem0 configuration must be a mapping.")
    given = {key: value for key, value in given.items() if value is not None}
    for key in given:
        if key not in keys and key not in WITHOUT_EFFECT[name]:
            raise BadInput(
                f"{name}.config.{key} in the mem0 configuration has no counterpart in memograd:"
                f" leave it out (known are {', '.join(keys)})."
            )
    return provider, {key: value for key, value in given.items() if key in keys}


def _vector_store(given: Mapping[str, Any]) -> _Values:
    names = {
        "url": "milvus_uri",
        "token": "milvus_token",
        "collection_name": "milvus_collection_name",
        "embedding_model_dims": "dimension",
    }
    values = _named("vector_store", given, names)
    if given.get("db_name"):
        url = str(given.get("url", "http://localhost:19530"))
        if not url.startswith(("http://", "https://")):
            raise BadInput(
                "vector_store.config.db_name in the mem0 configuration needs a Milvus server, but"
                f" url {url!r} is a file of Milvus Lite: leave db_name out."
            )
        # The path of a server's address names its database.
        address = f"{url.rstrip('/')}/{given['db_name']}"
        values["milvus_uri"] = (address, "vector_store.config.db_name")
    return values


def _embedder(provider: str, given: Mapping[str, Any]) -> _Values:
    if provider in OWN_EMBEDDERS:
        name = provider
    elif provider == "huggingface":
        name = f"st:{given.get('model', MEM0_HUGGINGFACE_MODEL)}"
    else:
        name = f"openai:{given.get('model', MEM0_OPENAI_MODEL)}"
    names = {
        "embedding_dims": "dimension",
        "api_key": "openai_api_key",
        "openai_base_url": "openai_base_url",
    }
    return {"embedder": (name, "embedder.provider"), **_named("embedder", given, names)}


def _llm(given: Mapping[str, Any]) -> _Values:
    names = {
        "model": "openai_model",
        "api_key": "openai_api_key",
        "openai_base_url": "openai_base_url",
    }
    who = {"reader": ("chat", "llm"), "manager": ("chat", "llm")}
    if given.get("enable_vision"):
        if not given.get("model"):
            raise BadInput(
                "llm.config.enable_vision in the mem0 configuration needs llm.config.model: name"
                " the model that sees."
            )
        who["openai_vision_model"] = (given["model"], "llm.config.enable_vision")
    return {**_named("llm", given, names), **who}


def _history(value: Any) -> _Values:
    if not isinstance(value, str | Path) or str(value) in ("", ":memory:"):
        raise BadInput(
            f"history_db_path in the mem0 configuration must be the path of a file, not {value!r}:"
            " the journal is what memories are kept in."
        )
    from sqlalchemy.engine import URL  # quotes what would mean something in a URL

    file = Path(value).expanduser().absolute()
    where = "history_db_path"
    url = URL.create("sqlite", database=str(file)).render_as_string()
    return {"journal_url": (url, where), "path": (file.parent, where)}


def _named(
    section: str, given: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, tuple[Any, str]]:
    return {
        names[key]: (value, f"{section}.config.{key}")
        for key, value in given.items()
        if key in names
    }


def _merge(values: dict[str, tuple[Any, str]], more: _Values) -> None:
    """Add settings of another section; memograd has one place for each, so they must agree."""
    for setting, (value, where) in more.items():
        known = values.setdefault(setting, (value, where))
        if known[0] != value:
            raise BadInput(
                f"{known[1]} and {where} in the mem0 configuration differ, but memograd has one"
                f" {setting}: give both the same."
            )
