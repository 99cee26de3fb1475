"""From a conversation to token ids, without ever tokenising an action again.

After an action the model must see the observation as its chat template writes it. Rendering the
whole conversation anew and tokenising it would be simple and wrong: an action that was drawn as the
tokens `re|turn` may come back as `return`, and training would score tokens that nobody drew. So the
ids held so far (prompt, actions, observations) stay, and only what is new is tokenised:

    held       <start>user ... <start>assistant  re|turn  <end>
    rendered   <start>user ... <start>assistant  return  <end> <start>tool ... <start>assistant
                                                              └───── the observation ─────┘

Where the rendered conversation does not begin with what is held, because the template drops earlier
thoughts, trims white space, or closes a turn with another end token than the drawn one, the next
turn starts a new row from the rendered conversation, and the mismatch is counted by kind.

Invariant: the ids of a continued row begin with the ids held, whatever the tokenizer would make of
their text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from jinja2 import TemplateError

from memograd.errors import BadInput
from memograd.rollout.episode import ToolSchema
from memograd.rollout.types import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MISMATCHES = ("tokenisation", "whitespace", "special_tokens", "history")
"""How held and rendered may differ: in token boundaries only (the row goes on with the ids held);
in white space only, in special tokens too, or in the text itself (a new row starts)."""


@dataclass(frozen=True)
class NextTurn:
    """What the model sees before its next action.

    `ids`: the new observation's ids if the turn continues the row, else the whole new row's.
    `mismatch`: one of `MISMATCHES`, or None where the rendered ids begin with those held.
    """

    ids: tuple[int, ...]
    starts_row: bool
    mismatch: str | None = None


class ChatIds:
    """A tokenizer with a chat template, as the runner of episodes uses it.

    `template_options` are handed to the template with every conversation (`enable_thinking`, ...).
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        end_ids: frozenset[int],
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        if not (tokenizer.chat_template or template_options):
            raise BadInput(
                "the model has no chat template, so a conversation cannot be put to it; use an "
                "instruction-tuned model, or add a chat_template to its tokenizer"
            )
        self._tokenizer = tokenizer
        self._end_ids = end_ids
        self._options = dict(template_options or {})

    def first(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> NextTurn:
        """The opening of a conversation; `BadInput` if the template does not show `tools`."""
        rendered = self._render(messages, tools)
        if tools and rendered == self._render(messages, ()):
            raise BadInput(
                "the model's chat template ignores tools, so the policy would never know of them; "
                "give its tokenizer a chat_template that shows them, such as Qwen2.5's"
            )
        return NextTurn(self._encode(rendered), starts_row=True)

    def after(
        self, held: Sequence[int], messages: Sequence[Message], tools: Sequence[ToolSchema]
    ) -> NextTurn:
        """The turn after `held`, the ids of the row so far; `messages` is the conversation with the
        last action and the new observation."""
        rendered = self._render(messages, tools)
        ids = self._encode(rendered)
        if ids[: len(held)] == tuple(held):
            return NextTurn(ids[len(held) :], starts_row=False)
        held_text = self._decode(held)
        if rendered.startswith(held_text):
            new = self._encode(rendered[len(held_text) :])
            return NextTurn(new, starts_row=False, mismatch="tokenisation")
        return NextTurn(ids, starts_row=True, mismatch=self._difference(held_text, rendered))

    def action_text(self, action_ids: Sequence[int]) -> str:
        """What an action says, to the letter; only the end token at its end is left out."""
        ends = bool(action_ids) and action_ids[-1] in self._end_ids
        return self._decode(action_ids[:-1] if ends else action_ids)

    def _render(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> str:
        chat: list[dict[str, Any]] = [dict(message) for message in messages]
        try:
            rendered = self._tokenizer.apply_chat_template(
                chat,
                tools=[dict(tool) for tool in tools] or None,
                add_generation_prompt=True,
                tokenize=False,
                **self._options,
            )
        except TemplateError as error:
            roles = ", ".join(message["role"] for message in messages)
            raise BadInput(
                f"the model's chat template refuses a conversation of {roles} ({error}); use a "
                "model whose template takes it"
            ) from error
        return str(rendered)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def _decode(self, ids: Sequence[int]) -> str:
        text = self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return cast(str, text)

    def _difference(self, held: str, rendered: str) -> str:
        if _without_space(rendered).startswith(_without_space(held)):
            return "whitespace"
        for token in self._tokenizer.all_special_tokens:
            held, rendered = held.replace(token, ""), rendered.replace(token, "")
        if _without_space(rendered).startswith(_without_space(held)):
            return "special_tokens"
        return "history"


def _without_space(text: str) -> str:
    return "".join(text.split())
