"""Which version of a model's weights draws, here or at servers.

Invariant: what is drawn carries the version that was published last, wherever it is drawn.
"""

from __future__ import annotations

from memograd.policy.protocol import Published
from memograd.policy.remote.sampler import RemoteSampler, Speaker
from memograd.rollout.types import VersionSpan, one_span


class PublishedVersions:
    """The part of a `ModelPolicy` that says whose tokens are drawn; `remote` draws them, if there
    is one."""

    remote: RemoteSampler | None
    speaker: Speaker
    _version: int

    def _spans(self, tokens: int) -> tuple[VersionSpan, ...]:
        return one_span(self._version, tokens) if self.speaker == "trained" else ()

    @property
    def version(self) -> int:
        """The version of the weights that draw; 0 before training gave them one."""
        return self._version if self.remote is None else self.remote.version

    def publish(self, version: int) -> Published:
        """From here on the weights as they are now draw, under this version."""
        self._version = version
        return Published(version) if self.remote is None else self.remote.publish(version)

    def follow(self, published: Published) -> None:
        """Draw from what another process published; the weights here are the same."""
        self._version = published.version
        if self.remote is not None:
            self.remote.follow(published)

    def rest(self) -> None:
        """Nothing is drawn until the learner has moved: servers on its device may let go of it."""
        if self.remote is not None:
            self.remote.rest()
