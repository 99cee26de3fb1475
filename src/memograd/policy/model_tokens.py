"""A model's tokens: the chat template applied once, ids to text, and what ends an answer.

A byte-level token may hold a part of a character only: a character that takes several tokens is
shown at its last one. An answer is over with the very token that completes a text that ends it.

Invariants: `encode` is the only place where a prompt becomes ids, and what was drawn is never
encoded again; the texts of all tokens, put together, are the decoded whole.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memograd.errors import BadInput
from memograd.policy.sampler import Stopped, never
from memograd.rollout.types import Message

if TYPE_CHECKING:
    from memograd.policy.remote.sampler import RemoteSampler

UNFINISHED = "\ufffd"


class ModelTokens:
    """The part of a `ModelPolicy` that knows its tokenizer.

    `stop` are texts that end an answer as an end token does.
    """

    name: str
    tokenizer: PreTrainedTokenizerBase
    model: PreTrainedModel
    stop: Sequence[str]
    remote: RemoteSampler | None

    @property
    def context_length(self) -> int:
        """The most tokens that a prompt with its answer may have: as many as the model was made
        for, if it says so, and where servers draw no more than they take."""
        text_config = self.model.config.get_text_config()
        own = int(getattr(text_config, "max_position_embeddings", None) or sys.maxsize)
        served = None if self.remote is None else self.remote.pool.longest
        return min(own, served or own)

    @property
    def vocabulary_size(self) -> int:
        """How many token ids the model can be given."""
        return int(self.model.config.get_text_config().vocab_size)

    @property
    def end_ids(self) -> frozenset[int]:
        """Token ids that end an answer."""
        declared = getattr(self.model.generation_config, "eos_token_id", None)
        extra = declared if isinstance(declared, list) else [declared]
        candidates: list[Any] = [self.tokenizer.eos_token_id, *extra]
        return frozenset(int(token) for token in candidates if token is not None)

    def count_tokens(self, text: str) -> int:
        """Length of `text` in this model's tokens, without special ones."""
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def encode(self, prompt: str | Sequence[Message]) -> list[int]:
        """Apply the chat template once: the ids of the chat up to where the answer begins.

        A text has no template: its ids, with the special tokens that the tokenizer begins with.
        """
        if isinstance(prompt, str):
            return list(cast(list[int], self.tokenizer(prompt)["input_ids"]))
        if not self.tokenizer.chat_template:
            raise BadInput(
                f"model={self.name} has no chat template, so a conversation cannot be put to it; "
                "use an instruction-tuned model, add a chat_template to its tokenizer, or give it "
                "texts"
            )
        chat: list[dict[str, Any]] = [dict(message) for message in prompt]
        try:
            ids = self.tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, tokenize=True, return_dict=False
            )
        except TemplateError as error:
            raise BadInput(
                f"the chat template of {self.name} refuses a system message followed by a user "
                f"message ({error}); use a model whose template takes them"
            ) from error
        return list(cast(list[int], ids))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of an answer, without special tokens and surrounding white space."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """The text that each token adds, special tokens included."""
        return token_texts(lambda part: str(self.tokenizer.decode(part)), ids)

    def _stopped(self) -> Stopped:
        if not self.stop:
            return never
        return ends_with_one_of(lambda ids: str(self.tokenizer.decode(list(ids))), self.stop)


def token_texts(decode: Callable[[list[int]], str], ids: Sequence[int]) -> list[str]:
    """One text a token of `ids`.

    `decode` gives the text of any stretch of tokens, special tokens included. Only the stretch
    since the last whole character is decoded again, so long texts take linear time.
    """
    texts: list[str] = []
    begin = whole = 0  # `ids[begin:whole]` is the last token that ended a character
    for end in range(1, len(ids) + 1):
        before = decode(list(ids[begin:whole]))
        now = decode(list(ids[begin:end]))
        if now.endswith(UNFINISHED) and end < len(ids):
            texts.append("")
            continue
        texts.append(now[len(before) :])
        begin, whole = whole, end
    return texts


def ends_with_one_of(
    decode: Callable[[Sequence[int]], str], texts: Sequence[str]
) -> Callable[[Sequence[int]], bool]:
    """Whether token ids say one of `texts`, asked after every token of an answer.

    Looked at are as many of the last tokens as the longest text has bytes, and a few more for those
    that add no text: what stands before them was looked at when they were the last ones.
    """
    window = max(len(text.encode()) for text in texts) + 8

    def ends(ids: Sequence[int]) -> bool:
        said = decode(ids[-window:])
        return any(text in said for text in texts)

    return ends
