"""Check author batches: quotes stand in their turns, names are known, expressions compile.

Usage: python corpus/check.py [FILE ...]   (all files when none is named; exit code 2 when something
is wrong)
"""

import collections
import json
import pathlib
import re
import sys

KINDS = set(
    [
        "change",
        "comment",
        "addition",
        "other_person",
        "ending",
        "correction",
        "retraction",
        "hypothetical_or_past",
        "embedded",
        "dialogue",
        "not_memory",
        "secret",
        "dates",
        "said_by_others",
        "life",
        "chat",
    ]
)
ROLES = {"u", "a", "t", "s"}
RELATIONS = set(["replace", "end", "correct", "retract", "detail", "same", "comment", "beside"])


def problems_of_dialogue(case: dict) -> list[str]:
    """What is wrong with one case of `dialogues/`, a sentence each."""
    wrong, known = [], set()
    if case.get("k") not in KINDS:
        wrong.append(f"unknown kind {case.get('k')!r}")
    for turn in case.get("t", []):
        role, text, facts, acts, _ = (*turn, *([], [], None)[len(turn) - 2 :])
        if role not in ROLES:
            wrong.append(f"unknown role {role!r}")
        for name, relation in acts:
            if name not in known:
                wrong.append(f"acts on {name!r}, which no earlier turn says")
            if relation not in RELATIONS:
                wrong.append(f"unknown relation {relation!r}")
        for name, quote, statement in facts:
            if name in known:
                wrong.append(f"fact {name!r} stands twice")
            if not quote or quote not in text:
                wrong.append(f"quote {quote!r} is no part of {text!r}")
            if not statement.strip():
                wrong.append(f"fact {name!r} has no statement")
            known.add(name)
    for question, facts, *expression in case.get("q", []):
        if set(facts) - known:
            wrong.append(f"question {question!r} needs unknown facts {set(facts) - known}")
        if facts and not expression:
            wrong.append(f"question {question!r} has no expression")
        for one in expression:
            re.compile(one)
    return wrong


def problems_of_conversation(case: dict) -> list[str]:
    """What is wrong with one conversation of `conversations/`, a sentence each."""
    wrong, known, last = [], set(), ""
    for s, session in enumerate(case["sessions"], 1):
        if session["at"] <= last:
            wrong.append(f"session {s} is not later than the one before")
        last = session["at"]
        for n, turn in enumerate(session["turns"], 1):
            if len(turn) != 2 or turn[0] not in case["speakers"]:
                wrong.append(f"turn {s}:{n} is not [speaker, text] with a known speaker")
            known.add(f"{s}:{n}")
    for question in case["questions"]:
        if set(question["evidence"]) - known:
            wrong.append(
                f"{question['q']!r} names unknown turns {set(question['evidence']) - known}"
            )
        if bool(question["evidence"]) == (question["kind"] == "unanswerable"):
            wrong.append(f"{question['q']!r}: only an unanswerable question has no evidence")
    return wrong


def main() -> int:
    here = pathlib.Path(__file__).parent
    paths = [pathlib.Path(p) for p in sys.argv[1:]] or sorted(here.glob("*/*.jsonl"))
    bad = 0
    for path in paths:
        check = (
            problems_of_conversation
            if path.parent.name == "conversations"
            else problems_of_dialogue
        )
        counts, seen = collections.Counter(), set()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            try:
                case = json.loads(line)
                wrong = check(case)
            except Exception as error:
                case, wrong = {}, [f"{type(error).__name__}: {error}"]
            key = json.dumps(case.get("t") or case.get("sessions"), ensure_ascii=False)
            if key in seen:
                wrong.append("stands twice in this file")
            seen.add(key)
            counts[case.get("k", "conversation")] += 1
            bad += len(wrong)
            for sentence in wrong:
                print(f"{path.name}:{number}: {sentence}")
        print(f"{path.name}: {sum(counts.values())} cases {dict(counts)}")
    return 2 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
