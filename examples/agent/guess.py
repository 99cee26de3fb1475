"""A game of several turns for `memograd train agent`: find a number by asking higher or lower.

    python examples/agent/guess.py                      # writes the three files of rows beside it
    memograd sft --data examples/agent/demonstrations.jsonl --out runs/guess-warm learning_rate=5e-4
    memograd train agent --environment examples/agent/guess.py:GuessNumber \
        --data examples/agent/rows.jsonl --eval examples/agent/held_out.jsonl \
        --config examples/agent/small.toml adapter=runs/guess-warm

Seven numbers and three guesses: whoever always asks for the middle finds each, whoever asks for any
number that is still possible finds 68 of 100. The demonstrations play the second way. They teach a
small model the form of a call and what the answer means; the search itself is left to GRPO.

Invariant: training and held-out rows are of different tens, so no held-out number was ever asked.
The class is written as TRL's `environment_factory` takes it, so it works there too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

SIZE, TURNS = 7, 3
TRAIN_TENS, HELD_OUT_TENS = (10, 20, 40, 50, 70, 80), (30, 60, 90)
GAMES, SEED = 96, 0
FOUND = "That is it."


class GuessNumber:
    """The policy calls `guess` until it has found the number or the turns are used up."""

    def reset(self, number: int, low: int, high: int, **row: object) -> None:
        """Begin a new game; a returned text would be added to the row's prompt."""
        self._number, self._low, self._high = number, low, high
        self._possible, self._found = high - low, False

    def guess(self, number: int) -> str:
        """Guess the number.

        Args:
            number: The guess.
        """
        guessed = int(number)
        if guessed == self._number:
            self._found = True
            return FOUND
        if guessed < self._number:
            self._low = max(self._low, guessed + 1)
        else:
            self._high = min(self._high, guessed - 1)
        return f"It is between {self._low} and {self._high}."

    def get_reward(self) -> float:
        """1 for the number, otherwise up to one half for how many others were ruled out."""
        if self._found:
            return 1.0
        return 0.5 * (1 - (self._high - self._low) / self._possible)


def rows(tens: Iterable[int]) -> list[dict[str, object]]:
    """A row for each number of each ten."""
    return [
        {
            "id": f"number-{number}",
            "prompt": f"Find my number. It is between {ten + 1} and {ten + SIZE}.",
            "number": number,
            "low": ten + 1,
            "high": ten + SIZE,
        }
        for ten in tens
        for number in range(ten + 1, ten + SIZE + 1)
    ]


def demonstration(row: dict[str, object], draw: random.Random) -> dict[str, object]:
    """A game in which each guess is any number that is still possible, for `memograd sft`."""
    from transformers.utils import get_json_schema

    game = GuessNumber()
    game.reset(**row)  # type: ignore[arg-type]
    messages = [{"role": "user", "content": row["prompt"]}]
    answer = ""
    for _ in range(TURNS):
        number = draw.randint(game._low, game._high)
        call = json.dumps({"name": "guess", "arguments": {"number": number}})
        answer = game.guess(number)
        messages += [
            {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"},
            {"role": "tool", "content": answer},
        ]
        if answer == FOUND:
            break
    messages.append({"role": "assistant", "content": "Found." if answer == FOUND else "Lost."})
    return {"messages": messages, "tools": [get_json_schema(game.guess)]}


def main() -> None:
    """Write `rows.jsonl`, `held_out.jsonl` and `demonstrations.jsonl` beside this file."""
    draw = random.Random(SEED)
    train = [json.dumps(row) for row in rows(TRAIN_TENS)]
    games: dict[str, None] = {}  # each once
    while len(games) < GAMES:
        games[json.dumps(demonstration(json.loads(draw.choice(train)), draw))] = None
    files = {
        "rows.jsonl": train,
        "held_out.jsonl": [json.dumps(row) for row in rows(HELD_OUT_TENS)],
        "demonstrations.jsonl": list(games),
    }
    for name, lines in files.items():
        Path(__file__).with_name(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
