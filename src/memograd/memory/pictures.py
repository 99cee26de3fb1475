"""Pictures in messages: where they are, and how the memory refers to them.

The memory keeps no pictures. A picture with an address of its own is kept as that address; one
that is in the message itself as the SHA-256 of its bytes, by which the application finds it again.

Invariant: a reference holds no contents of a picture, and the same picture has the same reference.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

PICTURES: Final = frozenset({"image", "image_url", "input_image"})
LONGEST_ADDRESS: Final = 2_000  # characters


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
