"""The client of an OpenAI-compatible endpoint, and its failures as one sentence each.

Only what the settings say counts: no key or address reaches the client from elsewhere. Invariant:
no message ever contains the key, even if the server repeats it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from memograd.errors import BadInput, MemogradError

if TYPE_CHECKING:
    from openai import OpenAI

OPENAI_URL: Final = "https://api.openai.com/v1"
TIMEOUT_SECONDS: Final = 60.0
NO_KEY: Final = "none"  # the client wants a key; a server of one's own asks for none


@dataclass(frozen=True)
class OpenAIEndpoint:
    """Where the server is and the key to it; None stands for OpenAI's own server and no key."""

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The address that requests go to."""
        return self.base_url or OPENAI_URL

    @property
    def shown(self) -> str:
        """The address as messages show it, without user and password."""
        scheme, separator, rest = self.url.partition("://")
        return f"{scheme}{separator}{rest.rpartition('@')[2]}"

    def client(self, *, retries: int = 3, timeout: float = TIMEOUT_SECONDS) -> OpenAI:
        """A client that repeats what failed for a moment (429, 5xx, connection) `retries` times.

        Raises BadInput without the package `openai`, or without a key for OpenAI's own server.
        """
        if importlib.util.find_spec("openai") is None:
            raise BadInput(
                "An OpenAI-compatible endpoint needs the Python package openai, which is missing:"
                " run pip install openai."
            )
        if self.base_url is None and self.api_key is None:
            raise BadInput(
                "OpenAI needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL to use another"
                " endpoint."
            )
        from openai import OpenAI

        return OpenAI(
            base_url=self.url,
            api_key=self.api_key or NO_KEY,
            max_retries=retries,
            timeout=timeout,
        )

    @contextmanager
    def explained(self, attempt: str) -> Iterator[None]:
        """Turn a failure of the client into BadInput or MemogradError about the `attempt`."""
        import openai

        try:
            yield
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise BadInput(
                f"{self.shown} refused the key when asked to {attempt} (HTTP {error.status_code}):"
                " check OPENAI_API_KEY."
            ) from None
        except openai.APIStatusError as error:
            reason = self._clean(_reason(error))
            # 4xx is the caller's to mend, except for too many requests.
            kind = BadInput if 400 <= error.status_code < 429 else MemogradError
            raise kind(
                f"{self.shown} could not {attempt} (HTTP {error.status_code}: {reason}):"
                f" {'check the request' if kind is BadInput else 'try again later'}."
            ) from None
        except openai.APITimeoutError:
            raise MemogradError(
                f"{self.shown} did not {attempt} in time: try again later."
            ) from None
        except openai.APIConnectionError as error:
            reason = self._clean(str(error.__cause__ or error))
            raise MemogradError(
                f"{self.shown} cannot be reached ({reason}): check OPENAI_BASE_URL and that the"
                " server runs."
            ) from None
        except (openai.OpenAIError, ValueError) as error:  # ValueError: the answer is not JSON
            raise MemogradError(
                f"{self.shown} did not {attempt} in a form that can be understood"
                f" ({self._clean(str(error))}): check OPENAI_BASE_URL."
            ) from None

    def _clean(self, message: str) -> str:
        """One line without the key."""
        if self.api_key:
            message = message.replace(self.api_key, "***")
        return " ".join(message.split())[:300]


def _reason(error: object) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return str(getattr(error, "message", error))
