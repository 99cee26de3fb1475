"""A game of several turns for `memograd train agent`: find a number by asking higher or lower.

    python examples/agent/guess.py                      # writes the three files of rows beside it
    memograd sft --data examples/agent/demonstrations.jsonl --out runs/guess-warm learning_rate=5e-4
    memograd train agent --environment examples/agent/guess.py:GuessNumber \
        --rewards environment,examples/agent/guess.py:failed_calls \
        --data examples/agent/rows.jsonl --eval examples/agent/held_out.jsonl \
        --config examples/agent/small.toml adapter=runs/guess-warm

Three numbers and two guesses, and the number is not chosen before it must be: each answer leaves
the larger part. So luck finds nothing; whoever asks for the middle finds the number, and nobody
else does. The demonstrations are games of seven numbers that ask for any number that is still
possible. They teach a small model the form of a call and what the answer means; the search itself
is left to GRPO. Calls that fail cost, or a policy that earns half by any guess lets their form
slip.

Invariant: demonstrations and training rows are of other tens than held-out rows, so no held-out
number was ever asked for.
The class is written as TRL's `environment_factory` takes it, so it works there too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

SIZE, TURNS = 3, 2
DEMONSTRATED_SIZE, DEMONSTRATED_TURNS = 7, 3
TENS, HELD_OUT_TENS = range(100, 1000, 10), 30
GAMES, SEED = 96, 0
FOUND = "That is it."


class GuessNumber:
    """The policy calls `guess` until it has found the number or the turns are used up."""

    def reset(self, low: int, high: int, leans: str, **others: object) -> None:
        """Begin a new game; a returned text would be added to the row's prompt."""
        self._low, self._high, self._leans = low, high, leans
        self._possible, self._found = high - low, False

    def guess(self, number: int) -> str:
        """Guess the number.

        Args:
            number: The guess.
        """
        guessed = int(number)
        if self._low == self._high == guessed:
            self._found = True
            return FOUND
        below = min(guessed, self._high + 1) - self._low
        above = self._high - max(guessed, self._low - 1)
        if below > above or (below == above and self._leans == "low"):
            self._high = min(self._high, guessed - 1)
        else:
            self._low = max(self._low, guessed + 1)
        return f"It is between {self._low} and {self._high}."

    def get_reward(self) -> float:
        """1 for the number, otherwise up to one half for how many others were ruled out."""
        if self._found:
            return 1.0
        return 0.5 * (1 - (self._high - self._low) / self._possible)


def failed_calls(completions: Sequence[Sequence[dict[str, str]]], **columns: object) -> list[float]:
    """Minus a quarter for each call that could not be made, or was made of no tool."""
    return [
        -0.25 * sum(m["role"] == "tool" and m["content"].startswith("Error") for m in messages)
        for messages in completions
    ]


def row(place: int, low: int, size: int) -> dict[str, object]:
    """A game of the `size` numbers from `low`; where both parts are alike, places take turns."""
    return {
        "id": f"from-{low}",
        "prompt": f"Find my number. It is between {low} and {low + size - 1}.",
        "low": low,
        "high": low + size - 1,
        "leans": ("low", "high")[place % 2],
    }


def rows(tens: Sequence[int], draw: random.Random) -> list[dict[str, object]]:
    """A game of each of the tens."""
    lows = [ten + draw.randint(0, 10 - SIZE) for ten in tens]
    return [row(place, low, SIZE) for place, low in enumerate(lows)]


def demonstration(game_row: dict[str, object], draw: random.Random) -> dict[str, object]:
    """A game in which each guess is any number that is still possible, for `memograd sft`."""
    from transformers.utils import get_json_schema

    game = GuessNumber()
    game.reset(**game_row)  # type: ignore[arg-type]
    messages = [{"role": "user", "content": game_row["prompt"]}]
    for _ in range(DEMONSTRATED_TURNS):
        number = draw.randint(game._low, game._high)
        call = json.dumps({"name": "guess", "arguments": {"number": number}})
        messages += [
            {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"},
            {"role": "tool", "content": game.guess(number)},
        ]
    return {"messages": messages[:-1], "tools": [get_json_schema(game.guess)]}


def main() -> None:
    """Write `rows.jsonl`, `held_out.jsonl` and `demonstrations.jsonl` beside this file."""
    draw = random.Random(SEED)
    tens = draw.sample(TENS, len(TENS))
    held_out, train = tens[:HELD_OUT_TENS], tens[HELD_OUT_TENS:]
    larger = [row(place, ten + 1, DEMONSTRATED_SIZE) for place, ten in enumerate(train)]
    games: dict[str, None] = {}  # each once
    while len(games) < GAMES:
        games[json.dumps(demonstration(draw.choice(larger), draw))] = None
    files = {
        "demonstrations.jsonl": list(games),
        "rows.jsonl": [json.dumps(one) for one in rows(train, draw)],
        "held_out.jsonl": [json.dumps(one) for one in rows(held_out, draw)],
    }
    for name, lines in files.items():
        Path(__file__).with_name(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
