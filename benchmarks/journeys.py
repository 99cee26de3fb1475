"""How many files four journeys touch: those of memograd in which a function is called.

    python benchmarks/journeys.py                    # a table, each journey in a process of its own
    python benchmarks/journeys.py add --files        # one of them, with its files

What a reader of the code has to open to follow a call from end to end. Importing a file does not
count; a function that runs in it does, in any thread. `memory-qa` ends at the first step of the
optimiser, `memory-ops` when a memory with the trained head has decided.
"""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import memograd

PACKAGE = Path(memograd.__file__).parent
STATEMENTS = ("I moved to Bergen in May.", "My sister Ada lives in Turin.")


class FirstStep(Exception):
    """The optimiser has moved the weights."""


def add(folder: Path) -> None:
    """Two statements, the second with a memory that knows something."""
    from memograd import Memory

    with Memory.open(folder) as memory:
        for statement in STATEMENTS:
            memory.add(statement, user_id="alice")


def search(folder: Path) -> None:
    """A question to a memory that was told before."""
    from memograd import Memory

    with Memory.open(folder) as memory:
        memory.search("Where does Ada live?", user_id="alice")


def memory_qa(folder: Path) -> None:
    """GRPO on a language model, from the settings to the first step of the optimiser."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from memograd.tasks.base.life import train_task
    from memograd.tasks.memory_qa.recipe import RECIPE, TASK
    from memograd.tasks.memory_qa.settings import MemoryQATrainConfig

    def stop(*_: object) -> None:
        raise FirstStep

    register_optimizer_step_post_hook(stop)
    config = MemoryQATrainConfig(
        steps=1,
        prompts_per_step=2,
        num_generations=2,
        max_completion_length=4,
        max_train=4,
        max_eval=2,
        out=folder / "run",
    )
    try:
        train_task(TASK, RECIPE, config)
    except FirstStep:
        return
    raise SystemExit("The optimiser was not reached.")


def memory_ops(folder: Path) -> None:
    """A head for the memory's operations, trained, and asked by a memory."""
    from memograd import Memory
    from memograd.tasks.memory_ops.recipe import train
    from memograd.tasks.memory_ops.settings import OperationsConfig

    config = OperationsConfig(logs=4, eval_logs=2, steps=2, out=folder / "run")
    run = train(config)
    with Memory.open(folder / "m", policy=run / "final", embedder=config.embedder) as memory:
        memory.add(STATEMENTS[0], user_id="alice")


JOURNEYS = {"add": add, "search": search, "memory-qa": memory_qa, "memory-ops": memory_ops}


def files_of(journey: Callable[[Path], None]) -> set[Path]:
    """The files in which a function was called."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    with tempfile.TemporaryDirectory() as folder:
        if journey is search:
            add(Path(folder))
        threading.setprofile(note)
        sys.setprofile(note)
        journey(Path(folder))
        sys.setprofile(None)
    return {
        Path(code.co_filename)
        for code in called
        if code.co_flags & inspect.CO_OPTIMIZED  # a function, and no body of a module or a class
        and Path(code.co_filename).is_relative_to(PACKAGE)
    }


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("journey", nargs="?", choices=list(JOURNEYS))
    parser.add_argument("--files", action="store_true", help="name them")
    given = parser.parse_args()
    if given.journey is None:
        for name in JOURNEYS:
            command = [sys.executable, __file__, name, *(["--files"] if given.files else [])]
            subprocess.run(command, check=True)
        return
    found = sorted(path.relative_to(PACKAGE) for path in files_of(JOURNEYS[given.journey]))
    rooms = Counter(path.parts[0].removesuffix(".py") for path in found)
    shown = ", ".join(f"{room} {count}" for room, count in rooms.most_common())
    print(f"{given.journey}: {len(found)} files ({shown})")
    if given.files:
        print("\n".join(f"  {path}" for path in found))


if __name__ == "__main__":
    main()
