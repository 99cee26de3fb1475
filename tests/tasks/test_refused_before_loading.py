"""Settings that can be judged without a model or an embedder are refused before one is loaded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from memograd.cli import main
from memograd.memory.embedders import load as embedders
from memograd.memory.manager.trained.files import save_head
from memograd.memory.manager.trained.network import Shape
from memograd.policy import loading
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.relations import recipe as relations

CODE = '''
class Look:
    """An environment."""

    def reset(self, **row) -> None:
        """Nothing."""

    def look(self) -> str:
        """Look around."""
        return "nothing"

    def get_reward(self) -> float:
        """Nothing."""
        return 0.0


async def run(task, base_url, api_key):
    return 0.0
'''

TALK = {
    "id": "talk",
    "turns": [{"speaker": "Ada", "text": "I live in Rome."}, {"speaker": "Ben", "text": "Nice!"}],
    "questions": [{"question": "Where does Ada live?", "answer": "", "evidence": ["t1"]}],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with data, an environment and an agent, where nothing can be loaded."""

    def loaded(*args: Any, **options: Any) -> None:
        raise AssertionError("it was loaded")

    for kind in (loading.AutoModelForCausalLM, loading.AutoTokenizer):
        monkeypatch.setattr(kind, "from_pretrained", loaded)
    for name in ("E5Embedder", "MiniLMEmbedder", "SentenceTransformerEmbedder", "OpenAIEmbedder"):
        monkeypatch.setattr(embedders, name, loaded)
    for read in ("read_dialogues", "read_e5"):
        monkeypatch.setattr(relations, read, loaded)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": f"count: {number}", "answer": str(number)} for number in range(6)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("mine.py").write_text(CODE)
    Path("plain.jinja").write_text("{{ messages }}")
    Path("talk.jsonl").write_text(json.dumps(TALK) + "\n")
    Path("batch.jsonl").write_text("")
    head = OperationHead(Shape(384, 8, 1, 1)).trained("e5", {})
    save_head(head, Path("e5-head"))
    return tmp_path


NO_EMBEDDER = "There is no embedder 'none'"
NO_FOLDER = "names a folder that does not exist"
NO_MODEL = "the model folder ./none does not exist"
NO_TEMPLATE = "The chat template none.jinja cannot be read"
ALONE = "shard=fsdp2 cuts the model among several processes"
NOT_HELD_OUT = "nothing is held out"
TEXT = "data=rows.jsonl rewards=exact_match"
AGENT = "data=rows.jsonl episodes.environment=mine.py:Look"
SERVED = "data=rows.jsonl served.agent=mine.py:run"
LIVES = "build.logs=2 build.eval_logs=1"


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        ("memory-ops", "policy=nothing", "There is no trained head in"),
        ("memory-ops", "policy=e5-head", "set embedder=e5."),
        ("memory-ops", "embedder=none", NO_EMBEDDER),
        ("memory-ops", "policy=e5-head embedder=e5 width=16", "leave width out"),
        (
            "memory-ops",
            "algorithm=supervised data=talk.jsonl",
            "needs logs with gold operations",
        ),
        ("memory-ops", "embedder=st:./none", NO_FOLDER),
        ("memory-ops", "embedder=st:e5-head", "neither modules.json nor config.json"),
        ("memory-qa", "memory.embedder=st:./none", NO_FOLDER),
        ("memory-construct", f"{LIVES} build.embedder=st:./none", NO_FOLDER),
        ("memory-ops-text", f"{LIVES} build.embedder=st:./none", NO_FOLDER),
        ("retrieval", "logs=2 embedder=st:/none/at/all", NO_FOLDER),
        (
            "retrieval",
            "data=talk.jsonl held_out=0 algorithm=grpo reward=answer",
            "No question of data has a right answer",
        ),
        ("relations", "data=batch.jsonl layers=3 learning_layers=4", "more than layers=3"),
        ("relations", "data=batch.jsonl layers=3 start=none.npz", "none.npz"),
        ("relations", "data=batch.jsonl eval_data=none.jsonl", "eval_data names none.jsonl"),
        ("memory-qa", "memory.keep=items memory.policy=nothing", "There is no trained head in"),
        (
            "memory-qa",
            "memory.keep=items memory.policy=e5-head memory.embedder=minilm",
            "set memory.embedder=e5.",
        ),
        ("memory-qa", "memory.embedder=none", NO_EMBEDDER),
        ("memory-qa", "model=./none", NO_MODEL),
        ("memory-qa", "shard=fsdp2", ALONE),
        ("memory-construct", f"{LIVES} rewards=none", "none"),
        ("memory-construct", f"{LIVES} build.embedder=none", NO_EMBEDDER),
        ("memory-construct", f"{LIVES} build.reader=./none", NO_MODEL),
        (
            "memory-construct",
            f"{LIVES} build.format=tools episodes.chat_template=none.jinja",
            NO_TEMPLATE,
        ),
        ("memory-ops-text", f"{LIVES} build.embedder=none", NO_EMBEDDER),
        ("memory-ops-text", f"{LIVES} model=./none", NO_MODEL),
        ("text", f"{TEXT} model=./none", NO_MODEL),
        ("text", f"{TEXT} text.eval_fraction=0 eval_steps=1", NOT_HELD_OUT),
        ("agent", f"{AGENT} model=./none", NO_MODEL),
        ("agent", f"{AGENT} episodes.chat_template=none.jinja", NO_TEMPLATE),
        ("agent", f"{AGENT} episodes.chat_template=plain.jinja", "tool"),
        ("agent", f"{AGENT} text.eval_fraction=0 eval_steps=1", NOT_HELD_OUT),
        ("served-agent", f"{SERVED} episodes.chat_template=none.jinja", NO_TEMPLATE),
        ("served-agent", f"{SERVED} text.eval_fraction=0 eval_steps=1", NOT_HELD_OUT),
        ("sql", "episodes.chat_template=none.jinja", NO_TEMPLATE),
        ("sql", "model=./none", NO_MODEL),
        ("retrieval", "logs=2 embedder=none", NO_EMBEDDER),
        ("retrieval", "logs=2 dialogues=none.jsonl beside=none.jsonl", "none.jsonl"),
        ("retrieval", "logs=2 algorithm=grpo reward=answer reader=./none", NO_MODEL),
    ],
)
def test_it_is_one_sentence_and_nothing_was_loaded(
    folder: Path, capsys: pytest.CaptureFixture[str], task: str, settings: str, sentence: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["train", task, *settings.split(), "out=run", "steps=1"])
    error = capsys.readouterr().err
    assert exit_.value.code == 2, error
    assert sentence in error.replace(str(folder) + "/", "") and len(error.splitlines()) == 1
    assert not (folder / "run").exists()
