"""Chinese tables of the life logs, put together as `CHINESE`. Only data; see `forms`."""

from __future__ import annotations

from memograd.data.lifelog.chinese.attributes import ATTRIBUTES
from memograd.data.lifelog.chinese.chat import FRAMES, MEN, PETS, ROLES, SMALL_TALK, TRIFLES, WOMEN
from memograd.data.lifelog.chinese.events import EVENTS
from memograd.data.lifelog.forms import Language

CHINESE = Language(
    code="zh",
    unknown="不知道",
    assistant="助手",
    comma="、",
    stop="。",
    space="",
    women=WOMEN,
    men=MEN,
    pets=PETS,
    roles=ROLES,
    kinds=ATTRIBUTES | EVENTS,
    frames=FRAMES,
    small_talk=SMALL_TALK,
    trifles=TRIFLES,
)
