"""A memory that a trained policy decides for: what it writes, when it gives way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.doctor import examine
from memograd.memory.manager import RuleManager
from memograd.memory.manager.trained.files import save_head

TOLD = "I live in Boston."


@pytest.fixture
def opened(
    tmp_path: Path, trigrams: Callable[[], Any], make_head: Callable[..., Any]
) -> Callable[..., Memory]:
    """Opens the memory in `m` with a policy that has these logits; the version is beside it."""

    def open_memory(defer_below: float | None = None, **logits: float) -> Memory:
        head = make_head(**logits)
        save_head(head, tmp_path / head.version)
        return Memory.open(
            tmp_path / "m",
            embedder=trigrams(),
            env_file=None,
            policy=tmp_path / head.version,
            defer_below=defer_below,
        )

    return open_memory


def kinds(memory: Memory, item_id: str) -> list[str]:
    return [line["event"] for line in memory.history(item_id)]


def test_every_operation_reaches_the_memory(opened: Callable[..., Memory]) -> None:
    with opened(add=5) as memory:
        [first] = memory.add(TOLD, user_id="alice")["results"]
        [second] = memory.add(TOLD, user_id="alice")["results"]  # the rules would decline it
        assert (first["event"], second["event"]) == ("ADD", "ADD")
        assert first["actor"] == memory.manager.actor
        assert first["reason"] == "ADD has probability 1.00."
    with opened(none=5) as memory:
        assert memory.add("I have a cat.", user_id="alice") == {"results": []}
        declined = memory.store.journal.tail("user:alice")[-1]
        assert (declined.kind, declined.actor) == ("NONE", memory.manager.actor)
    with opened(update=5) as memory:
        [changed] = memory.add("I live in Denver.", user_id="alice")["results"]
        assert changed["event"] == "UPDATE"
        assert kinds(memory, changed["id"]) == ["ADD", "UPDATE"]
        assert "Denver" in memory.get(changed["id"])["memory"]  # type: ignore[index]
    with opened(delete=5) as memory:
        [gone] = memory.add("I live in Denver.", user_id="alice")["results"]
        assert gone["event"] == "DELETE"
        assert memory.get(gone["id"]) is None
        assert memory.manager.actor.startswith("policy:")


def test_purging_an_item_takes_what_was_declined_for_its_sake(
    opened: Callable[..., Memory], tmp_path: Path
) -> None:
    """What the policy ignores because an item says it must not outlive that item."""
    secret = "zanzibar violet 4711"
    with opened(add=5) as memory:
        [added] = memory.add(f"My boat is called {secret}.", user_id="alice")["results"]
    with opened(none=5) as memory:
        assert memory.add(f"My boat is called {secret}.", user_id="alice") == {"results": []}
        memory.add("I like the rain in Bergen.", user_id="alice")  # says nothing of the kind
        declined = memory.store.journal.tail("user:alice")
        assert [(event.after or {})["item_id"] for event in declined if event.kind == "NONE"] == [
            added["id"],
            None,
        ]
        memory.purge(added["id"])
        left = [event.after for event in memory.store.journal.tail("user:alice")]
        assert secret not in str(left)
        assert "Bergen" in str(left)


def test_the_journal_names_the_version_of_each_operation(opened: Callable[..., Memory]) -> None:
    actors = set()
    for logits in ({"add": 5.0}, {"add": 6.0}):
        with opened(**logits) as memory:
            memory.add(TOLD, user_id="alice")
            event = memory.store.journal.tail("user:alice")[-1]
            assert event.actor == memory.manager.actor
            actors.add(event.actor)
    assert len(actors) == 2


def test_a_random_policy_keeps_the_memory_whole(
    tmp_path: Path, trigrams: Callable[[], Any], make_head: Callable[..., Any]
) -> None:
    said = [
        "I live in Boston.",
        "I have a cat.",
        "我住在北京。",
        "I live in Rome now.",
        "我喜欢茶。",
    ]
    for seed in range(3):
        head = make_head(seed=seed)
        save_head(head, tmp_path / head.version)
        with Memory.open(
            tmp_path / f"m{seed}",
            embedder=trigrams(),
            env_file=None,
            policy=tmp_path / head.version,
        ) as memory:
            for text in said * 2:
                memory.add(text, user_id="alice")
            living = {item["id"] for item in memory.get_all(user_id="alice")["results"]}
            for event in memory.store.journal.tail("user:alice"):
                if event.kind in ("ADD", "UPDATE", "DELETE"):
                    assert (event.subject in living) == (
                        kinds(memory, event.subject)[-1] != "DELETE"
                    )


def test_what_it_is_unsure_of_is_left_to_the_rules(opened: Callable[..., Memory]) -> None:
    with opened(defer_below=0.9, add=0.0, none=0.5) as memory:
        [added] = memory.add(TOLD, user_id="alice")["results"]
        assert added["event"] == "ADD"
        assert "(decided by rules: policy:" in added["reason"]
        assert "was only 62% sure)" in added["reason"]
    with opened(defer_below=0.6, add=0.0, none=0.5) as memory:
        assert memory.add("I have a dog.", user_id="alice") == {"results": []}


def test_what_it_is_unsure_of_is_left_to_the_chat_model(
    tmp_path: Path, trigrams: Callable[[], Any], make_head: Callable[..., Any], chat_server: Any
) -> None:
    head = make_head(add=0.0, none=0.5)
    save_head(head, tmp_path / "head")
    chat_server.status = 400
    with (
        Memory.open(
            tmp_path / "m",
            embedder=trigrams(),
            env_file=None,
            policy=tmp_path / "head",
            defer_below=0.9,
            manager="chat",
            openai_base_url=chat_server.url,
            openai_model="m",
        ) as memory,
        pytest.raises(Exception, match="no such luck"),
    ):
        memory.add(TOLD, user_id="alice")
    assert chat_server.requests


def test_settings_that_do_not_go_together_are_refused(
    tmp_path: Path, trigrams: Callable[[], Any], make_head: Callable[..., Any]
) -> None:
    save_head(make_head(add=1.0), tmp_path / "head")
    place = tmp_path / "m"

    def refused(sentence: str, **given: Any) -> None:
        with pytest.raises(BadInput, match=sentence):
            Memory.open(place, **{"embedder": trigrams(), "env_file": None, **given})
        assert not place.exists()

    head = tmp_path / "head"
    refused("set policy too", defer_below=0.5)
    refused("set defer_below, or leave out manager", policy=head, manager="chat")
    refused("either a policy or a manager", policy=head, manager=RuleManager())
    refused("There is no trained head in", policy=tmp_path / "absent")
    refused("was trained with the embedder 'trigram'", policy=head, embedder="e5")


def test_the_doctor_looks_at_the_policy(
    tmp_path: Path, make_head: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(**given: Any) -> Any:
        settings = MemorySettings(path=tmp_path / "m", **given)
        return {one.name: one for one in examine(settings)}.get("policy")

    assert found() is None
    head = make_head("e5", 384, add=1.0)
    save_head(head, tmp_path / "head")
    fine = found(policy=tmp_path / "head", defer_below=0.6)
    assert fine.ok is True
    assert head.version in fine.message and "below 0.6 the relation model decides" in fine.message
    save_head(make_head(add=1.0), tmp_path / "other")
    assert "'trigram'" in found(policy=tmp_path / "other").message
    assert found(policy=tmp_path / "absent").ok is False


def test_a_policy_decides_without_torch(tmp_path: Path, make_head: Callable[..., Any]) -> None:
    save_head(make_head("e5", 384, add=5.0), tmp_path / "head")
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from memograd.memory import Memory\n"
        "memory = Memory.open(sys.argv[1], policy=sys.argv[2], env_file=None)\n"
        "[added] = memory.add('I live in Boston.', user_id='alice')['results']\n"
        "print(added['actor'], memory.compact(3, user_id='alice')['retired'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "m"), str(tmp_path / "head")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("policy:") and done.stdout.endswith(" 1\n")
