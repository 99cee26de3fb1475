"""Random calls against a memory and against a plain dictionary: both must answer the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memograd.memory import Memory

USERS = ["alice", 'al"ice\\', "小红 or 1 == 1"]
RUNS = st.none() | st.sampled_from(["r1", "r'2"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    str.strip
) | st.sampled_from(
    ["我住在北京", "I live in Boston", 'quote " and \\', "a\nb", "🦊🦊", "x" * 5_000]
)
TAGS = st.none() | st.sampled_from(["red", 'b"lue', "绿"])


class MemoryMachine(RuleBasedStateMachine):
    """`model` maps the id of every item that is alive to (user, run, text, tag)."""

    embedder: Any

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.memory = Memory.open(Path(self.folder.name), embedder=self.embedder, env_file=None)
        self.model: dict[str, tuple[str, str | None, str, str | None]] = {}
        self.gone: list[str] = []

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    @rule(user=st.sampled_from(USERS), run=RUNS, text=TEXTS, tag=TAGS)
    def add(self, user: str, run: str | None, text: str, tag: str | None) -> None:
        metadata = None if tag is None else {"tag": tag}
        added = self.memory.add(text, user_id=user, run_id=run, metadata=metadata, infer=False)
        [result] = added["results"]
        assert (result["memory"], result["event"]) == (text, "ADD")
        assert result["id"] not in self.model
        self.model[result["id"]] = (user, run, text, tag)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), text=TEXTS)
    def update(self, data: st.DataObject, text: str) -> None:
        chosen = self._any(data)
        self.memory.update(chosen, text)
        user, run, _, tag = self.model[chosen]
        self.model[chosen] = (user, run, text, tag)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), erase=st.booleans())
    def forget(self, data: st.DataObject, erase: bool) -> None:
        chosen = self._any(data)
        if erase:
            self.memory.purge(chosen)
        else:
            self.memory.delete(chosen)
        del self.model[chosen]
        self.gone.append(chosen)

    @rule(user=st.sampled_from(USERS), run=RUNS)
    def delete_all(self, user: str, run: str | None) -> None:
        matching = self._matching(user, run)
        assert self.memory.delete_all(user_id=user, run_id=run)["deleted"] == len(matching)
        for chosen in matching:
            del self.model[chosen]
        self.gone += matching

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = Memory.open(Path(self.folder.name), embedder=self.embedder, env_file=None)

    @rule(user=st.sampled_from(USERS), run=RUNS, tag=TAGS)
    def get_all(self, user: str, run: str | None, tag: str | None) -> None:
        filters = None if tag is None else {"tag": tag}
        found = self.memory.get_all(user_id=user, run_id=run, filters=filters)["results"]
        expected = self._matching(user, run, tag)
        assert sorted(item["id"] for item in found) == sorted(expected)
        for item in found:
            self._check(item)

    @rule(user=st.sampled_from(USERS), run=RUNS, tag=TAGS, query=TEXTS, top_k=st.integers(1, 5))
    def search(self, user: str, run: str | None, tag: str | None, query: str, top_k: int) -> None:
        conditions: list[dict[str, Any]] = [{"user_id": user}]
        conditions += [{"run_id": run}] if run else []
        conditions += [{"tag": {"eq": tag}}] if tag else []
        found = self.memory.search(query, filters={"AND": conditions}, top_k=top_k, mode="dense")[
            "results"
        ]
        expected = self._matching(user, run, tag)
        assert len(found) == min(top_k, len(expected))
        for item in found:
            assert item["id"] in expected
            self._check(item)
        if expected:
            texts = [self.model[key][2] for key in expected]
            cosines = self.embedder.embed(texts) @ self.embedder.embed([query])[0]
            best = np.sort(np.round(cosines, 6))[::-1][:top_k]
            assert [item["similarity"] for item in found] == pytest.approx(best, abs=2e-6)

    @rule(user=st.sampled_from(USERS), query=TEXTS)
    def hybrid_search_stays_within_the_user(self, user: str, query: str) -> None:
        for item in self.memory.search(query, user_id=user, turns=3)["results"]:
            self._check(item)
            assert item["user_id"] == user

    @rule(tag=st.sampled_from(["red", 'b"lue', "绿"]))
    def search_across_users(self, tag: str) -> None:
        filters = {"user_id": "*", "tag": tag}
        found = self.memory.search("anything", filters=filters, top_k=1_000)["results"]
        expected = [key for key, item in self.model.items() if item[3] == tag]
        assert sorted(item["id"] for item in found) == sorted(expected)

    @invariant()
    def what_is_gone_is_not_there(self) -> None:
        for chosen in self.gone[-1:]:
            assert self.memory.get(chosen) is None
        for chosen in list(self.model)[-1:]:
            item = self.memory.get(chosen)
            assert item is not None
            self._check(item)

    def _any(self, data: st.DataObject) -> str:
        # By place: ids differ from run to run, and a run must be repeatable.
        return list(self.model)[data.draw(st.integers(0, len(self.model) - 1))]

    def _matching(self, user: str, run: str | None, tag: str | None = None) -> list[str]:
        return [
            key
            for key, item in self.model.items()
            if item[0] == user and run in (None, item[1]) and tag in (None, item[3])
        ]

    def _check(self, item: dict[str, Any]) -> None:
        user, run, text, tag = self.model[item["id"]]
        assert (item["user_id"], item.get("run_id"), item["memory"]) == (user, run, text)
        assert (item["metadata"] or {}).get("tag") == tag


def run(embedder: Any, *, examples: int, steps: int) -> None:
    machine = type("Machine", (MemoryMachine,), {"embedder": embedder})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_memory_answers_like_a_dictionary(trigrams: Callable[[], Any]) -> None:
    run(trigrams(), examples=15, steps=50)


@pytest.mark.slow
def test_a_memory_answers_like_a_dictionary_for_20_000_calls(
    trigrams: Callable[[], Any],
) -> None:
    run(trigrams(), examples=200, steps=100)
