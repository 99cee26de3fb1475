"""mem0's own client, unchanged, against our server: every call that it offers, sync and async."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

os.environ["MEM0_TELEMETRY"] = "false"
os.environ.setdefault("MEM0_DIR", tempfile.mkdtemp())  # read when mem0 is imported

import pytest
from asked import ADMIN, Serving

from memograd.web.running import running

mem0 = pytest.importorskip("mem0")
from mem0.exceptions import MemoryNotFoundError  # noqa: E402


@pytest.fixture
def host(make_serving: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with running(make_serving().app) as address:
        yield address


@pytest.fixture(scope="module")
def client_of_empty(served_empty: Serving) -> Iterator[Any]:
    with running(served_empty.app) as address:
        yield mem0.MemoryClient(api_key=ADMIN, host=address)


def test_every_call_of_the_client(host: str) -> None:
    client = mem0.MemoryClient(api_key=ADMIN, host=host)
    said = [{"role": "user", "content": "I moved to Boston."}]
    for filters in ({"filters": {"user_id": "alice"}}, {"user_id": "bob"}):
        added = client.add(said, infer=False, metadata={"source": "chat"}, **filters)
        assert [one["event"] for one in added["results"]] == ["ADD"]
    memory_id = added["results"][0]["id"]
    client.add("我喜欢喝红茶。", filters={"AND": [{"user_id": "小红"}]}, infer=False)

    found = client.search("Boston", filters={"user_id": "bob"}, top_k=5)
    assert [one["id"] for one in found["results"]] == [memory_id]
    found = client.search("红茶", filters={"AND": [{"user_id": "小红"}]}, threshold=0.0)
    assert [one["memory"] for one in found["results"]] == ["我喜欢喝红茶。"]
    listed = client.get_all(filters={"user_id": "bob"}, page=1, page_size=1)
    assert (listed["count"], listed["next"], len(listed["results"])) == (1, None, 1)
    assert client.get_all(filters={})["count"] == 3  # the admin's: an empty filter is no error

    assert client.get(memory_id)["metadata"] == {"source": "chat"}
    assert client.update(memory_id, text="I live in Denver.")["memory"] == "I live in Denver."
    assert client.update(memory_id, metadata={"sure": True})["metadata"]["sure"] is True
    assert [line["event"] for line in client.history(memory_id)] == ["ADD", "UPDATE", "UPDATE"]
    client.feedback(memory_id, feedback="positive", feedback_reason="right")
    assert client.get(memory_id)["metadata"]["feedback"] == "POSITIVE"
    client.batch_update([{"memory_id": memory_id, "text": "I live in Austin."}])
    assert client.get(memory_id)["memory"] == "I live in Austin."

    users = client.users()["results"]
    assert [(one["type"], one["name"], one["total_memories"]) for one in users] == [
        ("user", "alice", 1),
        ("user", "bob", 1),
        ("user", "小红", 1),
    ]
    client.batch_delete([{"memory_id": memory_id}])
    with pytest.raises(MemoryNotFoundError):
        client.get(memory_id)
    client.delete_users(user_id="小红")
    [left] = client.get_all(filters={"user_id": "alice"})["results"]
    client.delete(left["id"])
    client.add(said, user_id="a/b ?", infer=False)  # as a part of a path
    client.delete_users(user_id="a/b ?")
    client.add(said, user_id="carol", infer=False)
    client.delete_all(user_id="carol")
    assert client.get_all(filters={})["count"] == 0
    client.add(said, user_id="carol", infer=False)
    client.reset()
    assert client.users()["results"] == []


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({"user_id": "ann"}, "12345"),
    ({"agent_id": "cook"}, "23"),
    ({"run_id": "r1"}, "3"),
    ({"AND": [{"user_id": "ann"}, {"agent_id": "cook"}, {"run_id": "r1"}]}, "3"),
    ({"user_id": "ann", "run_id": "*"}, "3"),
    ({"AND": [{"user_id": "*"}], "NOT": [{"agent_id": "cook"}]}, "1456"),
    ({"OR": [{"user_id": "bob"}, {"agent_id": "cook"}]}, "236"),
    ({"user_id": {"in": ["ann", "bob"]}, "agent_id": {"ne": "cook"}}, "1456"),
    ({"user_id": "ann", "metadata": {"city": "Rome"}}, "4"),
    ({"AND": [{"user_id": "ann"}, {"metadata": {"city": "Rome", "stars": {"gte": 4}}}]}, "4"),
    ({"AND": [{"user_id": "ann"}, {"metadata": {"kind": "hotel"}}]}, "4"),
    ({"AND": [{"user_id": "ann"}, {"NOT": [{"metadata": {"city": "Rome"}}]}]}, "1235"),
    ({"user_id": "ann", "metadata.app_id": "web"}, "4"),
    ({"user_id": "ann", "city": "Rome"}, "4"),
    ({"user_id": "ann", "categories": {"contains": "food"}}, "5"),
    ({"user_id": "ann", "categories": {"in": ["food", "sport"]}}, "5"),
    ({"AND": [{"user_id": "ann"}, {"keywords": {"contains": "Note 3"}}]}, "3"),
    ({"AND": [{"user_id": "ann"}, {"keywords": {"icontains": "NOTE 3"}}]}, "3"),
    ({"AND": [{"user_id": "ann"}, {"keywords": "note 3"}]}, "3"),
    ({"user_id": "ann", "keywords": ["own"]}, "5"),
    ({"user_id": "ann", "created_at": {"gte": "2020-01-01"}}, "12345"),
    ({"user_id": "ann", "created_at": {"lt": "2020-01-01"}}, ""),
    ({"user_id": "*"}, "123456"),
]


def test_every_filter_of_the_client_finds_what_it_means(host: str) -> None:
    client = mem0.MemoryClient(api_key=ADMIN, host=host)

    def add(number: int, whose: dict[str, str], **given: Any) -> str:
        said = [{"role": "user", "content": f"Note {number}."}]
        made = client.add(said, infer=False, filters=whose, **given)
        return str(made["results"][0]["id"])

    hotel = {"city": "Rome", "stars": 4, "kind": "hotel", "app_id": "web"}
    ids = [
        add(1, {"user_id": "ann"}),
        add(2, {"user_id": "ann", "agent_id": "cook"}),
        add(3, {"user_id": "ann", "agent_id": "cook", "run_id": "r1"}),
        add(4, {"user_id": "ann"}, metadata=hotel),
        add(5, {"user_id": "ann"}, metadata={"keywords": ["own"]}, categories=["food"]),
        add(6, {"user_id": "bob"}),
    ]

    def numbers(found: dict[str, Any]) -> str:
        return "".join(sorted(one["memory"][5] for one in found["results"]))

    by_id = ({"user_id": "*", "memory_ids": [ids[1], ids[5]]}, "26")
    for filters, meant in [*FILTERS, by_id]:
        assert numbers(client.get_all(filters=filters)) == meant, filters
        found = client.search("note", filters=filters, top_k=10, threshold=0.0)
        assert numbers(found) == meant, filters
    for options, meant in (
        ({"metadata": {"kind": "hotel"}}, "4"),
        ({"metadata": {"city": "Rome", "stars": 4}}, "4"),
        ({"categories": ["food"]}, "5"),
    ):
        found = client.search("note", filters={"user_id": "ann"}, **options)
        assert numbers(found) == meant, options
    listed = client.get_all(filters={"user_id": "ann"}, start_date="2020-01-01")
    assert numbers(listed) == "12345"


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({"user_id": "ann"}, "3"),
        ({"AND": [{"user_id": "ann"}, {"metadata": {"city": "Rome"}}]}, "23"),
        ({"user_id": "ann", "metadata": {"said": 'a "b" \' \\ 小红', "sure": True}}, "13"),
        ({"user_id": "*", "memory_ids": []}, "123"),
        ({"user_id": {"in": ["ann", "bob"]}, "metadata.stars": {"gt": 3.5}}, "123"),
        ({"user_id": "ann", "metadata.sure": None}, "23"),
    ],
)
def test_delete_all_forgets_what_its_filters_let_through(
    host: str, filters: dict[str, Any], left: str
) -> None:
    client = mem0.MemoryClient(api_key=ADMIN, host=host)
    said = {"said": 'a "b" \' \\ 小红', "sure": True}
    for number, (user, labels) in enumerate(
        (("ann", {"city": "Rome"}), ("ann", said), ("bob", {"city": "Rome"})), start=1
    ):
        client.add(f"Note {number}.", user_id=user, infer=False, metadata=labels)
    assert client.delete_all(filters=filters)["deleted"] == 3 - len(left)
    listed = client.get_all(filters={})["results"]
    assert "".join(sorted(one["memory"][5] for one in listed)) == left


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.get_all(filters={"OR": [{"user_id": "a"}, {"app_id": "*"}]}),
        lambda client: client.delete_all(app_id="a"),
        lambda client: client.delete_all(filters={"app_id": "a"}),
        lambda client: client.delete_all(user_id="a", filters={"OR": [{"app_id": "a"}]}),
        lambda client: client.delete_users(app_id="a"),
        lambda client: client.create_memory_export(schema="{}"),
        lambda client: client.get_memory_export(user_id="alice"),
        lambda client: client.get_summary(),
        lambda client: client.get_profile("alice"),
        lambda client: client.generate_profile("alice"),
        lambda client: client.get_profile_settings(),
        lambda client: client.get_webhooks("p"),
        lambda client: client.delete_webhook(1),
        lambda client: client.add("x", app_id="a"),
        lambda client: client.search("x", filters={"app_id": "a"}),
    ],
)
def test_what_is_not_offered_says_its_name(
    client_of_empty: Any, call: Callable[[Any], Any]
) -> None:
    with pytest.raises(Exception, match="not offer") as raised:
        call(client_of_empty)
    assert raised.value.debug_info["status_code"] == 501


def test_a_wrong_key_is_told_at_once(host: str) -> None:
    with pytest.raises(ValueError, match="valid API key"):
        mem0.MemoryClient(api_key="wrong", host=host)


def test_the_asynchronous_client(host: str) -> None:
    async def use() -> None:
        async with mem0.AsyncMemoryClient(api_key=ADMIN, host=host) as client:
            added = await client.add("I like tea.", user_id="alice", infer=False)
            memory_id = added["results"][0]["id"]
            found = await client.search("tea", filters={"user_id": "alice"})
            assert found["results"][0]["id"] == memory_id
            listed = await client.get_all(filters={"user_id": "alice"})
            assert listed["count"] == 1
            changed = await client.update(memory_id, text="I like coffee.")
            assert changed["memory"] == "I like coffee."
            assert len(await client.history(memory_id)) == 2
            await client.batch_update([{"memory_id": memory_id, "text": "I like milk."}])
            await client.feedback(memory_id, feedback="NEGATIVE")
            assert (await client.users())["count"] == 1
            await client.delete(memory_id)
            await client.delete_all(user_id="alice")
            with pytest.raises(MemoryNotFoundError):
                await client.get(memory_id)

    asyncio.run(use())
