"""Lists in pages: nothing is left out or shown twice, whoever writes meanwhile."""

from __future__ import annotations

from asked import Serving, added


def test_pages_show_everything_once_while_others_write(serving: Serving) -> None:
    ids = [added(serving, f"Fact {n}.", user_id="alice") for n in range(25)]
    seen: list[str] = []
    cursor = None
    while True:
        params = {"user_id": "alice", "limit": 4} | ({"cursor": cursor} if cursor else {})
        page = serving.ask("GET", "/memories", params=params).json()
        seen += [item["id"] for item in page["results"]]
        if len(seen) == 8:  # the item that the cursor names goes, and another is learnt
            serving.ask("DELETE", f"/memories/{seen[-1]}")
            ids.append(added(serving, "Fact 25.", user_id="alice"))
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ids
    assert page["total"] == 25


def test_a_page_of_the_past_stays_as_it_was(serving: Serving) -> None:
    for n in range(6):
        added(serving, f"Fact {n}.", user_id="alice")
    params = {"user_id": "alice", "limit": 3, "as_of": serving.memory.store.now().isoformat()}
    first = serving.ask("GET", "/memories", params=params).json()
    serving.ask("DELETE", "/memories", params={"user_id": "alice"})
    second = serving.ask("GET", "/memories", params=params | {"cursor": first["next_cursor"]})
    assert [item["memory"] for item in second.json()["results"]] == [
        "Fact 3.",
        "Fact 4.",
        "Fact 5.",
    ]
