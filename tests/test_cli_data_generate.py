"""`memograd data generate`: a file of life logs, and one sentence for what cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from memograd.cli import main
from memograd.data.lifelog import LifelogSettings, generate_lifelogs, read_lifelogs


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_the_file_holds_the_logs_of_the_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "logs.jsonl"
    options = ("--n", 2, "--seed", 7, "--language", "zh", "--split", "test", "--out", out)
    assert run("data", "generate", *options, "sessions=3") == 0
    wanted = LifelogSettings(language="zh", split="test", sessions=3)
    assert read_lifelogs(out) == generate_lifelogs(2, 7, wanted)
    assert "2 life logs, 72 statements" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--language", "fr"), "language is 'fr'"),
        (("--n", "0"), "at least one"),
        (("--seed", "-1"), "the seed -1"),
        (("hearsay=2",), "hearsay is 2.0"),
        (("colour=red",), "no setting of a life log"),
    ],
)
def test_what_cannot_be_made_is_said_in_a_sentence(
    arguments: tuple[str, ...],
    complaint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("data", "generate", "--out", tmp_path / "x.jsonl", *arguments) == 2
    shown = capsys.readouterr().err
    assert complaint in shown and shown.startswith("memograd: ")
    assert not (tmp_path / "x.jsonl").exists()


def test_a_file_that_is_there_is_not_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine.jsonl"
    out.write_text('{"id": "my own conversation"}\n', encoding="utf-8")
    assert run("data", "generate", "--n", 1, "--out", out, "sessions=2") == 2
    assert "is there already; choose another name" in capsys.readouterr().err
    assert out.read_text(encoding="utf-8") == '{"id": "my own conversation"}\n'
    out.unlink()
    assert run("data", "generate", "--n", 1, "--out", out, "sessions=2") == 0
    assert run("data", "generate", "--n", 1, "--out", out, "sessions=2") == 0  # the very same
    assert run("data", "generate", "--n", 1, "--seed", 1, "--out", out, "sessions=2") == 2


def test_help_names_the_settings_with_their_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    from dataclasses import fields

    assert run("data", "generate", "--help") == 0
    shown = capsys.readouterr().out
    for field in fields(LifelogSettings):
        if field.name not in ("language", "split"):
            assert f"{field.name}={field.default}" in shown
