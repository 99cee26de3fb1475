from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from memograd.errors import MemogradError
from memograd.memory.journal import DerivedText, Journal
from memograd.memory.records.events import EventKind, NewEvent
from memograd.memory.records.items import content_hash
from memograd.memory.records.scope import Scope

SECRETS = ("passport K1234567", "护照号码是甲乙丙丁")


def files_that_hold(folder: Path, *texts: str) -> list[str]:
    """Names of the folder's files with one of the texts in UTF-8, UTF-16 or as escaped JSON."""
    forms = [text.encode(coding) for text in texts for coding in ("utf-8", "utf-16-le")]
    forms += [text.encode("utf-16-be") for text in texts]
    forms += [text.encode("unicode_escape") for text in texts]
    return [
        file.name
        for file in sorted(folder.iterdir())
        if any(form in file.read_bytes() for form in forms)
    ]


def fill(journal: Journal, count: int = 300) -> None:
    """Many events of uneven length, so that pages split; every tenth tells the secrets."""
    chance = random.Random(0)
    for number in range(count):
        secret = " ".join(SECRETS) if number % 10 == 0 else "nothing"
        text = f"{number} {secret} " + "filler " * chance.randrange(200)
        vector = np.full(8, number, dtype=np.float32)
        journal.append(
            [
                NewEvent(EventKind.ADD, Scope("alice"), f"i{number}", after={"text": text}),
                NewEvent(
                    EventKind.UPDATE,
                    Scope("alice"),
                    f"i{number}",
                    before={"text": text},
                    after={"text": "x"},
                    reason=secret,
                ),
            ],
            derived=[DerivedText("user:alice", content_hash(text), vector, tuple(text.split()))],
        )


@pytest.mark.parametrize("whole_owner", [True, False])
def test_purged_bytes_are_in_no_file_even_while_others_have_it_open(
    tmp_path: Path, whole_owner: bool
) -> None:
    url = f"sqlite:///{tmp_path}/j.db"
    with Journal.open(url) as journal, Journal.open(url) as other:
        fill(journal)
        assert other.last_seq() == 600
        assert files_that_hold(tmp_path, SECRETS[0]) != []
        assert files_that_hold(tmp_path, SECRETS[1]) != []
        if whole_owner:
            journal.purge(owners=["user:alice"], actor="user", reason="asked")
        else:
            subjects = [f"i{number}" for number in range(0, 300, 10)]
            journal.purge(subjects=subjects, actor="user", reason="asked")
        assert files_that_hold(tmp_path, *SECRETS) == []
        assert len(other.tail("user:alice")) == (601 if whole_owner else 630)
    assert files_that_hold(tmp_path, *SECRETS) == []
    check = sqlite3.connect(tmp_path / "j.db")
    assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    check.close()


@pytest.mark.parametrize("then", ["purge again", "open", "close"])
def test_a_reader_in_the_way_is_reported_and_old_bytes_go_when_it_has_left(
    tmp_path: Path, then: str
) -> None:
    url = f"sqlite:///{tmp_path}/j.db?timeout=0.2"
    journal = Journal.open(url)
    fill(journal, 20)
    reader = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    with pytest.raises(MemogradError, match=r"is erased from the journal.*tries again"):
        journal.purge(owners=["user:alice"], actor="user", reason="asked")
    # Erased for everybody who reads the journal; only old bytes are still in its files.
    assert all(e.erased for e in journal.tail("user:alice") if e.kind is not EventKind.PURGE)
    assert files_that_hold(tmp_path, *SECRETS) != []
    Journal.open(url).close()  # opens all the same, and does not wait
    assert files_that_hold(tmp_path, *SECRETS) != []
    reader.execute("COMMIT")
    reader.close()
    if then == "purge again":
        journal.purge(owners=["user:alice"], actor="user", reason="asked")
    elif then == "open":
        with Journal.open(url) as other:
            assert other.get_meta("scrub_pending") is None
            assert files_that_hold(tmp_path, *SECRETS) == []
    else:
        journal.close()
    assert files_that_hold(tmp_path, *SECRETS) == []
    journal.close()
    with Journal.open(url) as journal:
        assert journal.get_meta("scrub_pending") is None
        assert len(journal.tail("user:alice")) == 41


def test_a_journal_killed_between_erasing_and_scrubbing_scrubs_when_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/j.db"
    with Journal.open(url) as journal:
        fill(journal, 20)

        def killed(*, wait: bool) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(journal._database, "scrub", killed)
        with pytest.raises(KeyboardInterrupt):
            journal.purge(owners=["user:alice"], actor="user", reason="asked")
        assert files_that_hold(tmp_path, *SECRETS) != []
        with Journal.open(url):
            assert files_that_hold(tmp_path, *SECRETS) == []
        journal._scrub_pending = False


def test_what_another_tool_deleted_without_overwriting_goes_too(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:
        fill(journal, 20)
        tool = sqlite3.connect(tmp_path / "j.db")
        tool.execute("PRAGMA secure_delete=OFF")
        tool.execute("DELETE FROM derived")
        tool.execute("UPDATE events SET before = NULL, after = NULL, reason = ''")
        tool.commit()
        tool.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        tool.close()
        assert files_that_hold(tmp_path, *SECRETS) == ["j.db"]
        journal.purge(owners=["user:alice"], actor="user", reason="asked")
        assert files_that_hold(tmp_path, *SECRETS) == []
