"""Searching goes on, whatever the ranker, the question and the scope are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.search.ranker.files import SHIPPED, save_ranker, shipped_ranker

TALK = [
    {"role": "user", "content": "I live in Oslo."},
    {"role": "assistant", "content": "Oslo is lovely in winter."},
    {"role": "user", "content": "我养了一只猫。"},
]


def opened(folder: Path, trigrams: Any, **given: Any) -> Memory:
    """A memory whose embedder has the name that the shipped ranker was trained on."""
    embedder = given.pop("embedder", None) or trigrams(384, "e5")
    return Memory.open(folder, embedder=embedder, reader="rules", manager="rules", **given)


def with_nan(content: dict[str, Any]) -> None:
    content["turns"]["weights"][0] = float("nan")


def of_another_version(content: dict[str, Any]) -> None:
    content["features_version"] = 99


def with_other_features(content: dict[str, Any]) -> None:
    content["features"] = content["features"][1:]


def of_another_embedder(content: dict[str, Any]) -> None:
    content["embedder"] = "minilm"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (with_nan, "finite numbers"),
        (of_another_version, "version 99"),
        (with_other_features, "train it again"),
        (of_another_embedder, "vectors of 'minilm'"),
        (None, "There is no ranker at"),
    ],
)
def test_a_ranker_that_cannot_rank_is_told_in_every_result(
    tmp_path: Path, trigrams: Any, spoil: Callable[[dict[str, Any]], None] | None, words: str
) -> None:
    path = tmp_path / "ranker.json"
    if spoil is not None:
        content = json.loads(SHIPPED.read_text("utf-8"))
        spoil(content)
        path.write_text(json.dumps(content), encoding="utf-8")
    with opened(tmp_path / "m", trigrams, ranking=str(path)) as memory:
        memory.add(TALK, user_id="u")
        found = memory.search("Where do I live?", user_id="u", turns=3)
        assert words in found["warning"]
        assert found["warning"].count(". ") == 0  # one sentence
        fused = memory.search("Where do I live?", user_id="u", turns=3, explain=True)
    with opened(tmp_path / "m", trigrams, ranking="fusion") as memory:
        asked_for = memory.search("Where do I live?", user_id="u", turns=3)
    assert "warning" not in asked_for
    for kind in ("results", "turns"):
        ours, expected = found[kind], asked_for[kind]
        assert [(hit["id"], hit["score"]) for hit in ours] == [
            (hit["id"], hit["score"]) for hit in expected
        ]
        assert ours
    assert words in fused["results"][0]["explain"]["not_trained"]


def test_a_ranker_that_lost_to_fusion_is_told(tmp_path: Path, trigrams: Any) -> None:
    lost = replace(shipped_ranker(), made_from={"held_out": {"adopted": False}})
    save_ranker(lost, tmp_path / "ranker.json")
    with opened(tmp_path / "m", trigrams, ranking=str(tmp_path)) as memory:
        memory.add(TALK, user_id="u")
        assert "did not beat" in memory.search("Where do I live?", user_id="u")["warning"]


def test_what_works_as_it_should_has_no_warning(tmp_path: Path, trigrams: Any) -> None:
    with opened(tmp_path / "a", trigrams) as memory:
        memory.add(TALK, user_id="u")
        assert "warning" not in memory.search("Where do I live?", user_id="u")
    # By default the ranker that ships is used where it fits; that it does not, is told on asking.
    with opened(tmp_path / "b", trigrams, embedder=trigrams()) as memory:
        memory.add(TALK, user_id="u")
        assert "warning" not in memory.search("Where do I live?", user_id="u")
        [first, *_] = memory.search("Where do I live?", user_id="u", explain=True)["results"]
        assert "not of 'trigram'" in first["explain"]["not_trained"]


@pytest.mark.parametrize(
    "filler", ["Where do I live, after all that? ", "我现在住在哪里呢？", "?!"]
)
def test_a_question_of_100_kilobytes(tmp_path: Path, trigrams: Any, filler: str) -> None:
    question = filler * (100_000 // len(filler))
    with opened(tmp_path / "m", trigrams) as memory:
        memory.add(TALK, user_id="u")
        found = memory.search(question, user_id="u", turns=3)
        assert found["results"]
        assert all(0.0 <= hit["score"] <= 1.0 for hit in found["results"] + found["turns"])
        assert memory.context(question, user_id="u").text


def test_a_scope_of_one_turn_and_of_none(tmp_path: Path, trigrams: Any) -> None:
    with opened(tmp_path / "m", trigrams) as memory:
        assert memory.search("Where?", user_id="nobody", turns=3) == {"results": [], "turns": []}
        memory.add([TALK[1]], user_id="one")
        found = memory.search("How is Oslo in winter?", user_id="one", turns=3)
        assert [hit["text"] for hit in found["turns"]] == [TALK[1]["content"]]
        assert 0.0 <= found["turns"][0]["score"] <= 1.0
        empty = memory.search("How is Oslo?", user_id="one", turns=3, as_of="2001-01-01T00:00:00Z")
        assert empty == {"results": [], "turns": []}


@pytest.mark.parametrize("threshold", [float("nan"), "x", True])
def test_a_threshold_that_is_no_number_is_refused(
    tmp_path: Path, trigrams: Any, threshold: Any
) -> None:
    with opened(tmp_path / "m", trigrams) as memory:
        memory.add(TALK, user_id="u")
        with pytest.raises(BadInput, match="threshold must be a number"):
            memory.search("Where do I live?", user_id="u", threshold=threshold)


def test_without_training_the_arguments_hold_for_turns_too(tmp_path: Path, trigrams: Any) -> None:
    with opened(tmp_path / "m", trigrams, ranking="fusion") as memory:
        memory.add(TALK, user_id="u")
        strict = memory.search("Where do I live?", user_id="u", turns=3, threshold=0.999)
        assert strict["turns"] == []
        words = memory.search("Oslo", user_id="u", turns=3, mode="lexical")
        assert all("Oslo" in hit["text"] for hit in words["turns"])
        assert len(words["turns"]) == 2
