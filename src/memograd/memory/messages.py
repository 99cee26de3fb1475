"""What an application hands over, as raw turns: a text, one message, or a list of chat messages.

A message is the usual dictionary with `role` and `content`; `name` says who speaks (else the role
does), `timestamp` when it was said (else the moment given for all). A turn keeps its role, because
only what people say in their own words becomes a fact about them.

The memory keeps no pictures. A turn refers to a picture by its address, or by the SHA-256 of its
bytes where it is in the message itself, and has a caption where a vision model is given.

Invariants: what cannot be understood raises BadInput that names the message, and nothing is dropped
in silence except system and developer messages, which are instructions and not conversation; a
reference holds no contents of a picture, and the same picture has the same reference.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from memograd.errors import BadInput
from memograd.memory.records.scope import check_unicode
from memograd.memory.records.turns import RawTurn

if TYPE_CHECKING:
    from memograd.memory.chat.chat_model import VisionModel

PICTURES: Final = frozenset({"image", "image_url", "input_image"})
LONGEST_ADDRESS: Final = 2_000  # characters
TOOL_CALLS: Final = ("tool_calls", "function_call")  # as chat APIs name them


Messages = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]


def to_turns(
    messages: Messages,
    *,
    heard_at: datetime,
    expires_at: datetime | None = None,
    vision: VisionModel | None = None,
) -> list[RawTurn]:
    """The raw turns of a text or of chat messages; each gets an id of its own.

    heard_at: when it was said, for messages without a `timestamp`. expires_at: from when on the
    turns are hidden. vision: describes the pictures, once all messages are understood. A turn keeps
    the zone of its time, for "yesterday" is counted from the day it was where it was said. The
    `session` of a turn is the ordinal number of its day, so a sitting is what was said in one day.
    Messages without any text (a tool call, say) and system messages give no turn.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Mapping):
        messages = [messages]
    elif not isinstance(messages, Sequence):
        raise BadInput(
            f"messages must be a text or a list of chat messages, not {type(messages).__name__}."
        )
    turns: list[RawTurn] = []
    pictures: dict[str, list[str]] = {}  # addresses by the turn
    for number, message in enumerate(messages, start=1):
        where = f"message {number}"
        if not isinstance(message, Mapping):
            raise BadInput(f"{where} must be a dictionary with role and content, not {message!r}.")
        role = message.get("role", "user")
        if not isinstance(role, str) or not role:
            raise BadInput(f"The role of {where} must be a text such as user, not {role!r}.")
        text = _text(message.get("content"), where)
        check_unicode(text, where)
        shown = pictures_in(message.get("content"))
        if role in ("system", "developer") or not (text.strip() or shown):
            continue
        speaker = message.get("name") or role
        if not isinstance(speaker, str):
            raise BadInput(f"The name in {where} must be a text, not {speaker!r}.")
        check_unicode(speaker, f"the name in {where}")
        said = message.get("timestamp")
        time = heard_at if said is None else to_local_moment(said, f"the timestamp of {where}")
        turns.append(
            RawTurn(
                id=str(uuid.uuid4()),
                speaker=speaker,
                text=text,
                time=time,
                session=time.toordinal(),
                role=role,
                images=tuple(map(picture_reference, shown)),
                expires_at=expires_at,
            )
        )
        pictures[turns[-1].id] = shown
    if vision is None:
        return turns
    return [
        replace(turn, caption=_described(turn.text, pictures[turn.id], vision))
        if turn.images
        else turn
        for turn in turns
    ]


def say_nothing(messages: Messages) -> bool:
    """Whether no message holds anything: a text, a picture, or the call of a tool.

    What `to_turns` does not understand is its to refuse, and counts as something here.
    """
    if isinstance(messages, str):
        return not messages.strip()
    several = [messages] if isinstance(messages, Mapping) else messages
    return isinstance(several, Sequence) and all(map(_says_nothing, several))


def _says_nothing(message: object) -> bool:
    if not isinstance(message, Mapping) or any(message.get(name) for name in TOOL_CALLS):
        return False
    content = message.get("content")
    parts = [content] if isinstance(content, str | Mapping) else content or ()
    if not isinstance(parts, Sequence):
        return False
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return all(isinstance(text, str) and not text.strip() for text in texts)


def _described(said: str, pictures: Sequence[str], vision: VisionModel) -> str:
    """What is to be seen, in one line."""
    captions = [" ".join(vision.describe(picture, said=said).split()) for picture in pictures]
    return " ".join(caption for caption in captions if caption)


def to_moment(value: object, what: str) -> datetime:
    """`to_local_moment`, in UTC."""
    return to_local_moment(value, what).astimezone(UTC)


def to_local_moment(value: object, what: str) -> datetime:
    """The moment that a datetime, a date, an ISO 8601 text or a Unix time means, in its own zone.

    A time without a zone counts as UTC. Raises BadInput, naming `what`, for anything else.
    """
    try:
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, date):
            moment = datetime(value.year, value.month, value.day)
        elif isinstance(value, str):
            moment = datetime.fromisoformat(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value, UTC)
        else:
            raise ValueError
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        moment.astimezone(UTC)  # not before the first year, nor behind the last
        return moment
    except (ValueError, OverflowError, OSError):
        raise BadInput(
            f"{what} is {value!r}: give a datetime or an ISO 8601 text such as 2024-05-07T18:30:00."
        ) from None


def _text(content: object, where: str) -> str:
    """The text of a message's content, which may be a list of parts as chat APIs have them."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, Sequence):
        texts = []
        for part in content:
            if is_picture(part):
                continue
            if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
                raise BadInput(
                    f"The content of {where} has a part without text ({str(part)[:60]!r}): memory"
                    " keeps texts and pictures, so describe another file in words."
                )
            texts.append(part["text"])
        return "\n".join(texts)
    raise BadInput(f"The content of {where} must be a text, not {type(content).__name__}.")


def is_picture(part: object) -> bool:
    """Whether a part of a message's content is a picture, as the chat APIs write them."""
    return isinstance(part, Mapping) and part.get("type") in PICTURES


def pictures_in(content: object) -> list[str]:
    """The addresses of a message's pictures, `data:` ones too; "" where a part names none."""
    parts = [content] if isinstance(content, Mapping) else content
    if isinstance(parts, str) or not isinstance(parts, Sequence):
        return []
    return [_address(part) for part in parts if is_picture(part)]


def picture_reference(address: str) -> str:
    """What a turn keeps of a picture: its address, or `sha256:<hexadecimal>`."""
    if not address:
        return "picture"
    if address.startswith("data:"):
        head, _, data = address.partition(",")
        return f"sha256:{hashlib.sha256(_bytes(head, data)).hexdigest()}"
    if len(address) > LONGEST_ADDRESS:
        return f"sha256:{hashlib.sha256(address.encode()).hexdigest()}"
    return address


def _address(part: Mapping[str, object]) -> str:
    """OpenAI's `image_url` (a text, or an object with `url`) or Anthropic's `source`."""
    place = part.get("image_url") or part.get("url") or part.get("source") or ""
    if isinstance(place, Mapping):
        if isinstance(place.get("data"), str):
            return f"data:{place.get('media_type', 'image/png')};base64,{place['data']}"
        place = place.get("url") or ""
    return place if isinstance(place, str) else ""


def _bytes(head: str, data: str) -> bytes:
    """The contents behind `data:`; what is no base64 counts as it is written."""
    if head.endswith(";base64"):
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return data.encode()
    return unquote_to_bytes(data)
