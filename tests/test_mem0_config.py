from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from memograd.config import MemorySettings, from_mem0_config
from memograd.config.mem0_config import WITHOUT_EFFECT
from memograd.config.memory_settings import ENVIRONMENT
from memograd.errors import BadInput

ASKED = {"reader": "chat", "manager": "chat"}  # what any llm section means


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def settings_of(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that differ from the defaults, secrets in the clear."""
    loaded = from_mem0_config(config)
    return {
        key: value.get_secret_value() if hasattr(value, "get_secret_value") else value
        for key in MemorySettings.model_fields
        if (value := getattr(loaded, key)) != getattr(MemorySettings(), key)
    }


def test_nothing_given_is_our_default() -> None:
    assert settings_of({}) == {}


def test_a_configuration_with_everything() -> None:
    endpoint = {"api_key": "sk-1", "openai_base_url": "http://host/v1"}
    config = {
        "version": "v1.1",
        "vector_store": {
            "provider": "milvus",
            "config": {
                "url": "http://milvus:19530/",
                "token": "root:Milvus",
                "collection_name": "people",
                "embedding_model_dims": 1536,
                "metric_type": "L2",
                "db_name": "tenant",
            },
        },
        "embedder": {
            "provider": "openai",
            "config": {"model": "text-embedding-3-small", **endpoint},
        },
        "llm": {
            "provider": "openai",
            "config": {"model": "gpt-4o-mini", "temperature": 0.1, **endpoint},
        },
        "history_db_path": "/data/store/history.db",
        "reranker": None,
    }
    assert settings_of(config) == {
        "milvus_uri": "http://milvus:19530/tenant",
        "milvus_token": "root:Milvus",
        "milvus_collection_name": "people",
        "dimension": 1536,
        "embedder": "openai:text-embedding-3-small",
        "openai_api_key": "sk-1",
        "openai_base_url": "http://host/v1",
        "openai_model": "gpt-4o-mini",
        **ASKED,
        "journal_url": "sqlite:////data/store/history.db",
        "path": Path("/data/store"),
    }


def test_a_history_in_any_folder_stays_that_file() -> None:
    file = "/data/what?x/a#b 100%25/history.db"
    settings = settings_of({"history_db_path": file})
    assert make_url(settings["journal_url"]).database == file
    assert settings["path"] == Path(file).parent


@pytest.mark.parametrize(
    ("embedder", "expected"),
    [
        ({"provider": "e5"}, {}),
        ({"provider": "minilm", "config": {}}, {"embedder": "minilm"}),
        ({"provider": "openai"}, {"embedder": "openai:text-embedding-3-small"}),
        ({"provider": "huggingface"}, {"embedder": "st:multi-qa-MiniLM-L6-cos-v1"}),
        (
            {"provider": "huggingface", "config": {"model": "BAAI/bge-m3", "embedding_dims": 1024}},
            {"embedder": "st:BAAI/bge-m3", "dimension": 1024},
        ),
    ],
)
def test_embedders(embedder: dict[str, Any], expected: dict[str, Any]) -> None:
    assert settings_of({"embedder": embedder}) == expected


def test_the_environment_fills_in_what_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-2")
    monkeypatch.setenv("OPENAI_MODEL", "another")
    config = {"llm": {"provider": "openai", "config": {"model": "mine"}}}
    assert settings_of(config) == ASKED | {"openai_api_key": "sk-2", "openai_model": "mine"}


def test_keys_without_effect_change_nothing() -> None:
    for section, provider in (("vector_store", "milvus"), ("llm", "openai"), ("embedder", "e5")):
        given = {key: 1 for key in WITHOUT_EFFECT[section]}
        asked = ASKED if section == "llm" else {}
        assert settings_of({section: {"provider": provider, "config": given}}) == asked


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"graph_store": {}}, "graph_store in the mem0 configuration has no counterpart"),
        ({"custom_instructions": "x"}, "custom_instructions in the mem0 configuration has no"),
        ({"llm": "openai"}, "llm in the mem0 configuration must be a mapping with provider and"),
        ({"llm": {"provider": "openai", "conf": {}}}, "must be a mapping with provider and config"),
        ({"llm": {"provider": "openai", "config": 3}}, "llm.config in the mem0 configuration must"),
        (
            {"vector_store": {"provider": "qdrant"}},
            "names the provider 'qdrant', but memograd has milvus.",
        ),
        (
            {"llm": {"provider": "ollama"}},
            "'ollama', but memograd has openai (any OpenAI-compatible server is reached with",
        ),
        ({"embedder": {"config": {}}}, "names the provider None, but memograd has openai, hugging"),
        (
            {"llm": {"provider": "openai", "config": {"response_callback": print}}},
            "llm.config.response_callback in the mem0 configuration has no counterpart",
        ),
        ({"history_db_path": ":memory:"}, "history_db_path in the mem0 configuration must be"),
        (
            {"vector_store": {"provider": "milvus", "config": {"url": "a.db", "db_name": "b"}}},
            "db_name in the mem0 configuration needs a Milvus server",
        ),
        (
            {
                "vector_store": {"provider": "milvus", "config": {"embedding_model_dims": 3}},
                "embedder": {"provider": "openai", "config": {"embedding_dims": 4}},
            },
            "vector_store.config.embedding_model_dims and embedder.config.embedding_dims in the"
            " mem0 configuration differ, but memograd has one dimension",
        ),
        (
            {"vector_store": {"provider": "milvus", "config": {"embedding_model_dims": "many"}}},
            "dimension in the code must be a whole number",
        ),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        from_mem0_config(config)


def test_differing_keys_are_not_shown() -> None:
    def part(key: str) -> dict[str, Any]:
        return {"provider": "openai", "config": {"api_key": key}}

    with pytest.raises(BadInput, match="one openai_api_key") as caught:
        from_mem0_config({"llm": part("sk-1"), "embedder": part("sk-2")})
    assert "sk-" not in str(caught.value)
