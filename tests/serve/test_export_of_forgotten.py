"""What was forgotten or erased does not come back, by an export, an import or a page that is read.

A forgotten item is in the export, since its history is; it is forgotten there too. Of what was
erased nothing is in it, and what the same file erased is erased where it is imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asked import Serving

LINES = {"Content-Type": "application/x-ndjson"}
WHO = {"user_id": "alice"}


def told(serving: Serving, count: int, **given: Any) -> list[str]:
    """The ids of so many items."""
    entries = [{"messages": f"Note {number}.", "infer": False} for number in range(count)]
    body = {"memories": entries, **WHO, **given}
    made = serving.ask("POST", "/memories/batch", json=body).json()["results"]
    return [one["results"][0]["id"] for one in made]


def listed(serving: Serving, **params: Any) -> list[str]:
    page = serving.ask("GET", "/memories", params={**WHO, **params}).json()
    return [one["memory"] for one in page["results"]]


def found(serving: Serving) -> str:
    """All that is found of the owner."""
    search = {"query": "Note secret", "turns": 50, "top_k": 100, **WHO}
    context = {"query": "Note secret", **WHO}
    asked = (("/search", search), ("/context", context))
    return "".join(serving.ask("POST", path, json=body).text for path, body in asked)


def everything(serving: Serving) -> str:
    """All that can be read of the owner, histories too."""
    past = ("/export", "/operations?limit=1000")
    return found(serving) + "".join(serving.ask("GET", path).text for path in past)


def test_nothing_comes_back_by_an_import(
    serving: Serving,
    make_serving: Callable[..., Serving],
    open_memory: Callable[..., Any],
    tmp_path: Path,
) -> None:
    ids = told(serving, 6)
    secret = {"messages": "The secret is zq4711.", "infer": False, **WHO}
    erased = serving.ask("POST", "/memories", json=secret).json()["results"][0]["id"]
    before = serving.ask("GET", "/export").content
    serving.ask("PUT", f"/memories/{ids[1]}", json={"text": "Note 1, zq4712."})
    serving.ask("DELETE", f"/memories/{ids[0]}")
    serving.ask("DELETE", f"/memories/{ids[1]}")
    for one in (erased, ids[1]):  # a forgotten one is erased with all that it said
        assert serving.ask("POST", "/purge", json={"memory_id": one}).status_code == 200
    after = serving.ask("GET", "/export").content
    left = [f"Note {number}." for number in range(2, 6)]
    assert listed(serving) == left and b"zq471" not in after

    other = make_serving(open_memory(tmp_path / "other"))
    for count in (len(after.splitlines()) - 1, 0, 0):
        answer = other.ask("POST", "/import", content=after, headers=LINES)
        assert answer.json() == {"imported": count}
        assert listed(other) == left
        assert "zq471" not in everything(other)
    history = other.ask("GET", f"/memories/{ids[0]}/history").json()
    assert [one["event"] for one in history] == ["ADD", "DELETE"]
    assert other.ask("GET", "/export").content == after
    # An export from before brings back nothing: neither where it was erased nor elsewhere.
    for place in (serving, other):
        place.ask("POST", "/import", content=before, headers=LINES)
        assert listed(place) == left
        assert "zq471" not in everything(place)


def test_an_import_in_any_order_of_parts_ends_the_same(
    serving: Serving,
    make_serving: Callable[..., Serving],
    open_memory: Callable[..., Any],
    tmp_path: Path,
) -> None:
    ids = told(serving, 4)
    first = serving.ask("GET", "/export").content
    serving.ask("DELETE", f"/memories/{ids[0]}")
    serving.ask("POST", "/purge", json={"memory_id": ids[1]})
    second = serving.ask("GET", "/export").content
    for number, parts in enumerate(([first, second], [second, first], [first, second, first])):
        other = make_serving(open_memory(tmp_path / str(number)))
        for part in parts:
            assert other.ask("POST", "/import", content=part, headers=LINES).status_code == 200
        assert listed(other) == ["Note 2.", "Note 3."], number
        assert "Note 1." not in found(other), number
        assert "Note 1." not in everything(other), number


def test_what_is_erased_while_somebody_pages_is_on_no_later_page(serving: Serving) -> None:
    ids = told(serving, 12)
    page = serving.ask("GET", "/memories", params={**WHO, "limit": 3}).json()
    seen = [one["id"] for one in page["results"]]
    for gone in (ids[2], ids[3], ids[7]):  # the cursor's own item among them
        serving.ask("POST", "/purge", json={"memory_id": gone})
    serving.ask("DELETE", f"/memories/{ids[4]}")
    while page["next_cursor"]:
        params = {**WHO, "limit": 3, "cursor": page["next_cursor"]}
        answer = serving.ask("GET", "/memories", params=params)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        seen += [one["id"] for one in page["results"]]
    assert seen == [one for one in ids if one not in (ids[3], ids[4], ids[7])]
    events = [json.loads(line) for line in serving.ask("GET", "/export").text.splitlines()[1:]]
    texts = json.dumps([one["after"] for one in events])
    assert not any(f"Note {number}." in texts for number in (2, 3, 7))
