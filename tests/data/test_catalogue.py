from __future__ import annotations

import re

import pytest

import memograd.data
from memograd.data.catalogue import CATALOGUE, data_set
from memograd.data.download import BEGINNINGS
from memograd.errors import BadInput


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_set_can_be_fetched_and_loaded(name: str) -> None:
    wanted = data_set(name)
    assert callable(getattr(memograd.data, wanted.loader))
    assert wanted.about and wanted.licence and wanted.home.startswith("https://")
    names = [file.name for file in wanted.files]
    assert names and len(set(names)) == len(names)
    for file in wanted.files:
        assert file.url.startswith("https://")
        assert file.url.endswith(f"/{file.name}")
        assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        # A checksum is only worth something for an address that always gives the same file.
        assert file.sha256 is None or re.search(r"/[0-9a-f]{40}/", file.url)
        assert file.sha256 or any(file.name.endswith(suffix) for suffix in BEGINNINGS)


def test_an_unknown_set_lists_the_known() -> None:
    with pytest.raises(BadInput, match=r"no data set 'squad': choose from locomo, longmemeval-"):
        data_set("squad")
