"""Conversations small enough that a whole run takes seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memograd.data import generate_conversations, write_locomo


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three generated conversations `gen-7-0` to `gen-7-2` with eight questions each,
    and of their turns only those that hold an answer."""
    path = tmp_path_factory.mktemp("data") / "small.json"
    write_locomo(generate_conversations(3, seed=7, sessions=3, turns_per_session=6), path)
    content = json.loads(path.read_text(encoding="utf-8"))
    for conversation in content:
        conversation["qa"] = conversation["qa"][:8]
        evidence = {turn for question in conversation["qa"] for turn in question["evidence"]}
        for name, session in conversation["conversation"].items():
            if isinstance(session, list):
                kept = [turn for turn in session if turn["dia_id"] in evidence]
                conversation["conversation"][name] = kept
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
