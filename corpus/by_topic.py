"""Requests to forget one of several things, put together from written topics.

    python corpus/by_topic.py            # writes dialogues/en-topics.jsonl and zh-topics.jsonl

Somebody tells three to six things of different topics, in one message or two, and then asks to
forget one or two of them, named by their topic ("scrub my wages from your notes"), or speaks of a
topic and asks for nothing. Which fact a topic means is what a model is to learn here, so
topics, facts and forms (`topics/`) are written, and only who tells what is drawn.

In the forms {x} and {y} are the topics that are to go, {k} is that of a fact that is to stay.
Invariant: what is written is a function of the files of `topics/` and SEED.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SEED: Final = 11
DIALOGUES: Final = 900  # a language

OWN: Final = re.compile("我(?=在|是|有|每|今|住|叫|信|吃|开|养|一|买|欠|存|打|跟|去|下|刚|偷|不)")
"""Chinese says the person once, at the head of a list: 我在长沙开滴滴,养了两条狗."""
REMARK_SHARE: Final = 0.22


def main() -> None:
    """Write both files."""
    forms = json.loads((HERE / "topics" / "forms.json").read_text(encoding="utf-8"))
    for language in ("en", "zh"):
        rng = random.Random(f"{SEED}:{language}")
        lines = (HERE / "topics" / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()
        topics = [json.loads(line) for line in lines]
        out = HERE / "dialogues" / f"{language}-topics.jsonl"
        cases = [dialogue(topics, language, forms[language], rng) for _ in range(DIALOGUES)]
        out.write_text(
            "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases), encoding="utf-8"
        )


def dialogue(
    topics: list[dict[str, list[str]]],
    language: str,
    forms: dict[str, list[str]],
    rng: random.Random,
) -> dict:
    """One dialogue as `corpus/README.md` describes them."""
    told = rng.sample(topics, rng.choice([2, 3, 3, 4, 5]))
    facts = {f"f{n}": rng.choice(topic["facts"]) for n, topic in enumerate(told)}
    names = list(facts)
    cut = rng.choice([len(names), len(names), rng.randint(1, len(names))])
    turns = [
        message({name: facts[name] for name in part}, language, forms["joints"], rng)
        for part in (names[:cut], names[cut:])
        if part
    ]
    if rng.random() < 0.3:
        turns.append(["a", rng.choice(forms["replies"])])
    if rng.random() < 0.25:
        turns.append(["u", rng.choice(forms["asides"])])
    order = rng.sample(range(len(told)), 2)
    x, other = (rng.choice(told[n]["names"]) for n in order)
    remark = rng.random() < REMARK_SHARE
    form = rng.choice(forms["remarks" if remark else "requests"])
    text = form.format(x=x, y=other, k=other)
    if language == "en" and rng.random() < 0.5:
        text = text[0].upper() + text[1:]
    meant = order[:2] if "{y}" in form else order[:1]
    relation = "comment" if remark else "retract"
    acts = [[names[n], relation] for n in meant]
    turns.append(["u", text, [], acts])
    return {"k": "comment" if remark else "retraction", "t": turns, "q": []}


def message(facts: dict[str, str], language: str, joints: list[str], rng: random.Random) -> list:
    """One message that tells these facts side by side."""
    joint = rng.choice(joints)
    quotes = list(facts.values())
    lower = language == "en" and joint.strip() in {",", "and", ";"}
    said = [quotes[0]] + [
        quote if lower or language == "zh" else quote[0].upper() + quote[1:] for quote in quotes[1:]
    ]
    if language == "zh":
        said[1:] = [
            quote[1:] if joint == "," and OWN.match(quote) and rng.random() < 0.5 else quote
            for quote in said[1:]
        ]
    told = [
        [name, quote, statement(quote, language)] for name, quote in zip(facts, said, strict=True)
    ]
    return ["u", joint.join(said), told]


def statement(quote: str, language: str) -> str:
    """The fact in the third person, as the memory's own reader puts it."""
    from memograd.memory.reader import person_chinese, person_english

    if language == "zh":
        return person_chinese.resolve_person(quote, "用户", None) + "。"
    told = person_english.resolve_person(quote, "User", None)
    return told[0].upper() + told[1:] + "."


if __name__ == "__main__":
    main()
