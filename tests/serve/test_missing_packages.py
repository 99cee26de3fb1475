"""A package of the extra `serve` that is not there is named in one sentence."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

from command_line import refused

WITH_OTHERS = {"anyio", "h11", "httpx", "pydantic-core", "starlette"}
"""What the other packages bring."""


def test_the_server_names_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    extra = told["project"]["optional-dependencies"]["serve"]
    names = {one.partition(">")[0] for one in extra} - WITH_OTHERS
    assert len(names) == 5
    found = importlib.util.find_spec
    for name in sorted(names):
        module = name.replace("-", "_")
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda one, gone=module: None if one == gone else found(one),
        )
        sentence = refused(capsys, "serve", "--path", tmp_path / "memories")
        assert module in sentence and "pip install 'memograd[serve]'" in sentence
    assert not (tmp_path / "memories").exists()
