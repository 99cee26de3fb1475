"""English tables of the life logs, put together as `ENGLISH`. Only data; see `forms`."""

from __future__ import annotations

from memograd.data.lifelog.english.attributes import ATTRIBUTES
from memograd.data.lifelog.english.chat import FRAMES, MEN, PETS, ROLES, SMALL_TALK, TRIFLES, WOMEN
from memograd.data.lifelog.english.events import EVENTS
from memograd.data.lifelog.forms import Language

ENGLISH = Language(
    code="en",
    unknown="I don't know",
    assistant="Assistant",
    comma=", ",
    stop=".",
    space=" ",
    women=WOMEN,
    men=MEN,
    pets=PETS,
    roles=ROLES,
    kinds=ATTRIBUTES | EVENTS,
    frames=FRAMES,
    small_talk=SMALL_TALK,
    trifles=TRIFLES,
)
