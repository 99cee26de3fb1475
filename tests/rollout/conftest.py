"""Tokenizers with chat templates, a sampler that says what a test wants, and a tiny real policy."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from memograd.config import LoraConfig
from memograd.policy import SampledGroup
from memograd.policy.language_model import LanguageModel
from memograd.rollout import TokenTree
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.types import each


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_model_folder: Path) -> PreTrainedTokenizerBase:
    """One byte a token; `<|start|>role`, a line, the content, `<|end|>`."""
    return AutoTokenizer.from_pretrained(tiny_model_folder)


@pytest.fixture(scope="session")
def qwen3_tokenizer(
    shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> PreTrainedTokenizerBase:
    """Qwen 3's tokenizer with its chat template."""
    source = shared_data / "qwen3_tokenizer"
    if not source.is_dir():
        pytest.skip("Qwen 3's tokenizer is not beside this checkout")
    folder = tmp_path_factory.mktemp("qwen3")
    shutil.copy(source / "tokenizer_config.json", folder)
    (folder / "tokenizer.json").write_bytes(
        gzip.decompress((source / "tokenizer.json.gz").read_bytes())
    )
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="session")
def qwen25_template() -> str:
    """Qwen 2.5's chat template as TRL carries it; it adds a system message of its own."""
    spec = find_spec("trl")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "chat_templates" / "qwen2_5.jinja"
    return path.read_text(encoding="utf-8")


@pytest.fixture
def tiny_policy(tiny_model_folder: Path) -> LanguageModel:
    return LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")


class ScriptedSampler:
    """Answers a prompt with what `answer(prompt text, sample)` returns, text or token ids.

    Keeps every call's `(prompts, num_generations)`. An answer of the full length is cut. Every
    token's log-probability is a different number, so that none can take another's place.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        answer: Callable[[str, int], str | Sequence[int]],
    ) -> None:
        self._tokenizer = tokenizer
        self._answer = answer
        self._drawn = 0
        self.calls: list[tuple[list[tuple[int, ...]], int]] = []

    def sample(self, prompts, *, num_generations, temperature, max_completion_length, generator):
        self.calls.append(([tuple(prompt) for prompt in prompts], num_generations))
        return [
            self._group(prompt, count, max_completion_length)
            for prompt, count in zip(prompts, each(num_generations, len(prompts)), strict=True)
        ]

    def _group(self, prompt: Sequence[int], count: int, longest: int) -> SampledGroup:
        end = self._tokenizer.eos_token_id
        shown = self._tokenizer.decode(prompt, skip_special_tokens=False)
        answers: list[list[int]] = []
        for sample in range(count):
            said = self._answer(shown, sample)
            if isinstance(said, str):
                said = [*self._tokenizer.encode(said, add_special_tokens=False), end]
            answers.append(list(said)[:longest])
        logprobs = []
        for answer in answers:
            logprobs.append(-np.arange(1 + self._drawn, 1 + self._drawn + len(answer)) / 1000)
            self._drawn += len(answer)
        return SampledGroup(
            tree=TokenTree.from_branches(prompt, answers),
            logprobs=tuple(values.astype(np.float32) for values in logprobs),
            texts=tuple(
                self._tokenizer.decode(answer, skip_special_tokens=True).strip()
                for answer in answers
            ),
            stop_reasons=tuple("end" if end in answer[-1:] else "length" for answer in answers),
        )


@pytest.fixture(scope="session")
def scripted() -> type[ScriptedSampler]:
    return ScriptedSampler


@pytest.fixture(scope="session")
def chat_of() -> Callable[..., ChatIds]:
    def make(tokenizer: PreTrainedTokenizerBase, **options) -> ChatIds:
        end_ids = frozenset({tokenizer.eos_token_id, tokenizer.pad_token_id} - {None})
        return ChatIds(tokenizer, end_ids=end_ids, template_options=options)

    return make
