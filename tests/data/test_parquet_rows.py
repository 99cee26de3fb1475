from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from memograd.data.record_files import decoded, read_rows
from memograd.errors import BadInput


def _file(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_rows_arrive_in_order_with_the_columns_asked_for(tmp_path: Path) -> None:
    rows = [{"n": n, "texts": ["甲", str(n)], "more": None} for n in range(40)]
    path = _file(tmp_path, rows)
    found = list(read_rows(path, ("n", "texts"), "X"))
    assert found == [{"n": row["n"], "texts": row["texts"]} for row in rows]


def test_a_missing_column_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    path = _file(tmp_path, [{"a": 1, "b": 2}])
    with pytest.raises(BadInput, match=r"no column 'c', only 'a', 'b': is it X\?"):
        list(read_rows(path, ("a", "c"), "X"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b'[{"a": 1}]', "no Parquet file"),
        (b"", "no Parquet file"),
        (b"PAR1 and then it was cut off", "cut off"),
    ],
)
def test_what_is_no_parquet(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=words) as caught:
        list(read_rows(path, ("a",), "X"))
    assert "\n" not in str(caught.value)


def test_a_file_damaged_inside(tmp_path: Path) -> None:
    path = _file(tmp_path, [{"text": f"row {n}" * 50} for n in range(500)])
    whole = bytearray(path.read_bytes())
    whole[4:4000] = bytes(3996)
    path.write_bytes(whole)
    with pytest.raises(BadInput, match="no whole Parquet file"):
        list(read_rows(path, ("text",), "X"))


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no file"):
        list(read_rows(tmp_path / "none.parquet", ("a",), "X"))
    with pytest.raises(BadInput, match="cannot be read"):
        list(read_rows(tmp_path, ("a",), "X"))


def test_without_pyarrow_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path, [{"a": 1}])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadInput, match=r"pip install 'memograd\[parquet\]'"):
        list(read_rows(path, ("a",), "X"))


def test_json_in_a_column() -> None:
    assert decoded('["甲"]', "here") == decoded(["甲"], "here") == ["甲"]
    with pytest.raises(BadInput, match=r"^here is not valid JSON"):
        decoded("['a']", "here")
