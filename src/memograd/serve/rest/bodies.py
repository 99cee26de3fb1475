"""What requests may hold, as pydantic models: mem0's words and ours.

A field that nobody knows is refused by name (422), one that only mem0's own service has is 501 by
name, so nothing that a client asks for is passed over. The fields of `ServiceBody` name that
service's projects and versions; here the key says all of it. Invariant: a field means the same in
every body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

from memograd.errors import BadInput
from memograd.memory.records.scope import SCOPE_FIELDS
from memograd.serve.keys import MOST_DAYS
from memograd.serve.limits import check_filters
from memograd.serve.mem0_filters import in_our_words
from memograd.serve.refusals import NotOffered
from memograd.web.strict_json import Real, Whole

Time = datetime | str | Annotated[float, Strict()]
"""Strict, since true is no time: it would be the first second of 1970."""
Filters = dict[str, Any]
Count = Annotated[Whole, Field(ge=1, le=1000)]


class Body(BaseModel):
    """A JSON object with known fields."""

    model_config = ConfigDict(extra="forbid")

    def offered(self, **missing: str) -> None:
        """Raise `NotOffered` for a field that was given and that memograd does not have."""
        for name, instead in missing.items():
            if getattr(self, name) is not None:
                raise NotOffered(f"{name} is not offered: {instead}")


class ServiceBody(Body):
    """What clients of mem0's own service may send along."""

    org_id: str | None = None
    project_id: str | None = None
    version: str | None = None
    output_format: str | None = None


class Owned(ServiceBody):
    """Whose memory is meant: ids at the top level, inside `filters`, or both."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    app_id: str | None = None
    filters: Filters | None = None

    def ids(self) -> dict[str, str | None]:
        """The ids of the top level."""
        check_filters(self.filters)  # before anything is read of them
        in_our_words({"app_id": self.app_id} if self.app_id is not None else self.filters or {})
        return {name: getattr(self, name) for name in SCOPE_FIELDS}

    def ids_alone(self) -> dict[str, str | None]:
        """The ids of the top level and of `filters`, which hold nothing else."""
        ids = self.ids()
        for name, value in _ids_in(self.filters or {}):
            if ids[name] not in (None, value):
                raise BadInput(f"{name} is {ids[name]!r} and in filters {value!r}: give one.")
            ids[name] = value
        return ids


class NewMemories(Owned):
    """What to remember."""

    messages: str | dict[str, Any] | list[dict[str, Any]]
    metadata: dict[str, Any] | None = None
    infer: bool | None = None
    timestamp: Time | None = None
    kind: str | None = None
    categories: list[str] | None = None
    async_mode: bool | None = None
    custom_categories: Any = None
    custom_instructions: str | None = None
    agent_custom_instructions: str | None = None
    expiration_date: str | None = None
    structured_data_schema: Any = None

    memory_type: str | None = None
    prompt: str | None = None

    def given(self) -> dict[str, Any]:
        """What `Memory.add` takes besides messages and ids."""
        self.offered(
            custom_categories="the setting categories names them.",
            agent_custom_instructions="custom_instructions hold for whoever speaks.",
            structured_data_schema="metadata holds what you like.",
        )
        return {
            "metadata": self.metadata,
            "timestamp": self.timestamp,
            "kind": self.kind,
            "memory_type": self.memory_type,
            "infer": True if self.infer is None else self.infer,
            "categories": self.categories or (),
            "expiration_date": self.expiration_date,
            "prompt": self.prompt,
            "custom_instructions": self.custom_instructions,
        }


class NewBatch(Owned):
    """Several things to remember, under the same ids: entries as of `POST /memories`."""

    memories: list[NewMemories]

    def entries(self) -> list[dict[str, Any]]:
        """What `Memory.add_many` takes. Raises BadInput for an entry with ids of its own."""
        check_filters([one.filters for one in self.memories if one.filters])
        if any(any(one.ids_alone().values()) for one in self.memories):
            raise BadInput("A batch is of one owner: give the ids beside memories, not in them.")
        return [{"messages": one.messages, **one.given()} for one in self.memories]


class Selection(Owned):
    """Which memories: conditions that mem0's client names beside `filters`."""

    categories: list[str] | None = None
    metadata: dict[str, Any] | None = None
    show_expired: bool | None = None
    latest_only: bool | None = None
    as_of: Time | None = None

    def conditions(self) -> Filters | None:
        """`filters` with those conditions."""
        if self.latest_only is False:
            raise NotOffered("latest_only=false is not offered: as_of and history show the past.")
        members: list[Filters] = [self.filters] if self.filters else []
        if self.categories:
            members.append({"categories": {"in": self.categories}})
        named = (self.metadata or {}).items()  # a key may have the name of a field
        members += [{f"metadata.{name}": {"eq": value}} for name, value in named]
        return {"AND": members} if members else None


class Search(Selection):
    """What to look for."""

    query: str
    top_k: Count | None = None
    limit: Count | None = None
    threshold: Real | None = None
    rerank: bool | None = None
    keyword_search: bool | None = None
    fields: list[str] | None = None
    reference_date: Time | None = None
    asked_at: Time | None = None
    mode: Literal["hybrid", "dense", "lexical"] = "hybrid"
    turns: Annotated[Whole, Field(ge=0, le=1000)] = 0
    half_life_days: Annotated[Real, Field(gt=0, le=1e6)] | None = None
    explain: bool = False

    def given(self) -> dict[str, Any]:
        """What `Memory.search` takes besides query, ids and filters. Words are always looked for
        too, so `keyword_search` changes nothing."""
        half_life = None if self.half_life_days is None else timedelta(days=self.half_life_days)
        return {
            "top_k": self.limit if self.top_k is None else self.top_k,
            "threshold": self.threshold,
            "as_of": self.as_of,
            "mode": self.mode,
            "turns": self.turns,
            "recency_half_life": half_life,
            "rerank": bool(self.rerank),
            "explain": self.explain,
            "asked_at": self.asked_at,
            "reference_date": self.reference_date,
            "show_expired": bool(self.show_expired),
        }

    def shown(self, result: dict[str, Any]) -> dict[str, Any]:
        """The result with the fields that were asked for alone."""
        if self.fields is None:
            return result
        wanted = {"id", *self.fields}
        items = [{k: v for k, v in one.items() if k in wanted} for one in result["results"]]
        return {**result, "results": items}


class Listing(Selection):
    """Which memories to list."""

    start_date: str | None = None
    end_date: str | None = None

    def conditions(self) -> Filters | None:
        """`filters` with those conditions."""
        found = super().conditions()
        members = [found] if found else []
        if self.start_date is not None:
            members.append({"created_at": {"gte": self.start_date}})
        if self.end_date is not None:
            members.append({"created_at": {"lte": self.end_date}})
        return {"AND": members} if members else None


class ItemChange(ServiceBody):
    """What an item is to say from now on; `data` and `memory` are other words for `text`."""

    text: str | None = None
    data: str | None = None
    memory: str | None = None
    metadata: dict[str, Any] | None = None
    timestamp: Time | None = None
    expiration_date: str | None = None

    def new_text(self) -> str | None:
        """The text, by whichever word."""
        self.offered(timestamp="an item changes when it is changed.")
        given = [one for one in (self.text, self.data, self.memory) if one is not None]
        if len(given) > 1:
            raise BadInput("text, data and memory mean the same: give one of them.")
        return given[0] if given else None

    def ends(self) -> dict[str, Any]:
        """`expiration_date`, where it is given; null lets the item stay."""
        given = "expiration_date" in self.model_fields_set
        return {"expiration_date": self.expiration_date} if given else {}


class OneChange(ItemChange):
    """A change of a batch."""

    memory_id: str


class Changes(ServiceBody):
    """A batch of changes."""

    memories: list[OneChange]


class OneId(Body):
    """An item of a batch."""

    memory_id: str


class SeveralIds(ServiceBody):
    """A batch of items."""

    memories: list[OneId]


class ItemFeedback(ServiceBody):
    """What somebody thinks of an item."""

    memory_id: str
    feedback: Literal["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"] | None = None
    feedback_reason: str | None = None


class ContextQuestion(Owned):
    """What a prompt is to be told of."""

    query: str
    top_k: Count | None = None
    turns: Annotated[Whole, Field(ge=0, le=1000)] = 10
    token_budget: Annotated[Whole, Field(ge=0, le=1_000_000)] = 2000


class Purge(Owned):
    """What to erase for good: one memory, or without `memory_id` everything of the ids."""

    memory_id: str = ""

    def one(self) -> str | None:
        """The memory that is named; None where none is. Null and an empty text name nothing, and
        are refused: whoever sends them meant one memory."""
        if "memory_id" not in self.model_fields_set:
            return None
        if not self.memory_id:
            raise BadInput("memory_id is empty: name a memory, or leave it out to erase all.")
        return self.memory_id


class Compaction(Owned):
    """How much may stay."""

    budget: Annotated[int, Field(ge=0, strict=True)]


class AnAnswer(Owned):
    """An answer that was given with the memory."""

    question: str
    answer: str
    shown: list[str] = []


class GivenVerdict(Body):
    """good, bad, or what the right answer would have been."""

    verdict: str


class NewKeyAsked(Body):
    """A key to be made; `owner` as user:NAME, agent:NAME or run:NAME, none for everybody's."""

    name: str
    owner: str | None = None
    rights: list[str] = ["read", "write"]
    days: Annotated[Real, Field(gt=0, le=MOST_DAYS)] | None = None


def at_most(elements: object, most: int, what: str) -> None:
    """Raise BadInput for a list that is too long."""
    if isinstance(elements, list) and len(elements) > most:
        raise BadInput(f"{what} has {len(elements)} elements, and {most} is the most: send parts.")


def _ids_in(filters: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The ids in a filter that says nothing else: `{"user_id": ...}`, or AND over such."""
    for name, value in filters.items():
        if name == "AND" and isinstance(value, list):
            for member in value:
                if not isinstance(member, Mapping):
                    raise BadInput(f"A filter must be a dictionary, not {str(member)[:60]!r}.")
                yield from _ids_in(member)
            continue
        if isinstance(value, Mapping) and value.keys() == {"eq"}:
            value = value["eq"]
        if name not in SCOPE_FIELDS or not isinstance(value, str):
            raise BadInput(f"filters hold ids here and nothing else, not {name[:60]!r}.")
        yield name, value
