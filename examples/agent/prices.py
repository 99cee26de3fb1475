r"""An agent with one tool for `memograd train agent`: look up what a thing costs, then say it.

    python examples/agent/prices.py             # writes the three files of rows beside it
    memograd sft --data examples/agent/demonstrations.jsonl --out runs/prices-warm \
        learning_rate=5e-4
    memograd train agent --environment examples/agent/prices.py:Prices \
        --rewards examples/agent/prices.py:right_answer \
        --data examples/agent/rows.jsonl --eval examples/agent/held_out.jsonl \
        --config examples/agent/small.toml adapter=runs/prices-warm

The demonstrations are of a careless clerk: of two answers one is looked up, and one names some
price at once. So they teach a small model the form of a call and of an answer, and a bad habit
beside the good one. That only what was looked up is right, the reward alone says.

Invariant: no thing of a held-out row is in a demonstration or a training row, and prices are drawn
for each row, so nothing that was learnt by heart is right there.
The class is written as TRL's `environment_factory` takes it, so it works there too.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

WORDS = """
anchor apron armchair axe backpack ball barrel basket bath bed bell belt bench bicycle
blanket boat book boot bottle bowl box bracelet bread brick broom brush bucket cabinet cage
cake camera candle cap car carpet cart chain chair chest clock coat comb cradle crown cup
curtain cushion desk dish doll door dress drum fan fence flag flute fork fountain frame
glove guitar hammer hat helmet hook jacket jar kettle key kite knife ladder lamp lantern
letter lock mask mat mirror nail needle oven paddle painting pan pen pencil piano pillow
pipe pistol plate plough pot purse radio rake ring rope saddle sail saw scarf shelf shirt
shoe shovel sofa spoon stool stove sword table tent tie towel tray trunk umbrella vase
violin wallet watch wheel whistle window
"""
THINGS = WORDS.split()
HELD_OUT, PRICES = 24, range(100, 1000)
DEMONSTRATIONS, LOOKED_UP_OF = 128, 2
SEED = 0


class Prices:
    """The policy may ask `price_of` before it answers."""

    def reset(self, thing: str, price: int) -> None:
        """Begin a new attempt; a returned text would be added to the row's prompt."""
        self._thing, self._price = thing, price

    def price_of(self, thing: str) -> str:
        """Look up what a thing costs.

        Args:
            thing: The name of the thing.
        """
        if thing.strip().lower() != self._thing:
            return f"There is no {thing} here."
        return f"{self._price} crowns"


def right_answer(
    completions: Sequence[Sequence[dict[str, str]]], price: Sequence[int], **columns: object
) -> list[float]:
    """1 where the last message is an answer, no call, and the price is the one number in it."""
    return [
        float(
            messages[-1]["role"] == "assistant"
            and "<tool_call>" not in messages[-1]["content"]
            and re.findall(r"\d+", messages[-1]["content"]) == [str(wanted)]
        )
        for messages, wanted in zip(completions, price, strict=True)
    ]


def row(thing: str, draw: random.Random) -> dict[str, object]:
    """A question, and what `reset` and the reward are told."""
    prompt = f"What does the {thing} cost?"
    return {"id": thing, "prompt": prompt, "thing": thing, "price": draw.choice(PRICES)}


def demonstration(thing: str, looks_up: bool, draw: random.Random) -> dict[str, object]:
    """An answer to the question, looked up or made up, for `memograd sft`."""
    from transformers.utils import get_json_schema

    asked = row(thing, draw)
    messages = [{"role": "user", "content": asked["prompt"]}]
    said = f"{draw.choice(PRICES)} crowns"
    environment = Prices()
    if looks_up:
        environment.reset(thing, int(str(asked["price"])))
        said = environment.price_of(thing)
        call = json.dumps({"name": "price_of", "arguments": {"thing": thing}})
        messages += [
            {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"},
            {"role": "tool", "content": said},
        ]
    messages.append({"role": "assistant", "content": f"The {thing} costs {said}."})
    return {"messages": messages, "tools": [get_json_schema(environment.price_of)]}


def main() -> None:
    """Write `rows.jsonl`, `held_out.jsonl` and `demonstrations.jsonl` beside this file."""
    draw = random.Random(SEED)
    things = draw.sample(THINGS, len(THINGS))
    held_out, train = things[:HELD_OUT], things[HELD_OUT:]
    files = {
        "demonstrations.jsonl": [
            demonstration(draw.choice(train), place % LOOKED_UP_OF == 0, draw)
            for place in range(DEMONSTRATIONS)
        ],
        "rows.jsonl": [row(thing, draw) for thing in train],
        "held_out.jsonl": [row(thing, draw) for thing in held_out],
    }
    for name, rows in files.items():
        text = "".join(f"{json.dumps(one)}\n" for one in rows)
        Path(__file__).with_name(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
