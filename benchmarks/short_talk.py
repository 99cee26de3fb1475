"""What short talk does to a memory that knows two things: it should do nothing.

    OMP_NUM_THREADS=1 python benchmarks/short_talk.py
    OMP_NUM_THREADS=1 python benchmarks/short_talk.py --batches aw,at --messages 100 --ways default

Each message is told alone, behind two facts that have nothing to do with it, as where an
application adds what its user says and not what the assistant answers. `as` and `av` are chat that
nothing learnt from. Beside the default memory the rules, which hardly understand it and so hardly
change anything; a store of every message changes nothing at all. One JSON line a language and way:
facts that are gone, changed or ended, and facts that are only doubted. Four minutes of one core.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import tempfile
from pathlib import Path

from memograd import Memory
from memograd.data.record_files import json_lines
from memograd.memory.manager.past import present
from memograd.memory.records.notes import is_doubted
from memograd.tasks.relations.rows import part_of

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "dialogues"
WAYS = {"default": "trained", "rules": "rules"}
FACTS = {
    "en": (
        "My rent is 1450 euros a month.",
        "I live in Leeds with my sister Ann.",
        "I have a dog called Rex.",
        "I work at Tesco.",
        "I'm allergic to penicillin.",
        "My flight is on 14 June at 6am.",
        "I drive a Honda.",
        "My daughter Mia is nine.",
        "I take 50 mg of sertraline.",
        "I play the cello on Tuesdays.",
        "We booked a table at Enzo for Friday.",
        "I'm vegetarian.",
        "My birthday is 3 March.",
        "I support Leeds United.",
        "My boss is called Karen.",
    ),
    "zh": (
        "我每月房租1450",
        "我和姐姐住在南京",
        "我养了一只狗叫旺财",
        "我在银行上班",
        "我对青霉素过敏",
        "我6月14号早上六点的飞机",
        "我开本田",
        "我女儿九岁",
        "我每天吃50毫克舍曲林",
        "我每周二拉大提琴",
        "我订了周五的位子",
        "我吃素",
        "我生日是三月三号",
        "我支持申花",
        "我领导姓王",
    ),
}


def messages(language: str, batches: list[str]) -> list[str]:
    """What users say in these batches and what closes nothing."""
    found = []
    for name in batches:
        for _, case in json_lines(CORPUS / f"{language}-{name}.jsonl", "dialogues"):
            found += [t[1] for t in case["t"] if t[0] == "u" and not part_of(t, 3)]
    return found


def main() -> None:
    """Tell, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", default="as,av")
    parser.add_argument("--messages", type=int, default=150)
    parser.add_argument("--ways", nargs="+", choices=["default", "rules"], default=[*WAYS])
    arguments = parser.parse_args()
    for language, way in itertools.product(FACTS, arguments.ways):
        facts = FACTS[language]
        draw = random.Random(3)
        said = messages(language, arguments.batches.split(","))
        draw.shuffle(said)
        said = said[: arguments.messages]
        gone = doubted = 0
        with (
            tempfile.TemporaryDirectory() as folder,
            Memory.open(folder, reader=WAYS[way], manager=WAYS[way], env_file=None) as memory,
        ):
            for number, text in enumerate(said):
                user = f"{language}-{number}"
                for fact in draw.sample(facts, 2):
                    memory.add(fact, user_id=user)
                before = [one["memory"] for one in memory.get_all(user_id=user)["results"]]
                memory.add(text, user_id=user)
                after = [one["memory"] for one in memory.get_all(user_id=user)["results"]]
                doubts = {present(one) for one in after if is_doubted(one)}
                lost = [one for one in before if one not in after]
                doubted += any(one in doubts for one in lost)
                gone += any(one not in doubts for one in lost)
        print(
            json.dumps(
                {
                    "bench": "short_talk",
                    "language": language,
                    "way": way,
                    "batches": arguments.batches,
                    "messages": len(said),
                    "changed_a_fact": gone,
                    "doubted_one": doubted,
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
