"""What the write path keeps of what is asked later: LongMemEval, MemDaily. JSON lines.

    python benchmarks/write_path.py --data DATA_FOLDER
    python benchmarks/write_path.py --data DATA_FOLDER --kinds knowledge-update --relations FILE

Each question's conversation is told, sitting by sitting, to a user of its own: MemDaily's messages;
of LongMemEval the sessions with the evidence, and --others sessions of other questions, drawn by
--seed among those before the question. By three ways: `default`, `rules`, `every` (each message
word for word). Then the question is searched for. One line a kind of question and measure, in per
cent but for the last two, with 95% bootstrap intervals over questions, of paired differences too:

    evidence@10, @3   share of the evidence turns behind an item among the ten (three) best
    shown             the same with ten raw turns of the same search, as `context` shows them
    answer            all words of a short answer stand in those of the ten that evidence is behind
    newest found      the last sitting's evidence is behind one of the ten (knowledge-update)
    newest current    and nothing that only older evidence is behind stands before it unmarked
    old unmarked      one of the ten that only older evidence is behind is not marked as past
    items a turn      items in the memory, by turns told
    tokens            estimated, of the ten best items

An item that tells the old value as the past of the new has both behind it: it counts as the newest.

Invariants: the same seed tells the same to all ways; the weights that ship read nothing of it.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any, Final

from months_of_talk import messages_of, sittings

from behaviour import open_memory
from memograd import Memory
from memograd.data import Conversation, Question, load_longmemeval, load_memdaily
from memograd.errors import BadInput
from memograd.evaluation import bootstrap_interval, paired_bootstrap_difference
from memograd.memory import RawTurn
from memograd.memory.embedders.load import open_embedder
from memograd.memory.language import estimate_tokens, language_of
from memograd.memory.records.events import EventKind
from memograd.memory.records.notes import is_doubted, is_past
from memograd.memory.records.scope import Scope
from memograd.rewards.overlap import squad_words

WAYS: Final = ("default", "rules", "every")
DEPTH, SHALLOW = 10, 3  # MemDaily's streams have 4 to 20 messages
SHORT: Final = {"en": 8, "zh": 12}  # words (characters) of an answer
Sets = dict[str, list[Conversation]]
Found = tuple[str, frozenset[str]]
"""The text of an item, and the turns behind it by the ids of the data set."""


def load(data: Path, kinds: Sequence[str], most: int, others: int, seed: int) -> Sets:
    """The conversations of both sets, each with the question that is asked of it."""
    known = load_longmemeval(data / "longmemeval" / "longmemeval_oracle_dev180.json.gz")
    paths = sorted((data / "memdaily").glob("*.json.gz"))
    streams = [one for path in paths for one in load_memdaily(path)]
    chosen = drawn(known, kinds, most, seed)
    sets = {
        "LongMemEval": [with_others(one, known, others, seed) for one in chosen],
        "MemDaily": drawn(streams, kinds, most, seed),
    }
    if not any(sets.values()):
        raise BadInput(f"No question in {data} is of the kind {', '.join(kinds)}.")
    return sets


def drawn(
    conversations: Sequence[Conversation], kinds: Sequence[str], most: int, seed: int
) -> list[Conversation]:
    """Those whose question has evidence, at most so many of a kind; kinds: none means all."""
    by_kind: dict[str, list[Conversation]] = {}
    for one in conversations:
        for question in one.questions[:1]:
            if question.evidence and (not kinds or question.category in kinds):
                by_kind.setdefault(question.category, []).append(one)
    return [
        one
        for kind, of in by_kind.items()
        for one in random.Random(f"{seed} {kind}").sample(of, min(most, len(of)))
    ]


def ids_of(turns: Sequence[RawTurn]) -> set[str]:
    """By which the data set names them."""
    return {turn.id for turn in turns}


def with_others(
    one: Conversation, known: Sequence[Conversation], others: int, seed: int
) -> Conversation:
    """The sittings with evidence, and so many of other questions, in the order of their times."""
    question, own = one.questions[0], ids_of(one.turns)
    heard = [turns for turns in sittings(one) if ids_of(turns) & {*question.evidence}]
    # One sitting may belong to several questions, so each counts once.
    strange = {
        turns[0].id: turns
        for other in known
        for turns in sittings(other)
        if not own & ids_of(turns) and turns[0].time <= question.asked_at
    }
    draw = random.Random(f"{seed} {question.id}")
    heard += draw.sample([strange[name] for name in sorted(strange)], min(others, len(strange)))
    heard.sort(key=lambda turns: turns[0].time)
    turns = [replace(turn, session=at) for at, of in enumerate(heard) for turn in of]
    return replace(one, turns=tuple(turns))


def tell(memory: Memory, told: Conversation, user_id: str, *, infer: bool) -> dict[str, str]:
    """Tell it all; the data set's id of each turn, by the memory's."""
    ids = []
    for turns in sittings(told):
        said = messages_of(turns, told.speakers[0])
        if said:
            memory.add(said, user_id=user_id, timestamp=turns[0].time, infer=infer)
            ids += [turn.id for turn in turns if turn.text.strip()]
    events = memory.store.journal.tail(Scope(user_id=user_id).owner)
    heard = [event.subject for event in events if event.kind is EventKind.TURN]
    return dict(zip(heard, ids, strict=True))


def ask(
    memory: Memory, question: Question, user_id: str, ids: Mapping[str, str]
) -> tuple[list[Found], frozenset[str]]:
    """The best items, and the raw turns that the same search shows."""
    given = {"user_id": user_id, "asked_at": question.asked_at}
    result = memory.search(question.text, top_k=DEPTH, turns=DEPTH, **given)
    items = [memory.store.item(hit["id"]) for hit in result["results"]]
    behind = [frozenset(ids[source] for source in item.sources) for item in items if item]
    texts = [hit["memory"] for hit in result["results"]]
    shown = frozenset(ids[turn["id"]] for turn in result["turns"])
    return list(zip(texts, behind, strict=True)), shown


def measures(told: Conversation, found: Sequence[Found], turns: frozenset[str]) -> dict[str, float]:
    """The measures of its question, those that apply; turns: what the search shows of them."""
    question, behind = told.questions[0], [turns for _, turns in found]
    evidence = frozenset(question.evidence)
    values = {f"evidence@{k}": share(evidence, behind[:k]) for k in (DEPTH, SHALLOW)}
    values["shown"] = share(evidence, [*behind, turns])
    parts = [part for turns in sittings(told) if (part := evidence & ids_of(turns))]
    if question.category == "knowledge-update" and len(parts) > 1:
        evidence, older = parts[-1], evidence - parts[-1]
        values |= newest_measures(found, evidence, older)
    language = language_of(question.answer)
    wanted = squad_words(question.answer, language)
    if 0 < len(wanted) <= SHORT[language] and wanted not in (["yes"], ["no"]):
        text = "\n".join(text for text, behind in found if behind & evidence)
        values["answer"] = 100.0 * (set(wanted) <= set(squad_words(text, language)))
    return values | {"tokens": float(sum(estimate_tokens(text) for text, _ in found))}


def newest_measures(
    found: Sequence[Found], newest: frozenset[str], older: frozenset[str]
) -> dict[str, float]:
    """Is the newest evidence found, and is what it took the place of told apart from it?"""
    first = next((at for at, (_, behind) in enumerate(found) if behind & newest), None)
    current = [
        bool(behind & older) and not (behind & newest or is_past(text) or is_doubted(text))
        for text, behind in found
    ]
    return {
        "newest found": 100.0 * (first is not None),
        "newest current": 100.0 * (first is not None and not any(current[:first])),
        "old unmarked": 100.0 * any(current),
    }


def share(evidence: frozenset[str], shown: Sequence[frozenset[str]]) -> float:
    """Per cent of the evidence that is among what is shown."""
    return 100 * len(evidence & frozenset().union(*shown)) / len(evidence)


def measured(sets: Sets, way: str, failures: int, **settings: Any) -> dict[str, dict[str, float]]:
    """The measures of every question, by its id; failures: how many to print."""
    values: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, open_memory(way, folder, **settings) as memory:
        for told in (one for conversations in sets.values() for one in conversations):
            question = told.questions[0]
            ids = tell(memory, told, told.id, infer=way != "every")
            items = len(memory.store.states.current(Scope(user_id=told.id).owner).items)
            found, turns = ask(memory, question, told.id, ids)
            of = measures(told, found, turns) | {"items a turn": items / len(ids)}
            values[question.id] = of
            if failures and min(of["evidence@10"], of.get("newest current", 100)) < 100:
                failures -= 1
                shown = [[text, sorted(behind)] for text, behind in found]
                line = {"way": way, "failure": asdict(question), "found": shown}
                print(json.dumps(line, ensure_ascii=False, default=str), flush=True)
    return values


def lines(
    sets: Sets, by_way: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> Iterator[dict[str, Any]]:
    """One line a set, kind and measure: mean, low and high of each way and difference."""
    first, *others = by_way
    for name, conversations in sets.items():
        kinds: dict[str, list[str]] = {}
        for question in (told.questions[0] for told in conversations):
            for kind in ("all", question.category):
                kinds.setdefault(kind, []).append(question.id)
        for kind, ids in kinds.items():
            for measure in dict.fromkeys(key for id in ids for key in by_way[first][id]):
                asked = [id for id in ids if measure in by_way[first][id]]
                rows = {way: [by_way[way][id][measure] for id in asked] for way in by_way}
                of = {way: (mean(row), *bootstrap_interval(row)) for way, row in rows.items()}
                for way in others:
                    of[f"{first} - {way}"] = paired_bootstrap_difference(rows[way], rows[first])
                line = {"bench": "write_path", "set": name, "kind": kind, "measure": measure}
                rounded = {what: [round(one, 2) for one in three] for what, three in of.items()}
                yield line | {"questions": len(asked)} | rounded


def main() -> None:
    """Tell, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument(
        "--kinds", nargs="+", default=[], help="of questions, such as knowledge-update"
    )
    parser.add_argument("--most", type=int, default=26, help="questions of a kind")
    parser.add_argument("--others", type=int, default=1, help="sittings of other questions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--relations", type=Path, help="file of another relation model")
    parser.add_argument("--failures", type=int, default=0, help="how many to print, of each way")
    given = parser.parse_args()
    try:
        sets = load(given.data, given.kinds, given.most, given.others, given.seed)
    except BadInput as error:
        parser.error(str(error))
    settings: dict[str, Any] = {"env_file": None, "embedder": open_embedder("e5")}
    if given.relations:
        settings["relations"] = given.relations
    by_way = {way: measured(sets, way, given.failures, **settings) for way in given.ways}
    for line in lines(sets, by_way):
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
