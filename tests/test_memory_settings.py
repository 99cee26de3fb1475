from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.config import MemorySettings, load_memory_settings
from memograd.config.memory_settings import ENVIRONMENT
from memograd.errors import BadInput

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working directory, and none of our variables in the environment."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_defaults_need_nothing() -> None:
    assert load_memory_settings() == MemorySettings()
    assert MemorySettings().path == Path("memories")
    assert (MemorySettings().embedder, MemorySettings().top_k) == ("e5", 20)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(told=st.fixed_dictionaries({}, optional={
    source: st.integers(1, 99) for source in ("code", "environment", "dotenv", "file")
}))  # fmt: skip
def test_the_first_source_that_names_a_key_decides(bare: Path, told: dict[str, int]) -> None:
    (bare / ".env").write_text(f"MEMOGRAD_TOP_K={told.get('dotenv', '')}\n", encoding="utf-8")
    line = f"top_k = {told['file']}" if "file" in told else ""
    (bare / "m.toml").write_text(f"[memory]\n{line}\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMOGRAD_TOP_K", str(told.get("environment", "")))
        loaded = load_memory_settings(Path("m.toml"), top_k=told.get("code"))
    order = ("code", "environment", "dotenv", "file")
    assert loaded.top_k == next((told[source] for source in order if source in told), 20)


def test_every_variable_sets_its_key(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {name: str(number) for number, name in enumerate(ENVIRONMENT, start=1)}
    told |= {"MEMOGRAD_READER": "chat", "MEMOGRAD_MANAGER": "chat", "MEMOGRAD_DEFER_BELOW": "0.5"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    loaded = load_memory_settings()
    for name, key in ENVIRONMENT.items():
        value: Any = getattr(loaded, key)
        value = value.get_secret_value() if hasattr(value, "get_secret_value") else value
        assert str(value) == told[name]


def test_a_file_with_everything(bare: Path) -> None:
    (bare / "m.toml").write_text(
        '[memory]\npath = "store"\ntopk = 7\ncollection_name = "people"\ndimension = 384\n'
        '[memory.categories]\nfood = "what they like to eat"\n"家庭" = "家人"\n',
        encoding="utf-8",
    )
    loaded = load_memory_settings(Path("m.toml"))
    assert loaded.path == Path("store")
    assert (loaded.top_k, loaded.milvus_collection_name, loaded.dimension) == (7, "people", 384)
    assert loaded.categories == {"food": "what they like to eat", "家庭": "家人"}


def test_dotenv_lines_as_every_tool_reads_them(bare: Path) -> None:
    (bare / "mine.env").write_text(
        "# ours\nexport OPENAI_MODEL='a # b'  # comment\nMILVUS_TOKEN=pa$$${HOME}word\n"
        "OTHER_PROGRAM=1\nOPENAI_BASE_URL=\n",
        encoding="utf-8",
    )
    loaded = load_memory_settings(env_file=Path("mine.env"))
    assert loaded.openai_model == "a # b"
    assert loaded.milvus_token is not None
    assert loaded.milvus_token.get_secret_value() == "pa$$${HOME}word"
    assert loaded.openai_base_url is None
    assert load_memory_settings(env_file=None) == MemorySettings()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"top_k": 0}, "top_k in the code must be at least 1, not 0."),
        ({"top_k": "3"}, "top_k in the code must be a whole number, not '3'."),
        ({"top_k": True}, "top_k in the code must be a whole number, not True."),
        ({"embedder": ""}, "embedder in the code must not be empty, not ''."),
        ({"path": 3}, "path in the code must be a path, not 3."),
        ({"tpk": 1}, "Unknown key 'tpk' in the code: did you mean topk or top_k?"),
        ({"topk": 1, "top_k": 2}, "topk and top_k in the code mean the same: keep one of them."),
        ({"openai_api_key": 12345}, "openai_api_key in the code must be a text."),
        ({"defer_below": "0.5"}, "defer_below in the code must be a number, not '0.5'."),
        ({"defer_below": 1.5}, "defer_below in the code must be at most 1, not 1.5."),
        ({"defer_below": float("nan")}, "defer_below in the code must be a number, not nan."),
    ],
)
def test_mistakes_in_code(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(sentence)}$"):
        load_memory_settings(**given)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("MEMOGRAD_TOP_K", "many", "the environment (MEMOGRAD_TOP_K) must be a whole number, not"),
        ("MEMOGRAD_DEFER_BELOW", "often", "(MEMOGRAD_DEFER_BELOW) must be a number, not 'often'."),
        ("MEMOGRAD_DEFER_BELOW", "-1", "(MEMOGRAD_DEFER_BELOW) must be at least 0, not -1.0."),
        ("MILVUS_DIMENSION", "0", "dimension in the environment (MILVUS_DIMENSION) must be at"),
        ("MEMOGRAD_TOPK", "3", "'MEMOGRAD_TOPK' in the environment: did you mean MEMOGRAD_TOP_K"),
    ],
)
def test_mistakes_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match=re.escape(sentence)):
        load_memory_settings()


def test_variables_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMOGRAD_CACHE", "OPENAI_ORG_ID", "MILVUS_HOME"):
        monkeypatch.setenv(name, "elsewhere")
    assert load_memory_settings() == MemorySettings()


def test_every_variable_that_the_docs_and_the_code_name_may_be_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A memory is opened beside all of them: in the shell that `mcp install` was run in, by the
    agent of a rollout."""
    texts = [*(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py"), ROOT / "README.md"]
    named = {
        name
        for file in texts
        for name in re.findall(r"\bMEMOGRAD_[A-Z_]*[A-Z]\b", file.read_text(encoding="utf-8"))
    }
    assert {"MEMOGRAD_KEY", "MEMOGRAD_ROLLOUT_ID", "MEMOGRAD_HOOK_SECONDS"} <= named
    for name in named - set(ENVIRONMENT):
        monkeypatch.setenv(name, "elsewhere")
    assert load_memory_settings() == MemorySettings()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[memory]\ntop_k = 'x'", "top_k in the file m.toml must be a whole number, not 'x'."),
        ("[memory]\nnothing = 1", "Unknown key 'nothing' in the file m.toml; the known keys are"),
        ("top_k = 3", "top_k in the file m.toml is not expected: the settings of a memory stand"),
        ("[memory.categories]\na = 1", "categories in the file m.toml must be a text"),
        ("[memory", "The configuration file m.toml is not valid TOML"),
    ],
)
def test_mistakes_in_a_file(bare: Path, text: str, sentence: str) -> None:
    (bare / "m.toml").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=re.escape(sentence)):
        load_memory_settings(Path("m.toml"))


def test_files_with_the_mark_of_windows_editors(bare: Path) -> None:
    (bare / "m.toml").write_bytes(b"\xef\xbb\xbf[memory]\ntop_k = 7\n")
    (bare / ".env").write_bytes(b"\xef\xbb\xbfMEMOGRAD_TOP_K=8\n")
    assert load_memory_settings(bare / "m.toml").top_k == 8
    (bare / ".env").unlink()
    assert load_memory_settings(bare / "m.toml").top_k == 7


def test_files_that_cannot_be_read(bare: Path) -> None:
    with pytest.raises(BadInput, match=r"file none\.toml cannot be read: No such file"):
        load_memory_settings(Path("none.toml"))
    with pytest.raises(BadInput, match=r"environment file none\.env cannot be read: No such file"):
        load_memory_settings(env_file=Path("none.env"))
    (bare / ".env").write_text("A=1\n!! nonsense\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"Line 2 of the environment file \.env is not NAME=value"):
        load_memory_settings()
    (bare / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(BadInput, match=r"environment file \.env is not UTF-8"):
        load_memory_settings()


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "journal_url": "postgresql://me:hidden-1@host/db",
        "openai_api_key": "hidden-2",
        "milvus_token": "hidden-3",
        "openai_base_url": "http://me:hidden-4@host/v1",
        "milvus_uri": "http://me:hidden-5@host",
    }
    loaded = load_memory_settings(**secrets)
    assert "hidden" not in f"{loaded!r} {loaded}"
    with pytest.raises(BadInput) as caught:
        load_memory_settings(journal_url=["hidden"])
    assert "hidden" not in str(caught.value)


def test_the_example_file_names_every_variable_and_no_other(bare: Path) -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    named = {}
    for before, line in zip(["", *lines], lines, strict=False):
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            named[name] = value
            assert before.startswith("# "), f"{name} has no comment"
    assert set(named) == set(ENVIRONMENT)
    (bare / ".env").write_text("\n".join(lines), encoding="utf-8")
    assert load_memory_settings() == MemorySettings()


def test_every_key_but_the_categories_has_a_variable() -> None:
    assert set(ENVIRONMENT.values()) == set(MemorySettings.model_fields) - {"categories"}
    assert all(field.description for field in MemorySettings.model_fields.values())


def test_importing_the_settings_stays_light() -> None:
    code = (
        "import sys, memograd.config;"
        "print({'dotenv', 'pydantic_settings', 'numpy', 'sqlalchemy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
