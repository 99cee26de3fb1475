from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memograd.memory import Memory


@pytest.fixture
def memory(bare_environment: Path) -> Iterator[Memory]:
    with Memory.open(bare_environment / "memories") as opened:
        yield opened
