"""The user's own reward functions: loaded, or refused in one sentence with file and line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.rewards.user_code import function_of, load_file, load_module


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path, name: str = "f") -> str:
    with pytest.raises(BadInput) as caught:
        function_of(load_file(path), name)
    sentence = str(caught.value)
    assert len(sentence.splitlines()) == 1
    return sentence


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_function_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "def f(completions, **columns):\n    return [1.0] * len(completions)\n")
    assert function_of(load_file(path), "f")(["a", "b"]) == [1.0, 1.0]


def test_files_of_the_same_name_stay_apart(tmp_path: Path) -> None:
    one = load_file(write(tmp_path / "one", "def f(): return 1"))
    two = load_file(write(tmp_path / "two", "def f(): return 2"))
    assert (one.f(), two.f()) == (1, 2)


def test_a_file_imports_what_lies_beside_it_and_hides_nothing(tmp_path: Path) -> None:
    write(tmp_path, "VALUE = 3", "beside_my_rewards.py")
    write(tmp_path, "raise RuntimeError('the wrong json')", "json.py")
    sys.modules.pop("json", None)
    path = write(
        tmp_path,
        "import json\nfrom beside_my_rewards import VALUE\n\ndef f(): return json.dumps(VALUE)",
    )
    assert load_file(path).f() == "3"


def test_files_of_two_folders_import_their_own_neighbours(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, f"NAME = {folder!r}", "helper_of_rewards.py")
        write(tmp_path / folder, "from helper_of_rewards import NAME\n\ndef f(): return NAME")
    paths = [tmp_path / folder / "mine.py" for folder in ("one", "two")]
    assert [load_file(path).f() for path in (*paths, *paths)] == ["one", "two", "one", "two"]


def test_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    assert refusal(path) == f"There is no reward file {path}; write path/to/file.py:function."
    write(tmp_path, "import re\n\ndef f(:\n    pass\n")
    assert refusal(path).startswith(f"{path} line 3 is not valid Python: ")
    write(tmp_path, "x = 1\ny = x / 0\n")
    assert refusal(path) == (
        f"{path} line 2 raised ZeroDivisionError: division by zero while it was loaded."
    )
    write(tmp_path, "import sys\nsys.exit(0)\n")
    assert refusal(path) == f"{path} line 2 raised SystemExit: 0 while it was loaded."
    write(tmp_path, "\nimport no_such_module_at_all\n")
    assert refusal(path).startswith(f"{path} line 2 raised ModuleNotFoundError: ")


def test_what_is_wrong_with_a_name(tmp_path: Path) -> None:
    path = write(tmp_path, "from re import match\n\ndef exact(): ...\ndef polite(): ...\nf = 3\n")
    assert refusal(path, "exat") == f'{path} has no reward function "exat"; it has exact.'
    assert refusal(path, "zzz") == f'{path} has no reward function "zzz"; it has exact, polite.'
    assert refusal(path, "f").startswith(f"f in {path} is int, not a function; a reward is ")
    assert "no function at all" in refusal(write(tmp_path, "f = 1", "empty.py"), "g")


def test_modules(tmp_path: Path) -> None:
    sys.path.append(str(tmp_path))
    write(tmp_path, "import no_such_module_at_all", "broken_reward_module.py")
    assert load_module("memograd.rewards.style").length
    with pytest.raises(BadInput, match=r"There is no module memograd\.rewards\.nothing"):
        load_module("memograd.rewards.nothing")
    with pytest.raises(BadInput, match=r"There is no module nowhere\.at\.all"):
        load_module("nowhere.at.all")
    with pytest.raises(BadInput, match="broken_reward_module raised ModuleNotFoundError"):
        load_module("broken_reward_module")
