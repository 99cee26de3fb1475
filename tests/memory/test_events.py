from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.scope import Scope

texts = st.text(st.characters(codec="utf-8"), max_size=20)
ids = texts.filter(lambda text: text.strip() and "\0" not in text)
contents = st.none() | st.dictionaries(
    texts,
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
events = st.builds(
    Event,
    seq=st.integers(min_value=1),
    uid=ids,
    recorded_at=st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=8))])),
    kind=st.sampled_from(EventKind),
    scope=st.builds(Scope, user_id=ids, agent_id=st.none() | ids, run_id=st.none() | ids),
    subject=ids,
    before=contents,
    after=contents,
    actor=texts,
    reason=texts,
    erased=st.booleans(),
)


@given(events)
def test_an_event_survives_its_json_form(event: Event) -> None:
    line = json.dumps(event.to_json(), ensure_ascii=False, allow_nan=False)
    assert Event.from_json(json.loads(line), seq=event.seq) == event


def test_the_place_belongs_to_one_journal_and_is_not_written() -> None:
    event = Event(
        7,
        "u",
        datetime(2023, 5, 7, tzinfo=UTC),
        EventKind.ADD,
        Scope(run_id="42"),
        "item",
        None,
        {"text": "小明住在北京"},
        "rules",
        "",
    )
    values = event.to_json()
    assert "seq" not in values
    assert Event.from_json(values, seq=9).seq == 9
    assert values["run_id"] == "42"
    assert "user_id" not in values
