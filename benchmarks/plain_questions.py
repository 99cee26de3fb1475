"""Plain questions about a user whose memory holds talk, too: which of the first memories answer.

    OMP_NUM_THREADS=1 python benchmarks/plain_questions.py
    OMP_NUM_THREADS=1 python benchmarks/plain_questions.py --ranking runs/my-run/final
    OMP_NUM_THREADS=1 python benchmarks/plain_questions.py --by-name   # "How old is Priya?"

A memory has heard four sittings of a chat (about 40 items) and then one short dialogue, of which it
is asked ("How old is the user?"). Behaviour cases of ten authors are asked, every seventh, and the
written dialogues of four (h, j, u, e). Recall at k is the share of questions whose answer matches
one of the first k memories, of those that any memory answers, with 95% bootstraps over questions:
by the ranking of the memory, by rank fusion, and by the cosine alone; gains over them are paired.
`top` is what each case asks for, 3 or 5. One JSON line a set and language. With `--by-name` the
memory is told the user's name before all else, and questions about the user call them by it.

Invariant: nothing here is in the material that the ranker learnt memories from: neither the
dialogues' authors nor the conversation (docs/retrieval.md, `turns_only`).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from months_of_talk import CORPUS, EARLIER, SITTINGS, messages_of, sittings

from behaviour import SUITES
from memograd import Memory
from memograd.data import load_any
from memograd.data.record_files import json_lines
from memograd.evaluation import bootstrap_interval
from memograd.tasks.relations.cases import (
    DEFAULT_TIME,
    Case,
    author_of,
    language_of,
    play,
    read_cases,
)
from memograd.tasks.relations.rows import ROLES

AUTHORS: Final = tuple(f"s{number}" for number in range(1, 11))
KINDS: Final = (
    "change", "comment", "addition", "other_person", "embedded", "dialogue", "dates",
    "hypothetical_or_past",
)  # fmt: skip
EVERY: Final = 7
WRITTEN: Final = {"h": 3, "j": 4, "u": 2, "e": 6}
"""Authors of dialogues that no ranker learns from, and every how many-th is told."""
KS: Final = (1, 3, 5, 10)
ITEMS: Final = 500  # more than any of these memories holds
NAMES: Final = {
    "en": ("My name is Priya Nair.", "the user", "Priya"),
    "zh": ("我叫李娜。", "用户", "李娜"),
}
"""What the user says of their name, and what of a question gives way to which name."""


def all_cases() -> list[Case]:
    """Behaviour cases and written dialogues, both as cases."""
    paths = [SUITES / f"{language}.jsonl" for language in ("en", "zh")]
    cases = [case for case in read_cases(paths, AUTHORS) if case["kind"] in KINDS][::EVERY]
    for language in ("en", "zh"):
        for author, every in WRITTEN.items():
            path = CORPUS.parent / "dialogues" / f"{language}-{author}.jsonl"
            if path.exists():
                cases += [
                    as_case(case, f"{language}-{author}-{number}")
                    for number, case in list(json_lines(path, "dialogues"))[::every]
                ]
    return cases


def as_case(dialogue: dict[str, Any], name: str) -> Case:
    """A written dialogue as a behaviour case."""
    steps = [
        {
            "messages": [{"role": ROLES[role], "content": text}],
            "timestamp": rest[2] if len(rest) > 2 else DEFAULT_TIME,
        }
        for role, text, *rest in dialogue["t"]
    ]
    asks = [{"q": q[0], "has": q[2]} for q in dialogue.get("q", ()) if len(q) > 2]
    return {"id": name, "kind": dialogue["k"], "steps": steps, "ask": asks}


def by_name(case: Case) -> Case:
    """The questions about the user with the name in their place; no others."""
    _, user, name = NAMES[language_of(case)]
    about = re.compile(user, re.IGNORECASE)
    asks = [ask | {"q": about.sub(name, ask["q"])} for ask in _asks(case) if about.search(ask["q"])]
    return case | {"ask": asks}


def asked_of(memory: Memory, case: Case, ranking: str) -> dict[str, list[list[str]]]:
    """The first texts of every question, by how they were found."""
    modes = {ranking: "hybrid"} if ranking == "fusion" else {"memory": "hybrid", "cosine": "dense"}
    return {
        name: [[hit["memory"] for hit in _hits(memory, ask["q"], mode)] for ask in _asks(case)]
        for name, mode in modes.items()
    }


def _hits(memory: Memory, question: str, mode: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = memory.search(question, user_id="u", top_k=max(KS), mode=mode)[
        "results"
    ]
    return found


def _asks(case: Case) -> list[dict[str, Any]]:
    return [ask for ask in case.get("ask", ()) if ask.get("has")]


def found_in(
    cases: Sequence[Case], ranking: str, *, named: bool
) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Every question that a memory of its memory answers: whether the first k do, by way and k.

    named: the memory knows what the user is called.
    """
    settings: dict[str, Any] = {"env_file": None}
    for language in ("en", "zh"):
        with tempfile.TemporaryDirectory() as heard:
            with Memory.open(heard, **settings) as memory:
                talk = load_any(CORPUS / f"{language}-g.jsonl")[0]
                user = talk.turns[0].speaker
                if named:
                    memory.add(NAMES[language][0], user_id="u", timestamp=EARLIER)
                for turns in sittings(talk)[:SITTINGS]:
                    memory.add(messages_of(turns, user), user_id="u", timestamp=EARLIER)
            for case in cases:
                if language_of(case) != language or not _asks(case):
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    shutil.copytree(heard, folder, dirs_exist_ok=True)
                    with Memory.open(folder, ranking=ranking, **settings) as memory:
                        play(memory, case, "u")
                        held = memory.get_all(user_id="u", limit=ITEMS)["results"]
                        found = asked_of(memory, case, ranking)
                    with Memory.open(folder, ranking="fusion", **settings) as memory:
                        found |= asked_of(memory, case, "fusion")
                for number, ask in enumerate(_asks(case)):
                    right = re.compile(ask["has"], re.IGNORECASE)
                    if right.search("\n".join(one["memory"] for one in held)):
                        yield case, _judged(right, ask, number, found)


def _judged(
    right: re.Pattern[str], ask: Case, number: int, found: dict[str, list[list[str]]]
) -> dict[str, Any]:
    counts = {**{f"@{k}": k for k in KS}, "top": ask.get("top", 3)}
    return {
        f"{way} {name}": right.search("\n".join(texts[number][:k])) is not None
        for way, texts in found.items()
        for name, k in counts.items()
    }


def lines(cases: Sequence[Case], ranking: str, *, named: bool) -> Iterator[dict[str, Any]]:
    """One line a set and language."""
    judged: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for case, found in found_in(cases, ranking, named=named):
        which = "dialogues" if author_of(case) in WRITTEN else "cases"
        judged.setdefault((which, language_of(case)), []).append(found)
    for (which, language), rows in judged.items():
        line: dict[str, Any] = {"bench": "plain", "set": which, "language": language}
        line["questions"] = len(rows)
        for name in rows[0]:
            line[name] = _percent(np.array([row[name] for row in rows], float))
        for other in ("cosine", "fusion"):
            gains = [float(row["memory top"]) - float(row[f"{other} top"]) for row in rows]
            line[f"gain on {other}"] = _percent(np.array(gains))
        yield line


def _percent(values: np.ndarray) -> list[float]:
    low, high = bootstrap_interval(values.tolist())
    return [round(100 * float(one), 1) for one in (values.mean(), low, high)]


def main() -> None:
    """Tell, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranking", default="trained", help="a ranker beside the one that ships")
    parser.add_argument("--by-name", action="store_true", help="questions call the user by name")
    arguments = parser.parse_args()
    cases = [by_name(case) if arguments.by_name else case for case in all_cases()]
    for line in lines(cases, arguments.ranking, named=arguments.by_name):
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
