"""What a memory that is in use does: how much of real talk it changes, and the cases beside it.

    python benchmarks/months_of_talk.py                          # written conversations, and cases
    python benchmarks/months_of_talk.py --only talk --talks locomo10.json --relations FILE
    python benchmarks/months_of_talk.py --only cases --authors s9,s10 --every 2

A behaviour case has one fact and one message, so a model that closes whatever it sees does well
there. In a talk of months most messages change nothing. `talk` tells whole conversations to the
default memory, sitting by sitting, and counts by what it changed of items and turns, in a hundred
messages of people; an `evidence` turn that is hidden answers a question that asks of no change.
`cases` tells each case to a memory that has heard some sittings of a conversation; kinds whose
checks look at what must not be kept at all are left out. One JSON line each.

Invariant: the conversations are none that the weights learnt from (corpus/split.json).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from behaviour import SUITES
from memograd import Memory
from memograd.data import Conversation, load_any
from memograd.memory import RawTurn
from memograd.memory.records.operations import REASONS
from memograd.memory.records.scope import Scope
from memograd.tasks.relations.cases import Case, language_of, play, read_cases, what_is_wrong

CORPUS: Final = Path(__file__).resolve().parents[1] / "corpus" / "conversations"
KINDS: Final = (
    "change", "ending", "correction", "comment", "addition", "other_person", "retraction",
)  # fmt: skip
CHANGES: Final = ("replace", "correct", "end", "doubt", "retract", "forget", "contrary")
OWNER: Final = Scope(user_id="u").owner
SITTINGS: Final = 4  # that a memory has heard before a case
EARLIER: Final = "2024-04-01"  # before the cases


def messages_of(turns: Sequence[RawTurn], user: str | None = None) -> list[dict[str, Any]]:
    """As a chat; user: who is the user, the others are the assistant. None: people by name."""
    found = []
    for turn in turns:
        if user is not None:
            role = {"role": "user" if turn.speaker == user else "assistant"}
        elif turn.speaker.casefold() in ("user", "assistant"):
            role = {"role": turn.speaker.casefold()}
        else:
            role = {"role": "user", "name": turn.speaker}
        if turn.text.strip():
            found.append({**role, "content": turn.text})
    return found


def sittings(conversation: Conversation) -> list[list[RawTurn]]:
    """The turns of each sitting."""
    by_session: dict[int, list[RawTurn]] = {}
    for turn in conversation.turns:
        by_session.setdefault(turn.session, []).append(turn)
    return list(by_session.values())


def changes_in(conversation: Conversation, **settings: Any) -> Counter[str]:
    """How many messages people sent, what was changed, and which turns were hidden."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, **settings) as memory:
        for turns in sittings(conversation):
            memory.add(messages_of(turns), user_id="u", timestamp=turns[0].time)
        told = [turn for turn in conversation.turns if turn.text.strip()]
        found["messages"] = sum(turn.said_as == "user" for turn in told)
        for event in memory.store.journal.tail(OWNER):
            name = next((n for n in CHANGES if event.reason.startswith(REASONS[n])), None)
            if name is not None and event.kind.value in ("UPDATE", "DELETE"):
                found[name] += 1
        asked = {
            turn
            for question in conversation.questions
            if question.category != "updates"
            for turn in question.evidence
        }
        shown = Counter(turn.text.strip() for turn in memory.store.states.current(OWNER).turns)
        for turn in told:
            shown[turn.text.strip()] -= 1
            if shown[turn.text.strip()] < 0:
                found["hidden"] += 1
                found["hidden evidence"] += turn.id in asked
    return found


def talk_lines(talks: Sequence[Path], **settings: Any) -> Iterator[dict[str, Any]]:
    """One line a file."""
    for path in talks:
        total: Counter[str] = Counter()
        for conversation in load_any(path):
            total += changes_in(conversation, **settings)
        messages = total.pop("messages")
        rates = {name: round(100 * count / messages, 2) for name, count in total.items()}
        yield {"bench": "talk", "file": path.stem, "messages": messages, "in a hundred": rates}


def case_lines(
    cases: Sequence[Case], talks: dict[str, Path], **settings: Any
) -> Iterator[dict[str, Any]]:
    """One line a language: right cases of all, by kind."""
    for language, path in talks.items():
        right, total = Counter[str](), Counter[str]()
        with tempfile.TemporaryDirectory() as heard:
            with Memory.open(heard, **settings) as memory:
                conversation = load_any(path)[0]
                user = conversation.turns[0].speaker
                for turns in sittings(conversation)[:SITTINGS]:
                    memory.add(messages_of(turns, user), user_id="u", timestamp=EARLIER)
                items = [one["memory"] for one in memory.get_all(user_id="u")["results"]]
            for case in (one for one in cases if language_of(one) == language):
                if any(re.search(bad, "\n".join(items), re.I) for bad in case.get("all_not", [])):
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    shutil.copytree(heard, folder, dirs_exist_ok=True)
                    with Memory.open(folder, **settings) as memory:
                        play(memory, case, "u")
                        right[case["kind"]] += what_is_wrong(memory, case, "u") is None
                total[case["kind"]] += 1
        yield {
            "bench": "cases",
            "language": language,
            "items before": len(items),
            "right": round(100 * right.total() / max(total.total(), 1), 1),
            "cases": total.total(),
            "by kind": {kind: f"{right[kind]}/{count}" for kind, count in total.items()},
        }


def main() -> None:
    """Tell, count, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("talk", "cases"))
    parser.add_argument("--talks", nargs="+", type=Path, help="conversations of docs/data.md")
    parser.add_argument("--authors", default="s9,s10")
    parser.add_argument("--every", type=int, default=2, help="every how many-th case is told")
    parser.add_argument("--relations", type=Path, help="file of another relation model")
    given = parser.parse_args()
    settings = {"env_file": None, "embedder": "e5"}
    if given.relations:
        settings["relations"] = given.relations
    unheard = {language: CORPUS / f"{language}-g.jsonl" for language in ("en", "zh")}
    if given.only != "cases":
        _print(talk_lines(given.talks or list(unheard.values()), **settings))
    if given.only != "talk":
        cases = read_cases(sorted(SUITES.glob("*.jsonl")), given.authors.split(","))
        cases = [case for case in cases if case["kind"] in KINDS]
        _print(case_lines(cases[:: given.every], unheard, **settings))


def _print(lines: Iterator[dict[str, Any]]) -> None:
    for line in lines:
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
