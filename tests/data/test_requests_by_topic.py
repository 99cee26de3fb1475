"""The requests that are put together from written topics are those that the files hold."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "corpus"


@pytest.fixture
def by_topic() -> ModuleType:
    spec = importlib.util.spec_from_file_location("by_topic", CORPUS / "by_topic.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(path: Path) -> list[Any]:
    """Every dialogue without the third person of its facts, which the memory's reader words."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        turns = json.loads(line)["t"]
        found.append([[*t[:2], [f[:2] for f in t[2]] if len(t) > 2 else [], t[3:]] for t in turns])
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_files_are_what_the_topics_say(
    by_topic: ModuleType, language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "topics").symlink_to(CORPUS / "topics")
    (tmp_path / "dialogues").mkdir()
    monkeypatch.setattr(by_topic, "HERE", tmp_path)
    by_topic.main()
    name = f"{language}-topics.jsonl"
    written = said(tmp_path / "dialogues" / name)
    assert len(written) == by_topic.DIALOGUES
    assert written == said(CORPUS / "dialogues" / name)
